import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { chunkBytes, FrameOutput, maskInPlace, MaskKeys } from '../../../adapters/shared/ws_client_output.ts';

/** Keys that are easy to tell apart: 1 2 3 4, 5 6 7 8, … */
function countingKeys(): MaskKeys {
  let next = 0;
  return new MaskKeys((bytes) => bytes.forEach((_, i) => bytes[i] = ++next & 255));
}

function counted(size: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, i) => (i * 7 + (i >> 8)) & 255);
}

/** Everything that waits, written `step` bytes at a time. */
function drain(output: FrameOutput, step = Infinity): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let next = output.next(); next !== undefined; next = output.next()) {
    const part = next.slice(0, Math.min(step, next.length));
    parts.push(part);
    output.wrote(part.length);
  }
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

interface Read {
  readonly first: number;
  readonly header: number;
  readonly key: number[];
  readonly payload: Uint8Array;
}

/** A slow and plain reader of masked frames. */
function readFrames(bytes: Uint8Array): Read[] {
  const frames: Read[] = [];
  for (let at = 0; at < bytes.length;) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at);
    assert((view.getUint8(1) & 0x80) !== 0, 'not masked');
    const short = view.getUint8(1) & 0x7f;
    const size = short < 126 ? short : short === 126 ? view.getUint16(2) : Number(view.getBigUint64(2));
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    const key = [...bytes.subarray(at + header, at + header + 4)];
    const start = at + header + 4;
    const payload = bytes.slice(start, start + size).map((byte, i) => byte ^ (key[i % 4] as number));
    frames.push({ first: view.getUint8(0), header, key, payload });
    at = start + size;
  }
  return frames;
}

describe('masking', () => {
  test('every alignment, length and offset gives what a byte at a time gives', () => {
    const key = Uint8Array.of(0x81, 0x02, 0xf3, 0x44);
    for (let start = 0; start < 9; start += 1) {
      for (const size of [0, 1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 63, 64, 67]) {
        for (let offset = 0; offset < 5; offset += 1) {
          const bytes = counted(96);
          const expected = bytes.map((byte, i) =>
            i >= start && i < start + size ? byte ^ (key[(offset + i - start) % 4] as number) : byte
          );
          maskInPlace({ bytes, words: new Uint32Array(bytes.buffer) }, start, start + size, key, offset);
          assertEquals(bytes, expected, `start ${start}, size ${size}, offset ${offset}`);
        }
      }
    }
  });

  test('every frame has a key of its own, also past the end of a batch of keys', () => {
    const output = new FrameOutput(new MaskKeys((bytes) => crypto.getRandomValues(bytes)));
    for (let i = 0; i < 3_000; i += 1) output.add(2, Uint8Array.of(i & 255));
    const frames = readFrames(drain(output));
    assertEquals(frames.length, 3_000);
    assert(new Set(frames.map(({ key }) => key.join())).size > 2_990);
    const counting = new FrameOutput(countingKeys());
    counting.add(2, counted(1));
    counting.add(2, counted(1));
    assertEquals(readFrames(drain(counting)).map(({ key }) => key), [[1, 2, 3, 4], [5, 6, 7, 8]]);
  });
});

describe('frames', () => {
  const sizes: readonly [number, number][] = [
    [0, 2],
    [1, 2],
    [125, 2],
    [126, 4],
    [127, 4],
    [65_535, 4],
    [65_536, 10],
    [1_048_576, 10],
  ];
  for (const [size, header] of sizes) {
    test(`of ${size} bytes have a header of ${header}`, () => {
      const output = new FrameOutput(countingKeys());
      const whole = counted(size + 8);
      output.add(2, whole.subarray(5, size + 5));
      assertEquals(output.bytes, size + header + 4);
      const [read, ...others] = readFrames(drain(output));
      assertEquals([read?.first, read?.header, others.length, output.bytes], [0x82, header, 0, 0]);
      assertEquals(read?.payload, whole.slice(5, size + 5));
    });
  }

  test('a close carries its code and reason; without a code it is empty', () => {
    const output = new FrameOutput(countingKeys());
    output.addClose(4123, 'grün');
    output.addClose(1005, 'ignored');
    output.addClose(4000, 'x'.repeat(200));
    const [full, empty, long] = readFrames(drain(output));
    assertEquals([full?.first, empty?.first], [0x88, 0x88]);
    assertEquals(full?.payload, Uint8Array.of(4123 >> 8, 4123 & 255, ...new TextEncoder().encode('grün')));
    assertEquals([empty?.payload.length, long?.payload.length], [0, 125]);
  });
});

describe('writing', () => {
  test('small frames share a write, and partial writes go on where they stopped', () => {
    const output = new FrameOutput(countingKeys());
    for (let i = 0; i < 100; i += 1) output.add(2, counted(i));
    assertEquals(output.next()?.length, output.bytes);
    const frames = readFrames(drain(output, 7));
    assertEquals(frames.map(({ payload }) => payload), Array.from({ length: 100 }, (_, i) => counted(i)));
  });

  test('what is added while a write is under way goes into the next one', () => {
    const output = new FrameOutput(countingKeys());
    output.add(2, counted(10));
    const first = output.next() as Uint8Array;
    const before = [...first];
    output.add(2, counted(20));
    output.add(2, counted(30));
    assertEquals([[...first], first.length, output.bytes], [before, 16, 16 + 26 + 36]);
    output.wrote(10);
    assertEquals([output.next()?.length, output.bytes], [6, 6 + 26 + 36]);
    output.wrote(6);
    assertEquals([output.next()?.length, output.bytes], [26 + 36, 26 + 36]);
  });

  test('frames go over the edges of chunks, at every place', () => {
    for (let left = 0; left < 24; left += 1) {
      const output = new FrameOutput(countingKeys());
      output.add(2, counted(chunkBytes - 14 - left));
      output.add(2, counted(300));
      output.add(2, counted(3));
      const frames = readFrames(drain(output));
      assertEquals(frames.map(({ payload }) => payload.length), [chunkBytes - 14 - left, 300, 3]);
      assertEquals(frames[1]?.payload, counted(300), `${left} bytes left`);
    }
  });

  test('memory follows what waits: nothing is left after clear, and a chunk under way is not reused', () => {
    const output = new FrameOutput(countingKeys());
    output.add(2, counted(100));
    const under = output.next() as Uint8Array;
    const before = [...under];
    output.add(2, counted(100));
    output.clear();
    assertEquals([output.bytes, output.next()], [0, undefined]);
    output.wrote(5);
    assertEquals(output.bytes, 0);
    const other = new FrameOutput(countingKeys());
    for (let i = 0; i < 20; i += 1) other.add(2, new Uint8Array(chunkBytes));
    assertEquals([...under], before);
  });
});
