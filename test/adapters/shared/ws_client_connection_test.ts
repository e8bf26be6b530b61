import { describe, test } from 'node:test';
import { assert, assertEquals, assertLess } from '@std/assert';
import { type ByteStream, ClientConnection } from '../../../adapters/shared/ws_client_connection.ts';
import { MaskKeys } from '../../../adapters/shared/ws_client_output.ts';
import type { LinkClose } from '../../../src/transport/contract.ts';
import { frame } from '../../contract/raw_peer.ts';
import { pause, until } from '../../transport/local_environment.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);
const served = (opcode: number, payload: Uint8Array) => new Uint8Array(frame(opcode, payload, false));
const closeFrame = (code: number, reason = '') => served(8, Uint8Array.of(code >> 8, code & 255, ...utf8(reason)));
/** Keys of zeros, so that what is written can be read. */
const noKeys = new MaskKeys((bytes) => bytes.fill(0));
const maxFrameBytes = 100_000;

/** A stream that the test plays the peer of. Writes wait for `accept` unless `flowing`. */
class FakeStream implements ByteStream {
  readonly writes: Uint8Array[] = [];
  flowing = true;
  closed = false;
  #incoming: (Uint8Array | null | Error)[] = [];
  #read: { into: Uint8Array; resolve: (size: number | null) => void; reject: (error: Error) => void } | undefined;
  #write: { resolve: (size: number) => void; reject: (error: Error) => void; size: number } | undefined;

