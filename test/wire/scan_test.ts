import { describe, test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { limits } from '../../src/limits.ts';
import { decode, encode } from '../../src/wire/codec.ts';
import { DecodeError, FrameError } from '../../src/wire/errors.ts';
import { scanItem, scanSequence } from '../../src/wire/scan.ts';

function code(...bytes: number[]): string {
  return assertThrows(() => scanItem(new Uint8Array(bytes), 0, bytes.length), FrameError).code;
}

describe('scan', () => {
  test('finds the ends of the items of a sequence', () => {
    const parts = [encode([1, { a: 'x' }]), encode(new Map([[1, new Date(5)]])), encode(-1.5), encode(2n ** 70n)];
    const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    const ends: number[] = [];
    let position = 0;
    for (const part of parts) {
      bytes.set(part, position);
      ends.push(position += part.length);
    }
    assertEquals(scanSequence(bytes, 0, bytes.length), ends);
  });

  test('R111: claims beyond the input are refused before anything is allocated', () => {
    assertEquals(code(0x9a, 0xff, 0xff, 0xff, 0xff), 'length');
    assertEquals(code(0xba, 0x7f, 0xff, 0xff, 0xff, 0x00), 'length');
    assertEquals(code(0x7a, 0xff, 0xff, 0xff, 0xff, 0x41), 'length');
    assertEquals(code(0x5b, 0, 0, 0, 1, 0, 0, 0, 0), 'length');
    assertEquals(code(0x82, 0x01), 'length');
    assertEquals(code(0x82, 0x81, 0x01), 'truncated');
    assertEquals(code(0x19, 0x01), 'truncated');
    assertEquals(code(), 'truncated');
  });

  test('indefinite lengths, reserved heads and stray breaks are refused', () => {
    for (const byte of [0x5f, 0x7f, 0x9f, 0xbf, 0xff, 0x1c, 0x3d, 0xfe]) assertEquals(code(byte, 0xff), 'encoding');
  });

  test('records, packed values, shared references and foreign tags are refused', () => {
    for (
      const tag of [
        [0xd9, 0xdf, 0xff],
        [0xd9, 0xdf, 0xfe],
        [0xd9, 0xe0, 0x00],
        [0xd8, 0x69],
        [0xd8, 0x33],
        [0xc6],
        [0xd8, 28],
        [0xd8, 29],
        [0xd8, 27],
        [0xc2],
        [0xc0],
        [0xd9, 0xdf, 0xf9],
      ]
    ) {
      assertEquals(code(...tag, 0x81, 0x01), 'tag');
    }
    assertEquals(code(0xe0), 'simple-value');
    assertEquals(code(0xf8, 0x20), 'simple-value');
  });

  test('a tag with content of another type is refused', () => {
    assertEquals(code(0xd9, 0x01, 0x03, 0x81, 0x01), 'tag');
    assertEquals(code(0xd9, 0x01, 0x02, 0xa0), 'tag');
    assertEquals(code(0xd8, 0x40, 0x61, 0x61), 'tag');
  });

  test('R111: depth and number of items are bounded', () => {
    const deep = new Uint8Array(100_000).fill(0x81);
    assertEquals(assertThrows(() => scanItem(deep, 0, deep.length), FrameError).code, 'too-deep');
    const tags = new Uint8Array(300).fill(0xc1);
    assertEquals(assertThrows(() => scanItem(tags, 0, tags.length), FrameError).code, 'too-deep');
    const many = new Uint8Array(limits.itemsPerFrame + 10).fill(0x00);
    new DataView(many.buffer).setUint32(1, limits.itemsPerFrame + 5);
    many[0] = 0x9a;
    assertEquals(assertThrows(() => scanItem(many, 0, many.length), FrameError).code, 'too-many-items');
  });

  test('fuzz: random bytes and mutated messages end in a value, a FrameError or a DecodeError, and pollute nothing', () => {
    const random = seededRandom(7);
    const int = (below: number) => Math.floor(random.next() * below);
    const sample = encode([1, '/user/a', null, {
      list: [1, 'two', new Date(3), new Map([['k', new Set([1n])]]), new Error('x'), /r/g, new Uint8Array(20)],
      __proto_: 1,
    }]);
    let values = 0;
    for (let round = 0; round < 20_000; round++) {
      const bytes = round % 2 === 0 ? Uint8Array.from({ length: 1 + int(40) }, () => int(256)) : sample.slice();
      if (round % 2 === 1) { for (let i = 0; i <= int(4); i++) bytes[int(bytes.length)] = int(256); }
      try {
        decode(bytes);
        values++;
      } catch (error) {
        assert(error instanceof FrameError || error instanceof DecodeError, String(error));
      }
    }
    assert(values > 100);
    assertEquals(Object.keys(Object.prototype), []);
    assertEquals(decode(sample) !== undefined, true);
  });

  test('a key __proto__ from outside cannot pollute', () => {
    const bytes = new Uint8Array([0xa1, 0x69, ...new TextEncoder().encode('__proto__'), 0xa1, 0x61, 0x78, 0x01]);
    const value = decode(bytes) as Record<string, unknown>;
    assertEquals(Object.getPrototypeOf(value), Object.prototype);
    assertEquals((value as { x?: unknown }).x, undefined);
  });
});
