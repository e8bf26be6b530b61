import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from '@std/assert';
import fc from 'fast-check';
import { Codec } from '../../src/wire/codec.ts';
import { DecodeError, FrameError, MessageTooLargeError, SerializationError } from '../../src/wire/errors.ts';
import type { RefResolver, WireRef } from '../../src/wire/extension.ts';
import { LeanCodec } from '../../src/wire/lean_codec.ts';

class Ref {
  readonly wire: WireRef;
  constructor(wire: WireRef) {
    this.wire = wire;
  }
}
const refs: RefResolver = {
  toWire: (value) => value instanceof Ref ? value.wire : undefined,
  fromWire: (wire) => new Ref(wire),
};
const maxBytes = 1024 * 1024;
const lean = new LeanCodec({ refs, maxBytes });
const full = new Codec({ refs, maxBytes });

const samples: unknown[] = [
  null,
  undefined,
  true,
  false,
  0,
  -0,
  1,
  -1,
  23,
  24,
  255,
  256,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 53 - 1,
  -(2 ** 53),
  1.5,
  NaN,
  Infinity,
  -Infinity,
  1e300,
  0n,
  5n,
  -5n,
  (1n << 64n) - 1n,
  1n << 64n,
  -(1n << 64n),
  -((1n << 64n) - 1n),
  12345678901234567890123n,
  '',
  'a',
  'ä€😀',
  '\ufeffbom',
  '\ufeff' + 'x'.repeat(40),
  'x'.repeat(70_000),
  [],
  [1, undefined, [null]],
  {},
  { a: 1, b: { c: [new Map()] } },
  new Map<unknown, unknown>([[1, 2], ['a', { b: 1 }], [new Map(), []]]),
  new Set([1, 'a', 2n]),
  new Date(0),
  new Date(1_700_000_000_123),
  new Date(-1),
  new Date(NaN),
  new Date(8.64e15),
  new Uint8Array([1, 2, 3]),
  new Uint8ClampedArray([1, 2]),
  new Uint16Array([1, 65_535]),
  new Int32Array([-1, 2]),
  new Float64Array([1.5, NaN]),
  new BigInt64Array([-1n]),
  new Uint8Array([9, 1, 2, 9]).subarray(1, 3),
  new Uint8Array([1, 2]).buffer,
  new DataView(new Uint8Array([9, 1, 2, 9]).buffer, 1, 2),
  /a+/giu,
  new URL('https://example.com/a?b#c'),
  { constructor: 1, other: 2 },
  JSON.parse('{"__proto__": {"polluted": true}}'),
  Array.from({ length: 300 }, (_, at) => at),
  Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, at])),
  new Ref(['', 'receiver', 'r-1', 0]),
  { deep: [new Ref(['h:1', 'uid', '/user/a', 7])] },
];

describe('the codec of callers and the codec of nodes', () => {
  test('each reads what the other writes, value by value', () => {
    for (const value of samples) {
      assertEquals(full.decode(lean.encode(value)), full.decode(full.encode(value)), `written lean: ${String(value)}`);
      assertEquals(lean.decode(full.encode(value)), full.decode(full.encode(value)), `read lean: ${String(value)}`);
      assertEquals(lean.decode(lean.encode(value)), full.decode(full.encode(value)), `both lean: ${String(value)}`);
    }
    assertEquals(({} as { polluted?: unknown }).polluted, undefined);
  });

  test('errors arrive with class, name, message, cause and code', () => {
    const error = Object.assign(new TypeError('no', { cause: new Error('deep') }), { code: 'E1' });
    for (const arrived of [full.decode(lean.encode(error)), lean.decode(full.encode(error))] as TypeError[]) {
      assertInstanceOf(arrived, TypeError);
      assertEquals([arrived.message, (arrived as { code?: unknown }).code], ['no', 'E1']);
      assertEquals((arrived.cause as Error).message, 'deep');
    }
  });

  test('random values survive in both directions', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withNullPrototype: true,
      maxDepth: 4,
    });
    fc.assert(
      fc.property(anything, (value) => {
        const expected = full.decode(full.encode(value));
        assertEquals(full.decode(lean.encode(value)), expected);
        assertEquals(lean.decode(full.encode(value)), expected);
      }),
      { numRuns: 400, seed: 4711, endOnFailure: true },
    );
  });

  test('a sequence of values', () => {
    const bytes = [...lean.encode(1), ...lean.encode([2]), ...lean.encode({ a: 3 })];
    assertEquals(lean.decodeSequence(new Uint8Array(bytes)), [1, [2], { a: 3 }]);
    assertThrows(() => lean.decode(new Uint8Array(bytes)), FrameError);
  });

  test('what occurs twice in a value from a node is one thing', () => {
    const shared = { a: 1 };
    const [first, second] = lean.decode(full.encode([shared, shared])) as unknown[];
    assertEquals(first === second, true);
  });

  test('what cannot be sent is refused by name of the field', () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const cases: [unknown, string][] = [
      [{ a: [1, { fn: () => {} }] }, "field 'a[1].fn' is a function"],
      [{ s: Symbol('x') }, "field 's' is a symbol"],
      [cycle, "field 'self' refers back"],
      [{ p: Promise.resolve() }, "field 'p' is an instance of Promise"],
      [{ x: new (class Foo {})() }, "field 'x' is an instance of Foo"],
    ];
    for (const [value, text] of cases) {
      assertStringIncludes(assertThrows(() => lean.encode(value), SerializationError).message, text);
    }
    let deep: unknown = 1;
    for (let at = 0; at < 100; at += 1) deep = [deep];
    assertStringIncludes(assertThrows(() => lean.encode(deep), SerializationError).message, 'nested deeper');
    assertThrows(() => lean.encode('x'.repeat(maxBytes)), MessageTooLargeError);
  });

  test('bytes that are nothing of ours are refused, whatever they are', () => {
    const valid = lean.encode({ a: [1, 'text', new Map([[1, new Set([2])]])], b: new Date(0), c: 5n });
    for (let at = 1; at < valid.length; at += 1) {
      assertThrows(() => lean.decode(valid.slice(0, at)), Error);
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          lean.decodeSequence(bytes);
        } catch (error) {
          const known = error instanceof FrameError || error instanceof DecodeError;
          if (!known) throw error;
        }
      }),
      { numRuns: 3_000, seed: 17, endOnFailure: true },
    );
    const nested = new Uint8Array(100_000).fill(0x81);
    assertStringIncludes(assertThrows(() => lean.decode(nested), FrameError).message, 'deeper');
    // A claim of four billion elements costs nothing.
    assertThrows(() => lean.decode(Uint8Array.of(0x9a, 255, 255, 255, 255, 0)), FrameError);
  });
});
