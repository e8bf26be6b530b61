/** A server on loopback that misbehaves in any way a backend, or whatever stands in its place, can. */
import { Buffer } from 'node:buffer';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { testTls } from '../contract/tls_fixture.ts';

/** A request as it came, and the socket that waits for an answer. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

type Answerer = (socket: Socket, call: Call) => void;

export function answer(socket: Socket, status: number, body: string, headers: Record<string, string> = {}): void {
  const bytes = Buffer.from(body);
  const all = { 'content-type': 'application/json', ...headers, 'content-length': String(bytes.length) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`);
  socket.write(bytes);
}

const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x1_0000, ' '), Buffer.from('\r\n')]);

function endless(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
  more();
}

function drop(socket: Socket, bytes: string): void {
  socket.write(bytes, () => void setTimeout(() => socket.destroy(), 10));
}

let bomb: Buffer | undefined;

/** By name. `trap` is a URL where nothing must arrive. */
export function hostilities(trap: string): Readonly<Record<string, Answerer>> {
  return {
    'does not answer': () => {},
    'closes at once': (socket) => void socket.destroy(),
    'sends a byte now and then': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const timer = setInterval(() => socket.destroyed ? clearInterval(timer) : void socket.write(' '), 20);
      socket.on('close', () => clearInterval(timer));
    },
    'sends a body without an end': endless,
    'sends a body that unpacks to a thousand times its size': (socket) => {
      bomb ??= gzipSync(Buffer.alloc(32 * 1024 * 1024, ' '));
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
      socket.write(bomb);
    },
    'ends in the middle of a body': (socket) =>
      drop(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"header":'),
    'speaks no HTTP': (socket) => drop(socket, '\u0000\u0001 garbage \r\n\r\n'),
    'has a status of its own': (socket) => drop(socket, 'HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}'),
    'says 200 with a page': (socket) => answer(socket, 200, '<html>log in</html>', { 'content-type': 'text/html' }),
    'says 200 with nothing': (socket) => answer(socket, 200, ''),
    'says 404 with a page': (socket) => answer(socket, 404, '404 page not found'),
    'says 200 with null': (socket) => answer(socket, 200, 'null'),
    'says 200 with JSON that is deeply nested': (socket) => answer(socket, 200, '['.repeat(300_000)),
    'says 200 with other types': (socket) =>
      answer(
        socket,
        200,
        '{"header":{"cluster_id":{}},"kind":"Lease","metadata":{"resourceVersion":7},"spec":7,"kvs":7,"ID":[],"TTL":{},' +
          '"result":7,"succeeded":"true","responses":"x"}',
      ),
    'is busy for years': (socket) => answer(socket, 503, '{"message":"busy"}', { 'retry-after': '100000000' }),
    'has too much to do': (socket) => answer(socket, 429, '{"message":"later"}', { 'retry-after': '0' }),
    'sends everybody elsewhere': (socket) => answer(socket, 307, '', { location: `${trap}/v3/kv/range` }),
    'sends everybody elsewhere to read': (socket) => answer(socket, 302, '', { location: trap }),
  };
}

export class HostileServer {
  /** What it does with a request. */
  behave: Answerer;
  readonly calls: Call[] = [];
  bytesSent = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  readonly #secure: boolean;

  private constructor(behave: Answerer, secure: boolean) {
    this.behave = behave;
    this.#secure = secure;
    const serve = (socket: Socket): void => this.#serve(socket);
    this.#server = secure ? createSecureServer({ cert: testTls.cert, key: testTls.key }, serve) : createServer(serve);
  }

  /** `secure`: with the certificate of the tests. */
  static async start(behave: Answerer, { secure = false } = {}): Promise<HostileServer> {
    const server = new HostileServer(behave, secure);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `${this.#secure ? 'https' : 'http'}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => void this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    let text = '';
    this.#sockets.add(socket);
    socket.setEncoding('utf8');
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#sockets.delete(socket);
      this.bytesSent += socket.bytesWritten;
    });
    socket.on('data', (data) => {
      text += String(data);
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      const [method = '', path = ''] = text.split(' ', 2);
      const call = { method, path, body: text.slice(end + 4, end + 4 + length) };
      text = '';
      this.calls.push(call);
      this.behave(socket, call);
    });
  }
}
