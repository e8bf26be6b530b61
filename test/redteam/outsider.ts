/** What an outsider has: TCP, bytes that are nearly right, and a place on the path. */
import { connect, createServer, type Socket as TcpSocket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { assertStringIncludes } from '@std/assert';
import { runtime } from '#runtime';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster, ClusterOptions } from '../../src/facade/mod.ts';
import { encodeHello, type Hello } from '../../src/transport/hello.ts';
import type { WebSocketTransportOptions } from '../../src/transport/websocket_options.ts';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { frame, rawClient, upgradeRequest } from '../contract/raw_peer.ts';
import { someSeedAnswer } from '../contract/transport_contract.ts';
import { type LocalEnvironment, localEnvironment, until } from '../transport/local_environment.ts';

export const secret = 'the secret of this red team';
export const token = 'the-token-of-this-red-team';

export const statusOf = (answer: string): number => Number(answer.split(' ')[1] ?? 0);

export interface Stand {
  readonly environment: LocalEnvironment;
  readonly system: ActorSystem;
  readonly cluster: Cluster;
  readonly port: number;
  readonly url: string;
}

export async function stand(configure: (options: ClusterOptions) => void = () => {}): Promise<Stand> {
  const environment = localEnvironment();
  const system = ActorSystem.create('red', { environment, logger: environment.log });
  const options = ClusterOptions.create().withSecret(secret).withToken(token).withRejoin(false);
  configure(options);
  const cluster = await Cluster.join(system, options);
  const port = Number(cluster.address.split(':').at(-1));
  return { environment, system, cluster, port, url: `http://127.0.0.1:${port}` };
}

export const close = async ({ cluster, system }: Stand): Promise<void> => {
  await cluster.leave();
  await system.terminate();
};

export function hello(change: Partial<Hello> = {}): Uint8Array {
  return encodeHello({
    side: 'initiator',
    secured: true,
    integrity: false,
    clusterName: 'red',
    address: '127.0.0.1:9',
    uid: 'stranger',
    runtime: 'node',
    roles: [],
    nonce: crypto.getRandomValues(new Uint8Array(32)),
    ...change,
  });
}

export async function dropped(port: number, ...payloads: readonly Uint8Array[]): Promise<void> {
  const raw = await rawClient(port);
  raw.socket.on('error', () => {});
  assertStringIncludes(raw.answer, '101');
  let closing = false;
  raw.socket.on('data', (data: Uint8Array) => closing ||= holdsClose(data));
  for (const bytes of payloads) raw.socket.write(frame(2, bytes));
  const end = () => closing || raw.closed();
  await until('the node drops the connection', end, 10_000).finally(() => raw.socket.destroy());
}

function holdsClose(data: Uint8Array): boolean {
  for (let at = 0; at + 1 < data.length;) {
    if (data[at] === 0x88) return true;
    const size = data[at + 1]!;
    at += size < 126 ? 2 + size : 4 + data[at + 2]! * 256 + data[at + 3]!;
  }
  return false;
}

export function raw(port: number, text: string | readonly string[], ms = 1_500): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    let answer = '';
    const done = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(done, ms);
    socket.on('error', done);
    socket.on('close', done);
    socket.on('data', (data) => answer += data.toString('latin1'));
    for (const part of [text].flat()) socket.write(part);
  });
}

export function transportOf(
  uid: string,
  frameIntegrity: boolean,
  more: Partial<WebSocketTransportOptions> = {},
): WebSocketTransport {
  return new WebSocketTransport({
    runtime,
    environment: localEnvironment(),
    clusterName: 'red',
    host: '127.0.0.1',
    port: 0,
    uid,
    secret,
    frameIntegrity,
    acceptAnyAddress: true,
    seedAnswer: someSeedAnswer,
    ...more,
  });
}

/** What a second node that joins says in its handshake, as an eavesdropper hears it. */
export async function recordHandshake(port: number): Promise<Uint8Array[]> {
  const heard: Uint8Array[] = [];
  const tap = await proxyTo(port, { on: false }, (bytes) => heard.push(bytes));
  const transport = transportOf('eavesdropped', false);
  await transport.start({ accepted() {}, frame() {}, closed() {}, listenerLost() {} });
  await new Promise<void>((resolve) => void transport.dial(`127.0.0.1:${tap.port}`, () => resolve()));
  await transport.stop();
  tap.close();
  return payloadsOf(heard);
}

/** Binary payloads of masked client frames behind the head of the upgrade. */
function payloadsOf(chunks: readonly Uint8Array[]): Uint8Array[] {
  const all = Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
  const text = String.fromCharCode(...all);
  const payloads: Uint8Array[] = [];
  for (let at = text.indexOf('\r\n\r\n') + 4; at + 6 <= all.length;) {
    const short = all[at + 1]! & 0x7f;
    const size = short < 126 ? short : all[at + 2]! * 256 + all[at + 3]!;
    const mask = at + (short < 126 ? 2 : 4);
    if ((all[at]! & 15) === 2) {
      payloads.push(all.slice(mask + 4, mask + 4 + size).map((byte, index) => byte ^ all[mask + (index & 3)]!));
    }
    at = mask + 4 + size;
  }
  return payloads;
}

/** Sends the node's hello and whatever else it says straight back to it. */
export async function reflected(port: number): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  let over = false;
  let opened = false;
  socket.on('close', () => over = true);
  socket.on('data', (data: Uint8Array) => {
    if (opened && holdsClose(data)) over = true;
    if (!opened) {
      opened = true;
      socket.write(frame(2, hello()));
      return;
    }
    const size = data[1]! & 0x7f;
    const start = size === 126 ? 4 : 2;
    socket.write(frame(2, Uint8Array.from(data.slice(start))));
  });
  socket.write(upgradeRequest());
  await until('it is dropped', () => over, 10_000).finally(() => socket.destroy());
}

/** A TCP proxy that hands everything on, and changes the last byte of what comes from the node while it is told to. */
/** Whose bytes somebody on the path changes: those of the side that is dialled, and of the one that dials. */
export interface Tampering {
  on: boolean;
  onWayUp?: boolean;
}

/** Each piece with its last byte changed. */
function changed(data: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(data);
  if (copy.length > 0) copy[copy.length - 1]! ^= 1;
  return copy;
}

export async function proxyTo(target: number, tamper: Tampering, heard: (bytes: Uint8Array) => void = () => {}) {
  const sockets: TcpSocket[] = [];
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target });
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    near.on('data', (data: Uint8Array) => {
      heard(Uint8Array.from(data));
      far.write(tamper.onWayUp === true ? changed(data) : data);
    });
    far.on('data', (data: Uint8Array) => void near.write(tamper.on ? changed(data) : data));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  };
  return { port, close };
}
