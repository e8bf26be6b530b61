import { describe, test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertStrictEquals, assertThrows } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { Codec, decode, encode } from '../../src/wire/codec.ts';
import { DecodeError, SerializationError } from '../../src/wire/errors.ts';
import type { WireRef } from '../../src/wire/extension.ts';

function roundTrip<T>(value: T): T {
  return decode(encode(value)) as T;
}

function refusal(value: unknown): SerializationError {
  return assertThrows(() => encode(value), SerializationError);
}

describe('codec: refusals', () => {
  test('R121: functions, symbols, promises and class instances are named', () => {
    class Account {}
    assertEquals(refusal({ a: { items: [0, 1, 2, { fn() {} }] } }).field, 'a.items[3].fn');
    assertEquals(refusal([Symbol('s')]).field, '[0]');
    assertEquals(refusal({ p: Promise.resolve() }).rule.includes('await'), true);
    assertEquals(refusal({ who: new Account() }).rule.includes('Account'), true);
    assertEquals(refusal(new Map([['a', 1], ['b', () => 1]] as [string, unknown][])).field, 'entry(1)');
    for (const value of [new WeakMap(), new Number(1), new (class extends Array {})(), new (class extends Map {})()]) {
      refusal(value);
    }
    refusal(() => 1);
    refusal(Object.create({ inherited: 1 }));
  });

  test('a throwing getter and a getter that encodes are refusals', () => {
    const bad = {
      get x(): number {
        throw new Error('boom');
      },
    };
    assert(refusal(bad).message.includes('boom'));
    const reentrant = {
      get x(): unknown {
        return encode(1);
      },
    };
    refusal(reentrant);
    assertEquals(roundTrip({ ok: 1 }), { ok: 1 });
  });

  test('depth and items are bounded at the sender, with no way past by tags', () => {
    const nest = (depth: number, wrap: (inner: unknown) => unknown) => {
      let value: unknown = 1;
      for (let i = 0; i < depth; i++) value = wrap(value);
      return value;
    };
    refusal(nest(limits.depth + 1, (inner) => [inner]));
    refusal(nest(100_000, (inner) => [inner]));
    roundTrip(nest(limits.depth, (inner) => [inner]));
    for (let depth = 1; depth <= limits.depth; depth++) {
      const value = nest(depth, (inner) => new Map([['k', inner]]));
      let bytes: Uint8Array;
      try {
        bytes = encode(value);
      } catch (error) {
        assertInstanceOf(error, SerializationError);
        continue;
      }
      decode(bytes);
    }
    refusal(new Array(2 ** 31));
    refusal(new Array(limits.itemsPerFrame).fill(0));
    refusal(7n ** 1_000_000n);
  });

  test('after a refusal the codec is as before', () => {
    for (let i = 0; i < 100; i++) refusal({ a: 'x'.repeat(i), f: () => 0 });
    assertEquals(roundTrip({ a: [1, 2, 3] }), { a: [1, 2, 3] });
  });
});

describe('codec: memory', () => {
  test('decoded bytes do not alias the input; encoded bytes are not overwritten', () => {
    const encoded = encode({ data: new Uint8Array([1, 2, 3]), wide: new Float64Array([1]) });
    const copy = encoded.slice();
    encode({ other: 'zzzzzzzzzzzzzzzzzzzzzzzzzzz' });
    assertEquals(encoded, copy);
    const back = decode(encoded) as { data: Uint8Array; wide: Float64Array };
    encoded.fill(0);
    assertEquals([...back.data, ...back.wide], [1, 2, 3, 1]);
    assertStrictEquals(back.data.constructor, Uint8Array);
    assertStrictEquals(back.data.buffer.byteLength, 3);
  });

  test('a 3 MiB message, then a small one', () => {
    const big = new Uint8Array(3 * 1024 * 1024).fill(7);
    assertEquals(roundTrip({ big }).big.length, big.length);
    assertEquals(roundTrip('small ä'.repeat(20)), 'small ä'.repeat(20));
  });
});

describe('codec: refs and classes', () => {
  class Ref {
    readonly wire: WireRef;
    constructor(wire: WireRef) {
      this.wire = wire;
    }
  }
  const refs = {
    toWire: (value: object): WireRef | undefined => (value instanceof Ref ? value.wire : undefined),
    fromWire: (wire: WireRef): unknown => new Ref(wire),
  };

  test('R121: refs anywhere become refs', () => {
    const codec = new Codec({ refs });
    const ref = new Ref(['a:1', 'u', '/user/x', 3]);
    const value = { list: [ref], map: new Map([[ref, ref]]), set: new Set([ref]) };
    const back = codec.decode(codec.encode(value)) as typeof value;
    assertInstanceOf(back.list[0], Ref);
    assertEquals(back.list[0].wire, ref.wire);
    assertStrictEquals([...back.set][0], back.list[0]);
    assertStrictEquals(back.map.get(back.list[0]), back.list[0]);
  });

  test('refs are refused where nobody knows refs', () => {
    refusal({ ref: new Ref(['a:1', 'u', '/user/x', 3]) });
    assertThrows(() => decode(new Codec({ refs }).encode(new Ref(['a:1', 'u', '/x', 0]))), DecodeError);
  });

  test('a class with a codec arrives as its class; unknown ones cost one message', () => {
    class Money {
      readonly cents: bigint;
      constructor(cents: bigint) {
        this.cents = cents;
      }
    }
    const money = {
      name: 'Money',
      Class: Money,
      toWire: (value: Money) => ({ cents: value.cents }),
      fromWire: (data: unknown) => new Money((data as { cents: bigint }).cents),
    };
    const codec = new Codec({ classes: [money] });
    const back = codec.decode(codec.encode({ price: new Money(5n) })) as { price: Money };
    assertInstanceOf(back.price, Money);
    assertStrictEquals(back.price.cents, 5n);
    assertThrows(() => decode(codec.encode(new Money(1n))), DecodeError, 'Money');
    assertThrows(() => codec.register(money), TypeError);
  });
});
