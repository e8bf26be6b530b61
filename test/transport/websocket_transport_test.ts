import { test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes, assertThrows } from '@std/assert';
import { runtime } from '#runtime';
import { limits } from '../../src/limits.ts';
import type { DialFailure } from '../../src/transport/contract.ts';
import { TransportOptionsError } from '../../src/transport/errors.ts';
import { encodeHello, encodeProof } from '../../src/transport/hello.ts';
import type { ListenOptions, Runtime, Socket } from '../../src/transport/runtime.ts';
import type { WebSocketTransportOptions } from '../../src/transport/websocket_options.ts';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { frame, rawClient } from '../contract/raw_peer.ts';
import { testTls } from '../contract/tls_fixture.ts';
import {
  failedDial,
  linked,
  type Node,
  type NodeOptions,
  seed,
  someSeedAnswer,
  startNode,
} from '../contract/transport_contract.ts';
import { type LocalEnvironment, localEnvironment, pause, until } from './local_environment.ts';

type Overrides = Partial<WebSocketTransportOptions>;

const base = {
  runtime,
  environment: localEnvironment(),
  clusterName: 'c',
  host: '127.0.0.1',
  port: 0,
  uid: 'u',
  seedAnswer: someSeedAnswer,
};

function start(overrides: Overrides = {}): Promise<Node & { environment: LocalEnvironment }> {
  const environment = localEnvironment();
  const make = ({ port = 0, uid = 'u', clusterName = 'c', ...rest }: NodeOptions) =>
    new WebSocketTransport({ ...base, environment, port, uid, clusterName, ...rest, ...overrides });
  return startNode(make).then((node) => ({
    ...node,
    environment: (overrides.environment ?? environment) as LocalEnvironment,
  }));
}

function stopAll(...nodes: Node[]): Promise<unknown> {
  return Promise.all(nodes.map(({ transport }) => transport.stop()));
}

function portOf(node: Node): number {
  return Number(node.address.split(':').at(-1));
}

test('every bad option is one error that names field, value and rule', () => {
  const { cert, key } = testTls;
  const cases: [Overrides, string, string][] = [
    [{ host: '0.0.0.0', secret: 's' }, 'host', '"0.0.0.0"'],
    [{ host: '::', secret: 's' }, 'host', 'wildcard'],
    [{ host: 'ho st', secret: 's' }, 'host', 'host name'],
    [{ port: 70_000 }, 'port', '70000'],
    [{ port: 1.5 }, 'port', '1.5'],
    [{ advertisedPort: -1 }, 'advertisedPort', '-1'],
    [{ clusterName: '' }, 'clusterName', 'printable'],
    [{ uid: '' }, 'uid', 'printable'],
    [{ roles: ['a', ''] }, 'roles', 'printable'],
    [{ secret: '' }, 'secret', 'non-empty'],
    [{ secret: { current: 'x', also: [''] } }, 'secret', 'non-empty'],
    [{ tls: { cert: testTls.cert, key: '' } }, 'tls.key', 'both needed'],
    [{ tls: { cert, key, clientCertificates: true } }, 'tls.clientCertificates', 'needs tls.ca'],
    [
      { runtime: { ...runtime, name: 'deno' }, tls: { ...testTls, clientCertificates: true } },
      'tls.clientCertificates',
      'not possible on Deno',
    ],
    [{ frameIntegrity: true }, 'frameIntegrity', 'needs a secret'],
    [{ frameIntegrity: true, secret: 's', tls: testTls }, 'frameIntegrity', 'TLS'],
  ];
  for (const [overrides, field, text] of cases) {
    const error = assertThrows(() => new WebSocketTransport({ ...base, ...overrides }), TransportOptionsError);
    assertEquals(error.field, field);
    assertStringIncludes(error.message, text);
    assertFalse(error.message.includes('PRIVATE KEY'));
  }
});

