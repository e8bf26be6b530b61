import { assertEquals, assertNotStrictEquals, assertStrictEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { Codec } from '../../src/wire/codec.ts';
import { scratchCopy } from '../../src/wire/scratch.ts';

describe('scratch', () => {
  const bytes = Uint8Array.from({ length: 600 }, (_, i) => i & 0xff);

  test('holds the bytes asked for, in the same view for the same length', () => {
    const first = scratchCopy(bytes, 3, 7)!;
    assertEquals([...first], [3, 4, 5, 6]);
    const second = scratchCopy(bytes, 9, 13)!;
    assertEquals([...second], [9, 10, 11, 12]);
    assertStrictEquals(second, first);
    assertEquals(scratchCopy(bytes, 5, 5)!.length, 0);
    assertEquals(scratchCopy(bytes, 0, 512)!.length, 512);
  });

  test('takes nothing that is longer than it', () => {
    assertEquals(scratchCopy(bytes, 0, 513), undefined);
  });

  test('what was decoded stays when the next message is decoded', () => {
    const codec = new Codec();
    const values = [new Uint8Array([1, 2, 3]), 'abc', { deep: [new Uint8Array([4])] }];
    const first = codec.decode(codec.encode(values));
    codec.decode(codec.encode([new Uint8Array([9, 9, 9]), 'xyz', { deep: [new Uint8Array([9])] }]));
    assertEquals(first, values);
  });

  test('a codec of a class that decodes in the middle of a message leaves the rest of it alone', () => {
    class Boxed {
      readonly bytes: Uint8Array;
      constructor(bytes: Uint8Array) {
        this.bytes = bytes;
      }
    }
    const codec: Codec = new Codec();
    codec.register({
      Class: Boxed,
      name: 'boxed',
      toWire: (value: Boxed) => value.bytes,
      fromWire: (wire: unknown) => {
        assertEquals(codec.decode(wire as Uint8Array), ['inside']);
        return new Boxed(wire as Uint8Array);
      },
    });
    const inside = codec.encode(['inside']);
    const value = [new Boxed(inside), 'after', [1, 2, 3]];
    const decoded = codec.decode(codec.encode(value));
    assertEquals(decoded, value);
    assertNotStrictEquals(decoded, value);
  });
});
