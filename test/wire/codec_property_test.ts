import { describe, test } from 'node:test';
import { assert } from '@std/assert';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { decode, encode } from '../../src/wire/codec.ts';
import { MessageTooLargeError } from '../../src/wire/errors.ts';

const random = seededRandom(150);
const int = (below: number): number => Math.floor(random.next() * below);
const pick = <T>(items: readonly T[]): T => items[int(items.length)]!;

const edges = [0, 1, 23, 24, 31, 32, 63, 64, 65, 139, 140, 255, 256, 257, 32_767, 32_768, 65_535, 65_536];
const keys = [
  'a',
  'b',
  '',
  '0',
  '-1',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  '\ufeffkey of some length 1234',
  'ä',
];

function text(): string {
  const length = int(60) === 0 ? pick(edges) : int(12);
  return pick(['x', 'ä', '€', '😀', '\u0000', '\ufeff']).repeat(length).slice(0, length).replace(
    /[\ud800-\udbff]$/,
    '',
  );
}

function leaf(): unknown {
  switch (int(14)) {
    case 0:
      return pick([undefined, null, true, false]);
    case 1:
      return pick([0, -0, NaN, Infinity, -Infinity, 2 ** 53, -(2 ** 31), 2 ** 32, 1e-300]);
    case 2:
      return (random.next() - 0.5) * 2 ** int(70);
    case 3:
      return int(2 ** 31) - 2 ** 30;
    case 4:
      return BigInt(int(2 ** 31)) ** BigInt(int(6)) * pick([1n, -1n]);
    case 5:
      return new Date(pick([NaN, 0, 1_700_000_000_000 + int(1e6), -int(1e12), 8.64e15]));
    case 6:
      return Uint8Array.from({ length: int(40) }, () => int(256));
    case 7:
      return new (pick([Int16Array, Float32Array, Float64Array, Uint32Array]))([int(100), int(100)]);
    case 8:
      return pick([/a+/g, new URL('https://a.example/x?y=1'), new Uint8Array([1, 2]).buffer]);
    case 9:
      return new (pick([Error, TypeError, RangeError]))(text());
    default:
      return text();
  }
}

let repeated = 0;

/** Sometimes one of the values made before, so that things are shared; never one that is still being made. */
function value(depth: number, made: unknown[]): unknown {
  if (made.length > 0 && int(12) === 0) {
    repeated++;
    return pick(made);
  }
  const result = depth === 0 || int(3) === 0 ? leaf() : container(depth, made);
  if (typeof result === 'object' && result !== null) made.push(result);
  return result;
}

function container(depth: number, made: unknown[]): unknown {
  const size = int(60) === 0 ? pick([23, 24, 25, 255, 256]) : int(5);
  const inner = () => value(depth - 1, made);
  switch (int(4)) {
    case 0:
      return Array.from({ length: size }, inner);
    case 1:
      return new Map(Array.from({ length: size }, () => [inner(), inner()]));
    case 2:
      return new Set(Array.from({ length: size }, inner));
    default: {
      const object = {};
      for (let i = 0; i < size; i++) {
        const key = int(3) === 0 ? pick(keys) : `k${i}`;
        Object.defineProperty(object, key, { value: inner(), configurable: true, enumerable: true, writable: true });
      }
      return object;
    }
  }
}

/** Structure, types, order and sharing: `twins` pairs each object with its copy. */
function same(a: unknown, b: unknown, twins: Map<object, object>): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return Object.is(a, b);
  if (twins.has(a)) return twins.get(a) === b;
  twins.set(a, b);
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return Object.is(a.getTime(), (b as Date).getTime());
  if (a instanceof RegExp || a instanceof URL) return String(a) === String(b);
  if (a instanceof Error) return a.name === (b as Error).name && a.message === (b as Error).message;
  if (a instanceof ArrayBuffer) return String(new Uint8Array(a)) === String(new Uint8Array(b as ArrayBuffer));
  if (ArrayBuffer.isView(a)) return String(a) === String(b);
  if (a instanceof Map) return same([...a].flat(), [...b as Map<unknown, unknown>].flat(), twins);
  if (a instanceof Set) return same([...a], [...b as Set<unknown>], twins);
  const names = Object.keys(a);
  const own = (object: object, key: string): unknown => Object.getOwnPropertyDescriptor(object, key)!.value;
  return String(names) === String(Object.keys(b)) && names.every((key) => same(own(a, key), own(b, key), twins));
}

describe('codec property', () => {
  test('R150, FB-098: 1500 random messages arrive as what they were, sharing included', () => {
    repeated = 0;
    let tooLarge = 0;
    for (let round = 0; round < 1_500; round++) {
      const message = value(4, []);
      const twins = new Map<object, object>();
      let bytes: Uint8Array;
      try {
        bytes = encode(message);
      } catch (error) {
        assert(error instanceof MessageTooLargeError, String(error));
        tooLarge++;
        continue;
      }
      const back = decode(bytes);
      assert(same(message, back, twins), `round ${round}`);
      // Different things stay different things.
      assert(new Set(twins.values()).size === twins.size, `round ${round}: two became one`);
    }
    assert(repeated > 300 && tooLarge < 15, `${repeated} ${tooLarge}`);
  });
});
