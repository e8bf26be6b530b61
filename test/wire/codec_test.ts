import { describe, test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertStrictEquals, assertThrows } from '@std/assert';
import { fastPaths } from '../../src/fast_paths.ts';
import { Codec, decode, encode } from '../../src/wire/codec.ts';
import { MessageTooLargeError, SerializationError } from '../../src/wire/errors.ts';

function roundTrip<T>(value: T): T {
  return decode(encode(value)) as T;
}

function refusal(value: unknown): SerializationError {
  return assertThrows(() => encode(value), SerializationError);
}

describe('codec: fidelity', () => {
  test('R121: primitives', () => {
    const values = [
      undefined,
      null,
      true,
      false,
      0,
      1,
      -1,
      23,
      24,
      255,
      256,
      65535,
      65536,
      2 ** 31,
      -(2 ** 31),
      2 ** 32,
    ];
    for (
      const value of [...values, -(2 ** 32) - 1, 2 ** 53, 0.1, NaN, Infinity, -Infinity, '', 'ä€😀', 'x'.repeat(70_000)]
    ) {
      assert(Object.is(roundTrip(value), value), String(value).slice(0, 50));
    }
  });

  test('R121: negative zero at every place', () => {
    assert(Object.is(roundTrip(-0), -0));
    assert(Object.is(roundTrip([-0])[0], -0));
    assert(Object.is(roundTrip({ a: { b: -0 } }).a.b, -0));
    assert(Object.is(roundTrip(new Map([['k', -0]])).get('k'), -0));
    assert(Object.is(roundTrip(0), 0));
  });

  test('R121: bigint of any size', () => {
    for (
      const value of [0n, 5n, -5n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 64n), -(2n ** 64n) - 1n, 7n ** 900n]
    ) {
      assertStrictEquals(roundTrip(value), value);
    }
  });

  test('R121: dates, also invalid, early and far', () => {
    for (const time of [0, 1, -1, 1_700_000_000_123, -62_135_596_800_000, 8.64e15, -8.64e15, 8.64e15 - 1, 1e15 + 1]) {
      assertStrictEquals(roundTrip(new Date(time)).getTime(), time);
    }
    const invalid = roundTrip(new Date(NaN));
    assertInstanceOf(invalid, Date);
    assert(Number.isNaN(invalid.getTime()));
  });

  test('R121: Map and Set with any keys, nested', () => {
    const value = new Map<unknown, unknown>([[1, new Set([1, 'a', null])], ['1', {
      m: new Map([[{ k: 1 }, undefined]]),
    }]]);
    assertEquals(roundTrip(value) as unknown, value as unknown);
    assertEquals(roundTrip({ plain: new Map([['a', { b: 1 }]]) }), { plain: new Map([['a', { b: 1 }]]) });
    const keyed = roundTrip(new Map([[-1, 'n'], [NaN, 'nan']]) as Map<unknown, string>);
    assertEquals([keyed.get(-1), keyed.get(NaN)], ['n', 'nan']);
  });

  test('R121: bytes, every typed array, ArrayBuffer, DataView; offsets do not matter', () => {
    const classes = [
      Uint8Array,
      Uint8ClampedArray,
      Uint16Array,
      Uint32Array,
      Int8Array,
      Int16Array,
      Int32Array,
      Float32Array,
      Float64Array,
    ];
    for (const Class of classes) {
      const value = new Class(new ArrayBuffer(64), 8, 3);
      value.set([1, 2, 250]);
      const back = roundTrip(['pad', value])[1] as typeof value;
      assertStrictEquals(back.constructor, Class);
      assertEquals([...back], [...value]);
    }
    assertEquals(roundTrip(new BigInt64Array([-1n, 2n])), new BigInt64Array([-1n, 2n]));
    assertEquals(roundTrip(new BigUint64Array([2n ** 64n - 1n])), new BigUint64Array([2n ** 64n - 1n]));
    const buffer = roundTrip(new Uint8Array([1, 2, 3]).buffer);
    assertInstanceOf(buffer, ArrayBuffer);
    assertEquals([...new Uint8Array(buffer)], [1, 2, 3]);
    const view = roundTrip(new DataView(new Uint8Array([9, 1, 2, 9]).buffer, 1, 2));
    assertInstanceOf(view, DataView);
    assertEquals([view.byteLength, view.getUint16(0)], [2, 0x0102]);
  });

  test('R121: RegExp and URL', () => {
    const pattern = roundTrip(/a\/b+/giu);
    assertEquals([pattern.source, pattern.flags], ['a\\/b+', 'giu']);
    const url = roundTrip(new URL('https://example.org/a?b=ä'));
    assertInstanceOf(url, URL);
    assertEquals(url.href, 'https://example.org/a?b=%C3%A4');
  });

  test('R121: errors keep class, name, message, cause and code', () => {
    const error = Object.assign(new TypeError('bad', { cause: new RangeError('deep') }), { code: 'E_BAD' });
    const back = roundTrip({ error }).error;
    assertInstanceOf(back, TypeError);
    assertEquals([back.name, back.message, back.code], ['TypeError', 'bad', 'E_BAD']);
    assertInstanceOf(back.cause, RangeError);
    assertEquals((back.cause as Error).message, 'deep');
    class OrderError extends Error {
      override readonly name = 'OrderError';
    }
    const own = roundTrip(new OrderError('no'));
    assertEquals([own instanceof Error, own.name, own.message], [true, 'OrderError', 'no']);
    assert(!own.stack!.includes('codec_test'));
    const many = roundTrip(new AggregateError([new SyntaxError('s')], 'all'));
    assertInstanceOf(many, AggregateError);
    assertInstanceOf(many.errors[0], SyntaxError);
  });

  test('R121: undefined and holes', () => {
    assertEquals(roundTrip([1, undefined, 2]), [1, undefined, 2]);
    assertEquals(Object.keys(roundTrip({ a: undefined })), ['a']);
    // deno-lint-ignore no-sparse-arrays
    const back = roundTrip([1, , 3]);
    assertEquals([back.length, 1 in back, back[1]], [3, true, undefined]);
  });

  test('R121: __proto__ and constructor are data', () => {
    const value = JSON.parse('{"__proto__":{"polluted":true},"constructor":"x","a":1}') as Record<string, unknown>;
    const back = roundTrip({ value }).value;
    assertEquals(Object.keys(back), ['__proto__', 'constructor', 'a']);
    assertEquals(Object.getPrototypeOf(back), Object.prototype);
    assertEquals(Object.getOwnPropertyDescriptor(back, '__proto__')?.value, { polluted: true });
    assertEquals(({} as Record<string, unknown>).polluted, undefined);
    assertEquals(roundTrip({ hasOwnProperty: 1, toString: 2, valueOf: 3 }) as unknown, {
      hasOwnProperty: 1,
      toString: 2,
      valueOf: 3,
    });
  });

  test('a null-prototype object becomes a plain one; an iterator on it is not run', () => {
    const value = Object.assign(Object.create(null) as Record<PropertyKey, unknown>, { a: 1 });
    value[Symbol.iterator] = () => {
      throw new Error('must not run');
    };
    assertEquals(roundTrip(value), { a: 1 });
  });

  test('text with a byte-order mark, also as a key', () => {
    const text = `\ufeff${'x'.repeat(100)}`;
    assertEquals(roundTrip([text, { [text]: 1 }]), [text, { [text]: 1 }]);
    assertEquals(roundTrip('\ufeffshort'), '\ufeffshort');
  });

  test('lone surrogates become U+FFFD', () => {
    const back = roundTrip(`a\ud800b${'x'.repeat(100)}`);
    assert(back.startsWith('a') && !back.includes('\ud800') && back.includes('\ufffd'));
  });

  test("large objects around the library's edges", () => {
    for (const count of [23, 24, 255, 256, 65_535, 65_536]) {
      const value = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
      const back = roundTrip(value);
      assertEquals([Object.keys(back).length, back[`k${count - 1}`]], [count, count - 1]);
    }
    for (const length of [63, 64, 65, 255, 256, 32_767, 65_535, 65_536]) {
      for (const piece of ['a', 'ä', '😀']) {
        assertStrictEquals(roundTrip([piece.repeat(length)])[0], piece.repeat(length));
      }
    }
  });
});