  read(into: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) => {
      this.#read = { into, resolve, reject };
      this.#deliver();
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    if (this.#write !== undefined) throw new Error('two writes at once');
    this.writes.push(bytes.slice());
    if (this.flowing) return Promise.resolve(bytes.length);
    return new Promise((resolve, reject) => this.#write = { resolve, reject, size: bytes.length });
  }

  close(): void {
    this.closed = true;
    this.#read?.reject(new Error('interrupted'));
    this.#write?.reject(new Error('interrupted'));
  }

  /** Ends the write that waits, having taken `size` bytes of it (default: all). */
  accept(size?: number): void {
    const write = this.#write;
    this.#write = undefined;
    write?.resolve(size ?? write.size);
  }

  failWrite(): void {
    this.#write?.reject(new Error('broken pipe'));
  }

  serve(...events: (Uint8Array | null | Error)[]): void {
    this.#incoming.push(...events);
    this.#deliver();
  }

  #deliver(): void {
    const read = this.#read;
    const event = this.#incoming.shift();
    if (read === undefined || event === undefined) return void (event !== undefined && this.#incoming.unshift(event));
    this.#read = undefined;
    if (event instanceof Error) return read.reject(event);
    if (event === null) return read.resolve(null);
    read.into.set(event);
    read.resolve(event.length);
  }
}

function connected(received: Uint8Array<ArrayBuffer> = new Uint8Array(0), maxWaitingBytes?: number) {
  const stream = new FakeStream();
  const connection = new ClientConnection(stream, maxFrameBytes, noKeys, maxWaitingBytes);
  const { socket } = connection;
  const frames: number[][] = [];
  const closes: LinkClose[] = [];
  socket.onMessage = (bytes) => void frames.push([...bytes]);
  socket.onClose = (close) => void closes.push(close);
  connection.start(received);
  return { stream, socket, frames, closes };
}

/** Opcode and payload of each written frame, unmasked by zeros. */
function written(stream: FakeStream): [number, ...number[]][] {
  const bytes = stream.writes.flatMap((write) => [...write]);
  const frames: [number, ...number[]][] = [];
  while (bytes.length > 0) {
    const [first = 0, second = 0] = bytes.splice(0, 2);
    assertLess(second & 0x7f, 126, 'only short frames here');
    bytes.splice(0, 4);
    frames.push([first & 15, ...bytes.splice(0, second & 0x7f)]);
  }
  return frames;
}

const code = (value: number) => [value >> 8, value & 255];

describe('writes', () => {
  test('the frames of one turn share a write, and so do those sent while it is under way', async () => {
    const { stream, socket } = connected();
    stream.flowing = false;
    for (let i = 0; i < 3; i += 1) assertEquals(socket.send(Uint8Array.of(i)), true);
    assertEquals([stream.writes.length, socket.bufferedBytes()], [0, 21]);
    await pause(1);
    assertEquals([stream.writes.length, socket.bufferedBytes()], [1, 21]);
    for (let i = 3; i < 6; i += 1) socket.send(Uint8Array.of(i));
    await pause(1);
    assertEquals([stream.writes.length, socket.bufferedBytes()], [1, 42]);
    stream.accept(20);
    await pause(1);
    assertEquals([stream.writes.length, socket.bufferedBytes()], [2, 22]);
    stream.accept();
    await pause(1);
    assertEquals(stream.writes.map((write) => write.length), [21, 1, 21]);
    assertEquals(socket.bufferedBytes(), 21);
    stream.accept();
    await pause(1);
    assertEquals(socket.bufferedBytes(), 0);
    stream.writes.splice(1, 1);
    assertEquals(written(stream), [0, 1, 2, 3, 4, 5].map((i) => [2, i]));
  });

  test('each write that ends is told, so that who waits for room need not poll', async () => {
    const { stream, socket } = connected();
    const left: number[] = [];
    socket.onDrain = () => void left.push(socket.bufferedBytes());
    stream.flowing = false;
    socket.send(Uint8Array.of(1));
    await pause(1);
    assertEquals(left, []);
    stream.accept(3);
    await pause(1);
    stream.accept();
    await pause(1);
    assertEquals(left, [4, 0]);
  });

  test('R123: a frame that would make more wait than the limit is refused', async () => {
    const { stream, socket } = connected(undefined, 1_000);
    stream.flowing = false;
    const frame = new Uint8Array(300);
    assertEquals([1, 2, 3, 4].map(() => socket.send(frame)), [true, true, true, false]);
    assertEquals(socket.bufferedBytes(), 3 * 308);
    socket.terminate();
    await pause(1);
    assertEquals([stream.closed, socket.bufferedBytes()], [true, 0]);
  });

  test('a ping is answered with its payload; of many, the latest, and never behind a close', async () => {
    const { stream, socket } = connected();
    stream.serve(served(9, utf8('a')));
    await pause(1);
    assertEquals(written(stream), [[10, 97]]);
    stream.flowing = false;
    socket.send(Uint8Array.of(1));
    await pause(1);
    for (let i = 0; i < 1_000; i += 1) stream.serve(served(9, Uint8Array.of(i & 127)));
    await until('the pings are read', () => socket.bufferedBytes() === 7);
    await pause(20);
    assertEquals(socket.bufferedBytes(), 7);
    stream.flowing = true;
    stream.accept();
    await pause(5);
    assertEquals(written(stream), [[10, 97], [2, 1], [10, 999 & 127]]);
    stream.flowing = false;
    socket.close(4000, '');
    stream.serve(served(9, utf8('b')));
    await pause(5);
    stream.accept();
    await pause(5);
    assertEquals(written(stream).at(-1), [8, ...code(4000)]);
    socket.terminate();
  });

  test('a failed write leaves the last word to what the peer said before', async () => {
    const { stream, socket, closes } = connected();
    stream.flowing = false;
    socket.send(Uint8Array.of(1));
    await pause(1);
    stream.failWrite();
    await pause(1);
    assertEquals([socket.send(Uint8Array.of(2)), socket.bufferedBytes(), closes.length], [true, 0, 0]);
    stream.serve(closeFrame(4010, 'not you'));
    await pause(1);
    assertEquals(closes, [{ code: 4010, reason: 'not you', clean: true }]);
    stream.serve(null);
    await pause(1);
    assertEquals(stream.closed, true);
  });

  test('a failed write ends the connection though the peer says nothing', async () => {
    const { stream, socket, closes } = connected();
    stream.flowing = false;
    socket.send(Uint8Array.of(1));
    await pause(1);
    stream.failWrite();
    await until('the loss', () => closes.length === 1, 3_000);
    assertEquals([closes[0]?.code, closes[0]?.clean, stream.closed], [1006, false, true]);
  });
});

describe('reads', () => {
  test('what came with the answer is read first', async () => {
    const { stream, frames, socket } = connected(served(2, Uint8Array.of(1)));
    stream.serve(served(2, Uint8Array.of(2)));
    await pause(1);
    assertEquals(frames, [[1], [2]]);
    socket.terminate();
  });

  for (const [name, end] of [['the end', null], ['an error', new Error('reset by peer')]] as const) {
    test(`${name} without a close is a loss`, async () => {
      const { stream, closes } = connected();
      stream.serve(end);
      await pause(1);
      const reason = end === null ? 'connection lost' : 'reset by peer';
      assertEquals([closes, stream.closed], [[{ code: 1006, reason, clean: false }], true]);
    });
  }

  const bad: readonly [string, Uint8Array, number, LinkClose][] = [
    [
      'R111: a frame above the limit',
      served(2, new Uint8Array(maxFrameBytes + 1)).subarray(0, 10),
      4400,
      { code: 4400, reason: 'frame of 100001 bytes, limit 100000', clean: false },
    ],
    ['a text frame', served(1, utf8('x')), 4400, {
      code: 4400,
      reason: 'text frame on a binary connection',
      clean: false,
    }],
    ['a masked frame', frame(2, utf8('x')), 1002, {
      code: 1006,
      reason: 'protocol error: a server must not mask',
      clean: false,
    }],
  ];
  for (const [name, bytes, said, told] of bad) {
    test(`${name} ends the connection; nothing behind it is handed on`, async () => {
      const { stream, frames, closes } = connected();
      stream.serve(bytes, served(2, Uint8Array.of(1)));
      await pause(5);
      assertEquals(written(stream).map((each) => each.slice(0, 3)), [[8, ...code(said)]]);
      stream.serve(null);
      await until('the close', () => closes.length === 1);
      assertEquals([frames, closes, stream.closed], [[], [told], true]);
    });
  }
});

describe('closes', () => {
  test('of the peer: answered in kind, told at once; what is sent then goes nowhere', async () => {
    for (const [bytes, echoed] of [[closeFrame(4001, 'done'), code(4001)], [served(8, utf8('')), []]] as const) {
      const { stream, socket, closes } = connected();
      stream.serve(bytes);
      await pause(1);
      const clean = { code: 4001, reason: 'done', clean: true };
      const lost = { code: 1006, reason: 'connection lost', clean: false };
      assertEquals([written(stream), closes], [[[8, ...echoed]], [echoed.length > 0 ? clean : lost]]);
      assertEquals([socket.send(Uint8Array.of(1)), stream.closed], [true, false]);
      stream.serve(null);
      await pause(1);
      assertEquals([stream.closed, stream.writes.length], [true, 1]);
    }
  });

  test('of our own: behind what was sent before, once, and done with the answer', async () => {
    const { stream, socket, closes } = connected();
    socket.send(Uint8Array.of(1));
    socket.close(4002, 'x');
    socket.close(4003, 'y');
    await pause(1);
    assertEquals(written(stream), [[2, 1], [8, ...code(4002), 120]]);
    assertEquals(closes.length, 0);
    stream.serve(closeFrame(4002));
    await pause(1);
    assertEquals(closes, [{ code: 4002, reason: 'x', clean: true }]);
    assertEquals(written(stream).length, 2);
    stream.serve(null);
    await pause(1);
    assertEquals(stream.closed, true);
  });

  test('FB-092: a peer that is silent, or keeps the connection, is dropped in time', async () => {
    const silent = connected();
    const holding = connected();
    silent.stream.flowing = false;
    const start = performance.now();
    silent.socket.close(4000, 'bye');
    holding.stream.serve(closeFrame(1000));
    await until('both are dropped', () => silent.stream.closed && holding.stream.closed, 3_000);
    assertLess(performance.now() - start, 2_500);
    await pause(1);
    assertEquals([silent.closes[0]?.code, holding.closes[0]?.code], [4000, 1000]);
    assert(silent.closes.length === 1 && holding.closes.length === 1);
  });
});
