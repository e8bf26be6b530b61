import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertThrows } from '@std/assert';
import {
  addressOf,
  countOf,
  fail,
  flagOf,
  listOf,
  proseOf,
  shown,
  textOf,
  tupleOf,
  WireError,
} from '../../src/cluster/wire_checks.ts';

function accepts(check: (value: any) => unknown, good: readonly unknown[], bad: readonly unknown[]): void {
  for (const value of good) assertEquals(check(value), value);
  for (const value of bad) assertThrows(() => check(value), WireError, 'must be');
}

describe('checks of fields from other nodes', () => {
  test('S7: scalars', () => {
    accepts((value) => textOf(value, 3, 'f'), ['a', 'abc'], ['', 'abcd', 'a\nb', 'a\u0085', 5, null, undefined, ['a']]);
    accepts((value) => textOf(value, 3, 'f', 0), [''], ['\0']);
    accepts((value) => countOf(value, 'f'), [0, Number.MAX_SAFE_INTEGER], [
      -1,
      0.5,
      NaN,
      Infinity,
      '1',
      1n,
      null,
      2 ** 53,
    ]);
    accepts((value) => flagOf(value, 'f'), [true, false], [0, 'true', undefined, null]);
    for (let port = 1; port <= 2_500; port++) assertEquals(addressOf(`many:${port}`), `many:${port}`);
    accepts(addressOf, ['a:1', 'host.example:65535', '[::1]:80'], [
      'a',
      'a:0',
      ':1',
      'a:65536',
      'a b:1',
      'a:1\n',
      7,
      {},
    ]);
  });

  test('S7: lists and tuples are bounded', () => {
    accepts((value) => listOf(value, 2, 'f'), [[], [1, 2]], [[1, 2, 3], { length: 1 }, 'ab', null, new Uint8Array(1)]);
    accepts((value) => tupleOf(value, 2, 'f'), [[1, 2]], [[1], [1, 2, 3], {}]);
  });

  test('S7: a sentence for people stays on one line', () => {
    assertEquals(proseOf('two\r\nlines\u001b[31m', 40, 'f'), 'two  lines [31m');
    for (const bad of ['', 'x'.repeat(41), 5, null]) assertThrows(() => proseOf(bad, 40, 'f'), WireError);
  });

  test('S7: what is refused is shown short and plain, and none of its code is run', () => {
    const trap = { toString: () => fail('never', 1, 'run'), toJSON: () => fail('never', 1, 'run') };
    assertEquals(shown(trap), 'a object');
    assert(shown('x'.repeat(10_000)).length < 100);
    assertFalse(/\p{Cc}/u.test(shown('a\nb\u009b')));
    assertEquals(shown([1, 2, 3]), 'a list of 3');
  });
});
