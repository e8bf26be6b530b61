/** The short way of plain messages: the same values as the whole way, and the same refusals. */
import { afterEach, describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { fastPaths } from '../../src/fast_paths.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { batchFrame } from '../../src/wire/batch.ts';
import { Codec, decode } from '../../src/wire/codec.ts';
import { FrameError } from '../../src/wire/errors.ts';
import { type Envelope, FrameReader } from '../../src/wire/frames.ts';
import { readPlainBatch } from '../../src/wire/plain_reader.ts';
import { writePlain } from '../../src/wire/plain_writer.ts';

const codec = new Codec();
const mostBytes = 2 ** 20;
const random = seededRandom(33);
const int = (below: number): number => Math.floor(random.next() * below);
const pick = <T>(items: readonly T[]): T => items[int(items.length)]!;
const lengths = [0, 1, 23, 24, 48, 63, 64, 65, 84, 86, 128, 129, 255, 256, 21_845, 21_846, 65_536];

function text(): string {
  const character = pick(['x', 'x', 'x', 'ä', '€', '😀']);
  return character.repeat(int(20) === 0 ? pick(lengths) : int(12));
}

function plain(depth: number): unknown {
  switch (int(depth > 0 ? 8 : 6)) {
    case 0:
      return pick([undefined, null, true, false]);
    case 1:
      return pick([
        0,
        23,
        24,
        255,
        256,
        65_535,
        65_536,
        2 ** 31,
        2 ** 32 - 1,
        2 ** 32,
        -1,
        -24,
        -25,
        -(2 ** 31),
        NaN,
        0.1,
      ]);
    case 2:
      return (random.next() - 0.5) * 2 ** int(70);
    case 3:
      return Uint8Array.from({ length: int(40) }, () => int(256));
    case 6:
      return Array.from({ length: int(4) }, () => plain(depth - 1));
    case 7:
      return Object.fromEntries(Array.from({ length: int(4) }, () => [text(), plain(depth - 1)]));
    default:
      return text();
  }
}

function bytesOf(value: unknown): Uint8Array | undefined {
  return writePlain(value, mostBytes)?.slice();
}

function frameOf(...envelopes: readonly unknown[]): Uint8Array<ArrayBuffer> {
  const parts = envelopes.map((envelope) => codec.encode(envelope));
  return batchFrame('user', parts, parts.reduce((size, part) => size + part.length, 0));
}

/** What comes of a frame: its messages, or why it is refused. */
function outcome(frame: Uint8Array, short: boolean): unknown {
  fastPaths.plain = short;
  try {
    return new FrameReader(codec).read(frame);
  } catch (error) {
    assert(error instanceof FrameError);
    return error.code;
  }
}

describe('plain messages', () => {
  afterEach(() => void (fastPaths.plain = true));

  test('a small value that stands for more than there is memory is left to the whole way at once', () => {
    const text = 'x'.repeat(100_000);
    for (
      const value of [new Array(2 ** 31), new Array(100_000).fill(text), {
        a: new Array(50_000).fill('ü'.repeat(10_000)),
      }]
    ) {
      assertEquals(writePlain(value, Infinity), undefined);
    }
    assertEquals(writePlain([1], Infinity) instanceof Uint8Array, true);
  });

  test('what is written is read as what it was, by either reader', () => {
    let written = 0;
    for (let round = 0; round < 1_500; round += 1) {
      const value = plain(3);
      const bytes = bytesOf(value);
      if (bytes === undefined) continue;
      written += 1;
      assertEquals(decode(bytes), value);
      const frame = frameOf([7, value], [8, round]);
      assertEquals(readPlainBatch(frame)?.map((envelope) => envelope[1]), [value, round]);
    }
    assert(written > 1_200, `${written} were plain`);
  });

  test('what the whole way writes is read the same', () => {
    for (let round = 0; round < 500; round += 1) {
      fastPaths.plain = false;
      const frame = frameOf([round, plain(3)], [1, plain(2)]);
      assertEquals(outcome(frame, true), outcome(frame, false));
    }
  });

  test('frames with wrong bytes in them come to the same, whichever way', () => {
    let refused = 0;
    for (let round = 0; round < 2_000; round += 1) {
      const frame = frameOf([40, 'name', 1.7e12, round, ['/temp/x', 0], { n: -1, list: [plain(1)] }], [1, plain(2)]);
      for (let count = 1 + int(2); count > 0; count -= 1) frame[4 + int(frame.length - 4)] = int(256);
      const cut = int(4) === 0 ? frame.slice(0, 4 + int(frame.length - 4)) : frame;
      const whole = outcome(cut, false);
      if (typeof whole === 'string') refused += 1;
      assertEquals(outcome(cut, true), whole);
    }
    assert(refused > 250, `${refused} were refused`);
  });

  test('what is not plain is left to the whole way', () => {
    const twice = { a: 1 };
    const circle: unknown[] = [];
    circle.push(circle);
    const own = Object.assign([1], { constructor: Object });
    const deep = Array.from({ length: 9 }).reduce((inner: unknown) => [inner], 1);
    class Other {}
    const throwing = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => {
        throw new Error('no');
      },
    });
    const special: readonly unknown[] = [
      -0,
      1n,
      Symbol('x'),
      () => {},
      new Date(1),
      new Map(),
      new Set(),
      /x/,
      new Error('x'),
    ];
    const objects = [
      new Other(),
      new Int8Array(1),
      Object.create(null),
      new ArrayBuffer(1),
      [twice, twice],
      circle,
      own,
      deep,
    ];
    for (const value of [...special, ...objects, throwing, '\ufefftext '.repeat(10)]) {
      assertEquals(bytesOf(value), undefined, String(typeof value));
      assertEquals(bytesOf({ value }), undefined);
    }
    for (const key of ['__proto__', 'constructor']) assertEquals(bytesOf({ ['a']: 1, [key]: 1 }), undefined);
    assertEquals(bytesOf(Array.from({ length: 20 }, () => [])), undefined);
    // After each of these it is ready for the next one.
    assertEquals(decode(bytesOf(twice)!), twice);
  });

  test('more than the bound is refused as ever', () => {
    assertEquals(writePlain('x'.repeat(100), 90), undefined);
    assert(writePlain('x'.repeat(80), 90) !== undefined);
  });

  test('text of any size survives, with its byte-order mark where it is short', () => {
    for (const length of lengths) {
      for (const value of ['x'.repeat(length), 'ä'.repeat(length), 'x'.repeat(length) + '\ud800', '\ufeffshort']) {
        const [envelope] = readPlainBatch(frameOf([1, value])) as Envelope[];
        assertEquals(envelope![1], value.replace('\ud800', '\ufffd'));
      }
    }
  });

  test('bytes that were read share no memory with the frame', () => {
    const frame = frameOf([1, new Uint8Array([1, 2, 3])]);
    const [envelope] = readPlainBatch(frame) as Envelope[];
    frame.fill(0);
    const bytes = envelope![1] as Uint8Array;
    assertEquals([...bytes], [1, 2, 3]);
    assertEquals(bytes.buffer.byteLength, 3);
  });
});
