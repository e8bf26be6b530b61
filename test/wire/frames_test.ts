import { describe, test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { Codec, encode } from '../../src/wire/codec.ts';
import { FrameError } from '../../src/wire/errors.ts';
import {
  fitsFrame,
  type Frame,
  FRAME_HEADER_BYTES,
  FrameReader,
  FrameWriter,
  linkFrame,
  PartWriter,
} from '../../src/wire/frames.ts';

const codec = new Codec();

function batch(...envelopes: unknown[]): Uint8Array {
  const writer = new FrameWriter('user');
  for (const envelope of envelopes) writer.append(encode(envelope));
  return writer.take();
}

function code(frame: Uint8Array, reader = new FrameReader(codec)): string {
  return assertThrows(() => reader.read(frame), FrameError).code;
}

function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i % 251);
}

describe('frames', () => {
  test('several envelopes go in one frame, in order; the writer is reused', () => {
    const writer = new FrameWriter('system');
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 500; i++) writer.append(encode([i, 'x'.repeat(i)]));
      assertEquals(writer.count, 500);
      const frame = writer.take();
      assertEquals(writer.count, 0);
      const read = new FrameReader(codec).read(frame);
      assert(read.kind === 'messages');
      assertEquals([read.lane, read.failed, read.envelopes.length], ['system', 0, 500]);
      assertEquals(read.envelopes[499], [499, 'x'.repeat(499)]);
    }
  });

  test('a taken frame is not changed by what the writer does next', () => {
    const writer = new FrameWriter('user');
    writer.append(encode([1, 'first']));
    const frame = writer.take();
    const copy = frame.slice();
    writer.append(encode([2, 'second']));
    assertEquals(frame, copy);
  });

  test('what two writers have is one frame of the second lane, and both are empty', () => {
    const first = new FrameWriter('system');
    const second = new FrameWriter('user');
    first.append(encode([13, 'beat']));
    second.append(encode([1, 'a']));
    second.append(encode([1, 'b']));
    const frame = new FrameReader(codec).read(second.takeBehind(first));
    assert(frame.kind === 'messages');
    assertEquals([frame.lane, frame.envelopes], ['user', [[13, 'beat'], [1, 'a'], [1, 'b']]]);
    assertEquals([first.count, first.size, second.count, second.size], [0, FRAME_HEADER_BYTES, 0, FRAME_HEADER_BYTES]);
  });

  test('link frames', () => {
    assertEquals(new FrameReader(codec).read(linkFrame('use', 7)), { kind: 'use', link: 7 });
    assertEquals(new FrameReader(codec).read(linkFrame('ready', 0)), { kind: 'ready', link: 0 });
    assertEquals(code(linkFrame('use', 7).slice(0, 7)), 'length');
  });

  test('R111: a large message travels in parts, with the other lane in between', () => {
    const body = bytesOf(3 * limits.frameBytes + 5);
    const encoded = encode([1, body]);
    assert(!fitsFrame(encoded));
    const parts = new PartWriter('user', encoded);
    const reader = new FrameReader(codec);
    let got: unknown;
    let frames = 0;
    while (!parts.done) {
      const frame = parts.next();
      assert(frame.length <= limits.frameBytes);
      frames++;
      const read = reader.read(frame);
      if (read.kind === 'messages') got = read.envelopes[0]![1];
      else assertEquals(read.kind, 'piece');
      const other = new FrameWriter('system');
      other.append(encode([13]));
      assertEquals(reader.read(other.take()).kind, 'messages');
    }
    assertEquals(frames, 4);
    assertEquals(got, body);
    assertEquals(reader.read(batch([1])).kind, 'messages');
  });

  test('R111: impossible parts are refused', () => {
    const encoded = encode([1, bytesOf(2 * limits.frameBytes)]);
    const frames: Uint8Array[] = [];
    for (const parts = new PartWriter('user', encoded); !parts.done;) frames.push(parts.next());
    assertEquals(code(frames[1]!), 'parts');
    const interrupted = new FrameReader(codec);
    interrupted.read(frames[0]!);
    assertEquals(code(batch([1]), interrupted), 'parts');
    assertEquals(code(frames[0]!, interrupted), 'parts');
    const early = new FrameReader(codec);
    early.read(frames[0]!);
    assertEquals(code(frames[2]!, early), 'parts');
    const huge = frames[0]!.slice();
    new DataView(huge.buffer).setUint32(4, limits.messageBytes + 1);
    assertEquals(code(huge), 'message-too-large');
    const system = new PartWriter('system', encoded).next();
    new DataView(system.buffer).setUint32(4, limits.systemMessageBytes);
    assertEquals(new FrameReader(codec).read(system).kind, 'piece');
    new DataView(system.buffer).setUint32(4, limits.systemMessageBytes + 1);
    assertEquals(code(system), 'message-too-large');
    const less = frames[0]!.slice();
    new DataView(less.buffer).setUint32(4, 100);
    assertEquals(code(less), 'parts');
    assertEquals(code(frames[0]!.slice(0, 8)), 'truncated');
  });

  test('what is not a frame of ours has a code', () => {
    const good = batch([1, 2]);
    const change = (index: number, value: number) => {
      const frame = good.slice();
      frame[index] = value;
      return frame;
    };
    assertEquals(code(new Uint8Array(0)), 'header');
    assertEquals(code(change(0, 0)), 'header');
    assertEquals(code(change(1, 2)), 'header');
    assertEquals(code(change(2, 2)), 'header');
    assertEquals(code(change(3, 6)), 'header');
    assertEquals(code(new Uint8Array(limits.frameBytes + 1)), 'frame-too-large');
    assertEquals(code(good.slice(0, good.length - 1)), 'length');
  });

  test('R115: an envelope is an array that starts with its code', () => {
    for (const bad of [1, 'text', {}, [], ['x'], [-1], [1.5], [null], [[1]], new Map([[1, 1]]), [2n ** 60n]]) {
      assertEquals(code(batch([1], bad)), 'envelope', JSON.stringify(String(bad)));
    }
    for (const good of [0, 23, 24, 255, 65_535, 2 ** 31]) {
      assertEquals(new FrameReader(codec).read(batch([good])).kind, 'messages');
    }
    const long = [7, ...Array.from({ length: 300 }, (_, i) => i)];
    const read = new FrameReader(codec).read(batch(long));
    assert(read.kind === 'messages');
    assertEquals(read.envelopes[0]![300], 299);
  });

  test('FB-108: one message that cannot be read costs itself only', () => {
    class Money {}
    const sender = new Codec({
      classes: [{ name: 'Money', Class: Money, toWire: () => 1, fromWire: () => new Money() }],
    });
    const writer = new FrameWriter('user');
    writer.append(encode([1, 'before']));
    writer.append(sender.encode([1, new Money()]));
    writer.append(encode([1, 'after']));
    const read = new FrameReader(codec).read(writer.take());
    assert(read.kind === 'messages');
    assertEquals(read.failed, 1);
    assert(read.failure!.includes('Money'));
    assertEquals(read.envelopes.map((envelope) => envelope[1]), ['before', 'after']);
  });

  test('shared references do not leak from one message to the next', () => {
    const twice = { n: 1 };
    const writer = new FrameWriter('user');
    writer.append(encode([1, twice, twice]));
    writer.append(encode([2, [twice], [twice]]));
    const read = new FrameReader(codec).read(writer.take());
    assert(read.kind === 'messages');
    const [first, second] = read.envelopes as readonly any[];
    assert(
      first[1] === first[2] && second[1] !== second[2] && second[1][0] === second[2][0] && first[1] !== second[1][0],
    );
  });

  test('S7: random changes to frames give frames or FrameErrors', () => {
    const random = seededRandom(11);
    const int = (below: number) => Math.floor(random.next() * below);
    const good = batch([1, '/user/a', null, { a: [1, 2, { b: new Date(1) }] }], [13, 5], [1, new Map([[1, 'x']])]);
    for (let round = 0; round < 20_000; round++) {
      const frame = good.slice(0, int(10) === 0 ? int(good.length) : good.length);
      for (let i = 0; i <= int(3) && frame.length > 0; i++) frame[int(frame.length)] = int(256);
      try {
        new FrameReader(codec).read(frame);
      } catch (error) {
        assert(error instanceof FrameError, String(error));
      }
    }
  });
});

test('R112: a message in very many parts costs in proportion to its bytes', () => {
  const whole = encode([1, 'x'.repeat(2 ** 20)]);
  const read = (size: number) => {
    const reader = new FrameReader(new Codec());
    const started = performance.now();
    let last: Frame | undefined;
    for (let at = 0; at < whole.length; at += size) {
      const first = at === 0;
      const kind = first ? 1 : at + size >= whole.length ? 3 : 2;
      const piece = whole.slice(at, at + size);
      const frame = new Uint8Array((first ? 8 : 4) + piece.length);
      frame.set([0x53, 1, 1, kind]);
      if (first) new DataView(frame.buffer).setUint32(4, whole.length);
      frame.set(piece, first ? 8 : 4);
      last = reader.read(frame);
    }
    assert(last?.kind === 'messages' && last.envelopes.length === 1);
    return performance.now() - started;
  };
  read(1_024);
  // Some 65 000 parts: were the cost of a part that of all parts before it, this would take minutes.
  assert(read(16) < 10_000);
});
