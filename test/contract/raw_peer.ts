/** WebSocket peers made of bare TCP, for all that a well-behaved peer never does. */
import { createHash } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

export interface RawClient {
  readonly socket: Socket;
  /** The answer to the upgrade, up to the empty line. */
  readonly answer: string;
  /** Everything that came after it. */
  bytes(): number;
  closed(): boolean;
}

const key = 'dGhlIHNhbXBsZSBub25jZQ==';

export function upgradeRequest(path = '/cluster/ws', subprotocol = 'singlet.v1', extra = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
    `Sec-WebSocket-Protocol: ${subprotocol}\r\nSec-WebSocket-Key: ${key}\r\n${extra}\r\n`;
}

/** Connects and upgrades; then it reads (or, `paused`, does not even do that) and never answers anything by itself. */
export function rawClient(port: number, request = upgradeRequest(), paused = false): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    let head = '';
    let size = 0;
    let over = false;
    socket.on('error', reject);
    socket.on('close', () => {
      over = true;
      resolve({ socket, answer: head, bytes: () => size, closed: () => over });
    });
    socket.on('connect', () => socket.write(request));
    socket.on('data', (data: Buffer) => {
      if (head.includes('\r\n\r\n')) {
        size += data.length;
        return;
      }
      head += data.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (paused) socket.pause();
      resolve({ socket, answer: head, bytes: () => size, closed: () => over });
    });
  });
}

export interface RawServer {
  readonly port: number;
  readonly sockets: readonly Socket[];
  close(): void;
}

/** The answer that opens a connection, given what belongs to the key of the request. */
export function upgradeAnswer(accept: string): string {
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
    `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: singlet.v1\r\n\r\n`;
}

/** Accepts the upgrade (or, `silent`, nothing at all), then calls `then` and never answers anything by itself. */
export function rawServer(
  kind: 'upgrading' | 'silent' | 'dropping',
  then: (socket: Socket) => void = () => {},
  answer: (accept: string) => string = upgradeAnswer,
): Promise<RawServer> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    if (kind === 'dropping') return void socket.destroy();
    if (kind === 'silent') return;
    socket.once('data', (data: Buffer) => {
      const match = /sec-websocket-key: (.*)\r/i.exec(data.toString('latin1'));
      const accept = createHash('sha1').update(`${match?.[1]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
      socket.write(answer(accept));
      socket.on('data', () => {});
      then(socket);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      const close = () => {
        sockets.forEach((socket) => socket.destroy());
        server.close();
      };
      resolve({ port, sockets, close });
    });
  });
}

/** A frame as a client sends it (masked with zeros) or, `masked` false, as a server does. */
export function frame(opcode: number, payload: Uint8Array, masked = true): Uint8Array {
  const size = payload.byteLength;
  const header = size < 126
    ? [size]
    : size < 65_536
    ? [126, size >> 8, size & 255]
    : [127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((shift) => (size >> shift) & 255)];
  header[0] = (header[0] ?? 0) | (masked ? 0x80 : 0);
  const mask = masked ? [0, 0, 0, 0] : [];
  return joined(Uint8Array.from([0x80 | opcode, ...header, ...mask]), payload);
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(head.byteLength + tail.byteLength);
  bytes.set(head, 0);
  bytes.set(tail, head.byteLength);
  return bytes;
}

/** What a client has sent, frame by frame. */
export function unmasked(chunks: readonly Uint8Array[]): Uint8Array[] {
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const chunk of chunks) {
    all.set(chunk, end);
    end += chunk.length;
  }
  const frames: Uint8Array[] = [];
  for (let at = 0; at < all.length;) {
    const short = all[at + 1]! & 0x7f;
    const view = new DataView(all.buffer);
    const size = short < 126 ? short : short === 126 ? view.getUint16(at + 2) : Number(view.getBigUint64(at + 2));
    const mask = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    const payload = all.slice(mask + 4, mask + 4 + size);
    for (let n = 0; n < size; n++) payload[n]! ^= all[mask + (n & 3)]!;
    frames.push(payload);
    at = mask + 4 + size;
  }
  return frames;
}