test('S7: without a secret only loopback is allowed, unless insecure is spelled out', () => {
  const refused: Overrides[] = [
    { host: '10.1.2.3' },
    { host: 'node.example' },
    { bindHost: '0.0.0.0' },
    { host: 'node.example', bindHost: '127.0.0.1' },
  ];
  for (const overrides of refused) {
    assertThrows(() => new WebSocketTransport({ ...base, ...overrides }), TransportOptionsError, 'a secret is needed');
    new WebSocketTransport({ ...base, ...overrides, insecure: true });
    new WebSocketTransport({ ...base, ...overrides, secret: 's' });
  }
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) new WebSocketTransport({ ...base, host });
});

test('S7: a node without a secret warns once', async () => {
  const [open, closed] = [await start(), await start({ secret: 's' })];
  const warnings = (node: { environment: LocalEnvironment }) =>
    node.environment.lines.filter(({ message }) => message.includes('secret')).length;
  assertEquals([warnings(open), warnings(closed)], [1, 0]);
  await stopAll(open, closed);
});

test('S7: different secrets are explained on both sides and shown on none', async () => {
  const a = await start({ secret: 'left-secret' });
  const b = await start({ secret: 'right-secret' });
  const failure = await failedDial(a, b.address);
  assertEquals([failure.reason, failure.code], ['rejected', 'secret']);
  assertStringIncludes(failure.detail, 'secrets of the two nodes differ');
  await until('the other log', () => b.environment.lines.some(({ message }) => message === 'peer refused'));
  const line = b.environment.lines.find(({ message }) => message === 'peer refused');
  assertEquals(line?.fields['code'], 'secret');
  const everything = JSON.stringify([failure, a.environment.lines, b.environment.lines]);
  assertFalse(everything.includes('left-secret') || everything.includes('right-secret'));
  assertEquals([b.accepted.length, b.frames.length], [0, 0]);
  await stopAll(a, b);
});

test('S7: with and without a secret do not mix', async () => {
  const a = await start({ secret: 's' });
  const b = await start();
  for (const [from, to] of [[a, b], [b, a]] as const) {
    const failure = await failedDial(from, to.address);
    assertEquals([failure.reason, failure.code], ['rejected', 'secret']);
    assertStringIncludes(failure.detail, 'has none');
  }
  await stopAll(a, b);
});

test('a secret is rotated without an interruption', async () => {
  const a = await start({ secret: { current: 'old', also: ['new'] } });
  const b = await start({ secret: { current: 'new', also: ['old'] } });
  await linked(a, b.address);
  await linked(b, a.address);
  await stopAll(a, b);
});

test('two nodes that claim one address, and a node that advertises another than the dialled one', async () => {
  const a = await start();
  const twin = await start({ advertisedPort: portOf(a) });
  const b = await start({ advertisedPort: 1 });
  const claimed = await failedDial(twin, a.address);
  assertEquals([claimed.reason, claimed.code], ['rejected', 'address-claimed']);
  const listening = await start();
  const forwarded = await start({ advertisedPort: portOf(listening), uid: 'forwarded' });
  await stopAll(listening);
  const again = await start({ port: portOf(listening), advertisedPort: 2 });
  const wrong = await failedDial(a, listening.address);
  assertEquals([wrong.reason, wrong.code], ['rejected', 'wrong-address']);
  assertStringIncludes(wrong.detail, `dialled ${listening.address}, the node there advertises 127.0.0.1:2`);
  const lenient = await start({ acceptAnyAddress: true, uid: 'lenient' });
  assertEquals((await linked(lenient, listening.address)).peer.address, '127.0.0.1:2');
  await stopAll(a, twin, b, forwarded, again, lenient);
});

test('FB-068: what is advertised may differ from what is bound', async () => {
  const b = await start({ host: 'localhost', bindHost: '127.0.0.1' });
  assertEquals(b.address.split(':')[0], 'localhost');
  const a = await start();
  assertEquals((await linked(a, b.address)).peer.address, b.address);
  await stopAll(a, b);
});

test('a node that does not listen dials out and is answered', async () => {
  const b = await start();
  const caller = await start({ listen: false, host: 'caller', uid: 'caller' });
  assertEquals(caller.address, 'caller:0');
  const link = await linked(caller, b.address);
  await until('accepted', () => b.accepted.length === 1);
  b.accepted[0]?.send(Uint8Array.of(1));
  await until('the answer', () => caller.frames.length === 1);
  assertEquals(link.peer.address, b.address);
  assertEquals((await failedDial(b, caller.address)).code, 'bad-address');
  await stopAll(caller, b);
});