describe('codec: sharing', () => {
  test('R122: shared references stay shared', () => {
    const address = { city: 'X', seen: new Date(5) };
    const tags = new Set(['a']);
    const back = roundTrip({ home: address, work: address, list: [tags, tags, address.seen] }) as any;
    assertStrictEquals(back.home, back.work);
    assertStrictEquals(back.list[0], back.list[1]);
    assertStrictEquals(back.list[2], back.home.seen);
    assertEquals(back.home.city, 'X');
  });

  test('R122: sharing inside shared things, many objects, Map keys', () => {
    const inner = { n: -0 };
    const outer = { inner, again: inner };
    const filler = Array.from({ length: 200 }, (_, i) => ({ i }));
    const back = roundTrip({ filler, a: outer, b: outer, map: new Map([[inner, outer]]) });
    assertStrictEquals(back.a, back.b);
    assertStrictEquals(back.a.inner, back.a.again);
    assertStrictEquals([...back.map.keys()][0], back.a.inner);
    assertStrictEquals([...back.map.values()][0], back.a);
  });

  test('R121: cycles are refused by name, whatever they go through', () => {
    const value: any = { a: { list: [1] } };
    value.a.list.push(value.a);
    assertEquals(refusal(value).field, 'a.list[1]');
    const map = new Map<string, unknown>();
    map.set('self', map);
    assert(refusal({ map }).message.includes('cycle'));
    const error = new Error('x');
    error.cause = error;
    assert(refusal(error).message.includes('cycle'));
  });
});

describe('codec: what goes to several receivers', () => {
  test('is the same bytes for each, whatever is encoded between, and bounded the same', () => {
    const codec = new Codec();
    const message = [13, 'beat', { lost: ['a', 'b'] }];
    const other = [14, 'x'.repeat(100)];
    for (const once of [true, false]) {
      fastPaths.encodedOnce = once;
      try {
        for (let receiver = 0; receiver < 4; receiver++) {
          assertEquals(decode(codec.encodeAgain(message, 1_000)), message);
          codec.encodeShared(other);
        }
        assertEquals(decode(codec.encodeAgain(other, 1_000)), other);
        assertEquals(decode(codec.encodeAgain(message, 1_000)), message);
        for (let receiver = 0; receiver < 3; receiver++) {
          assertThrows(() => codec.encodeAgain(other, 50), MessageTooLargeError);
        }
      } finally {
        fastPaths.encodedOnce = true;
      }
    }
  });

  test('takes no bytes that another encode overwrites', () => {
    const codec = new Codec();
    const message = [1, 'kept'];
    codec.encodeAgain(message, 1_000);
    const second = codec.encodeAgain(message, 1_000);
    codec.encodeShared([2, 'another']);
    assertEquals(decode(second), message);
    assertStrictEquals(codec.encodeAgain(message, 1_000), second);
  });
});
