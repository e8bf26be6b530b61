import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { sameValue, showValue } from '../../src/testkit/values.ts';

describe('values', () => {
  test('equal value by value', () => {
    const make = () => ({
      list: [1, NaN, -0, 2n, undefined],
      date: new Date(5),
      bytes: new Uint8Array([1, 2]),
      map: new Map<unknown, unknown>([['a', { b: 1 }]]),
      set: new Set([1, 'x']),
      nothing: null,
    });
    assertEquals(sameValue(make(), make()), true);
  });

  test('different in anything is different', () => {
    const pairs: [unknown, unknown][] = [
      [0, -0],
      [1, 1n],
      [null, undefined],
      [{ a: 1 }, { a: 1, b: undefined }],
      [[1, 2], [1]],
      [{}, []],
      [new Date(1), new Date(2)],
      [new Uint8Array([1]), new Uint8Array([2])],
      [new Uint8Array([1]), new Uint8Array([1, 2])],
      [new Map([[1, 1]]), new Map([[1, 2]])],
      [new Set([1]), new Set([2])],
      [() => 1, () => 1],
    ];
    for (const [a, b] of pairs) assertEquals(sameValue(a, b), false, `${showValue(a)} and ${showValue(b)}`);
  });

  test('anything can be shown', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    assertEquals(
      showValue({ n: 1n, map: new Map([[1, 2]]), bytes: new Uint8Array(3) }),
      '{"n":"1n","map":[[1,2]],"bytes":"bytes(3)"}',
    );
    assertEquals(showValue(new RangeError('no')), 'RangeError: no');
    assertEquals(showValue(undefined), 'undefined');
    assertEquals(showValue(cycle), '[object Object]');
  });
});