test('R120: a cluster over TLS', async () => {
  const [a, b] = [await start({ tls: testTls, host: 'localhost' }), await start({ tls: testTls, host: 'localhost' })];
  const link = await linked(a, b.address);
  link.send(Uint8Array.of(5));
  await until('the frame', () => b.frames.length === 1);
  assertEquals(await seed(a, b.address), someSeedAnswer());
  const plain = await start();
  assertFalse('peer' in await failedDial(plain, b.address));
  await stopAll(a, b, plain);
});

test('the handler serves all but the upgrade and can be replaced', async () => {
  const node = await start();
  const get = async (path: string) => {
    const response = await fetch(`http://${node.address}${path}`);
    return [response.status, await response.text()];
  };
  assertEquals((await get('/x'))[0], 404);
  assertEquals(await get('/cluster/seed'), [200, JSON.stringify(someSeedAnswer())]);
  (node.transport as WebSocketTransport).setFetch((request) => new Response(new URL(request.url).pathname));
  assertEquals(await get('/x'), [200, '/x']);
  assertEquals((await get('/cluster/ws'))[0], 426);
  await node.transport.stop();
});

test('what is no seed is rejected', async () => {
  const b = await start({ fetch: () => new Response('hello') });
  const failure = await seed(b, b.address) as DialFailure;
  assertEquals([failure.reason, failure.code], ['rejected', 'not-a-seed']);
  const bad = await seed(b, 'nonsense') as DialFailure;
  assertEquals(bad.code, 'bad-address');
  await b.transport.stop();
});

test('FB-100: a stranger gets nothing across and is dropped at the deadline', async () => {
  const node = await start({ secret: 's', environment: localEnvironment(0.04) });
  const hello = encodeHello({
    side: 'initiator',
    secured: true,
    integrity: false,
    clusterName: 'c',
    address: '127.0.0.1:9',
    uid: 'stranger',
    runtime: 'node',
    roles: [],
    nonce: new Uint8Array(32),
  });
  const attempts: Uint8Array[][] = [
    [],
    [Uint8Array.of(0xa1, 0x61, 0x61, 1)],
    [new Uint8Array(100_000)],
    [hello],
    [hello, encodeProof(new Uint8Array(32)), Uint8Array.of(1, 2, 3)],
    [hello, hello],
    [hello, ...Array.from({ length: 500 }, () => encodeProof(new Uint8Array(32)))],
  ];
  await Promise.all(attempts.map(async (frames) => {
    const raw = await rawClient(portOf(node));
    raw.socket.on('error', () => {});
    for (const bytes of frames) raw.socket.write(frame(2, bytes));
    await until('the end', () => raw.closed(), 4_000).finally(() => raw.socket.destroy());
  }));
  const { counters } = node.transport as WebSocketTransport;
  await until('all are counted', () => counters.handshakesFailed >= attempts.length && counters.inbound === 0);
  await pause(20);
  assertEquals(counters.handshakesFailed, attempts.length);
  assertEquals([node.accepted.length, node.frames.length, node.closed.length], [0, 0, 0]);
  await node.transport.stop();
});

test('S7: a page of another origin cannot join a cluster without a secret', async () => {
  const node = await start();
  const statusFor = async (origin: string) => {
    const text =
      `GET /cluster/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nOrigin: ${origin}\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: singlet.v1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
    const raw = await rawClient(portOf(node), text);
    raw.socket.destroy();
    return raw.answer.split(' ')[1];
  };
  assertEquals(
    [await statusFor('https://evil.example'), await statusFor('null'), await statusFor('http://localhost:3000')],
    ['403', '403', '101'],
  );
  await node.transport.stop();
});

/** A runtime whose listener and sockets exist only as calls. */
function fakeRuntime() {
  let options: ListenOptions | undefined;
  const closes: number[] = [];
  const fake: Runtime = {
    ...runtime,
    listen(given) {
      options = given;
      return Promise.resolve({ port: 5, close: () => Promise.resolve() });
    },
  };
  const connect = () => {
    const socket: Socket = {
      send: () => true,
      bufferedBytes: () => 0,
      close(code) {
        closes.push(code);
        queueMicrotask(() => socket.onClose({ code, reason: '', clean: true }));
      },
      onMessage: () => {},
      onClose: () => {},
      onDrain: () => {},
    };
    if (options?.admit() !== true) return undefined;
    options.onSocket(socket, '');
    return socket;
  };
  return { fake, closes, connect, lose: (why: string) => options?.onLost(why), options: () => options };
}

test('R113: beyond the cap the newest connection is refused, and a freed place is given again', async () => {
  const { fake, connect, closes } = fakeRuntime();
  const node = await start({ runtime: fake });
  const { counters } = node.transport as WebSocketTransport;
  const sockets = Array.from({ length: limits.inboundConnections }, connect);
  assert(sockets.every((socket) => socket !== undefined));
  assertEquals([connect(), counters.inbound, counters.inboundRefused], [undefined, limits.inboundConnections, 1]);
  sockets[3]?.onClose({ code: 1006, reason: '', clean: false });
  assert(connect() !== undefined);
  assertEquals([connect(), closes.length], [undefined, 0]);
  await node.transport.stop();
  assertEquals(counters.inbound, 0);
});

test('a listener that dies unasked is reported, in a turn of its own; one that is stopped is not', async () => {
  const { fake, lose } = fakeRuntime();
  const node = await start({ runtime: fake });
  lose('gone');
  assertEquals(node.lost, []);
  await until('the report', () => node.lost.length === 1);
  assertEquals(node.lost, ['gone']);
  await node.transport.stop();
  lose('again');
  await pause(20);
  assertEquals(node.lost.length, 1);
});

test('a stop during the start leaves nothing open', async () => {
  let closed = 0;
  const fake: Runtime = {
    ...runtime,
    listen: () => pause(20).then(() => ({ port: 5, close: () => Promise.resolve(void closed++) })),
  };
  const transport = new WebSocketTransport({ ...base, runtime: fake });
  const events = { accepted() {}, frame() {}, closed() {}, listenerLost() {} };
  const starting = transport.start(events);
  await transport.stop();
  await starting;
  assertEquals(closed, 1);
});

test('R123: a frame that the runtime drops ends the link as a loss', async () => {
  let dropping = false;
  const wrap = (socket: Socket): Socket => {
    const send = socket.send.bind(socket);
    socket.send = (bytes) => dropping ? false : send(bytes);
    return socket;
  };
  const lossy: Runtime = {
    ...runtime,
    dial: (options, done) => runtime.dial(options, (outcome) => done('reason' in outcome ? outcome : wrap(outcome))),
  };
  const a = await start({ runtime: lossy });
  const b = await start();
  const link = await linked(a, b.address);
  dropping = true;
  link.send(Uint8Array.of(1));
  link.send(Uint8Array.of(2));
  assertEquals(a.closed.length, 0);
  await until('the loss', () => a.closed.length === 1 && b.closed.length === 1);
  assertEquals([a.closed[0]?.close.clean, b.closed[0]?.close.clean], [false, false]);
  await pause(30);
  assertEquals(a.closed.length, 1);
  await stopAll(a, b);
});

test('R115: a handler that throws on a frame ends that link, is logged, and costs no other', async () => {
  const environment = localEnvironment();
  const transport = new WebSocketTransport({ ...base, environment, uid: 'thrower' });
  let frames = 0;
  const closes: boolean[] = [];
  const address = await transport.start({
    accepted() {},
    frame(_link, bytes) {
      frames++;
      if (bytes[0] === 1) throw new Error('boom');
    },
    closed: (_link, close) => void closes.push(close.clean),
    listenerLost() {},
  });
  const [a, b] = [await start(), await start()];
  const [bad, good] = [await linked(a, address), await linked(b, address)];
  bad.send(Uint8Array.of(1));
  await until('the close', () => a.closed.length === 1 && closes.length === 1);
  good.send(Uint8Array.of(2));
  await until('the other frame', () => frames === 2);
  assertEquals([b.closed.length, environment.lines.filter(({ level }) => level === 'error').length], [0, 1]);
  await stopAll(a, b);
  await transport.stop();
});
