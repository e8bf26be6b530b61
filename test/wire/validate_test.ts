import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import {
  address,
  anything,
  bytes,
  check,
  conforms,
  either,
  finite,
  flag,
  integer,
  list,
  mapOf,
  nullable,
  oneOf,
  optional,
  record,
  type Rule,
  text,
  tuple,
  where,
} from '../../src/wire/validate.ts';

function accepts(rule: Rule<any>, good: readonly unknown[], bad: readonly unknown[]): void {
  for (const value of good) assertEquals(rule(value, 'f'), undefined);
  for (const value of bad) assert(rule(value, 'f')?.startsWith('f'), String(value));
}

describe('validate', () => {
  test('S7: scalars', () => {
    accepts(text(3, 1), ['a', 'abc'], ['', 'abcd', 'a\nb', 'a\u0085', 5, null, undefined]);
    accepts(integer(0, 10), [0, 10], [-1, 11, 0.5, NaN, Infinity, '1', 1n, null]);
    accepts(integer(), [Number.MAX_SAFE_INTEGER], [Number.MAX_SAFE_INTEGER + 1]);
    accepts(finite(-1, 1), [0.5, -1], [NaN, Infinity, 2, '0']);
    accepts(flag, [true, false], [0, 'true', undefined]);
    accepts(oneOf('up', 'down'), ['up'], ['Up', 0, null, ['up']]);
    accepts(bytes(2), [new Uint8Array(2)], [new Uint8Array(3), [1], 'ab']);
    accepts(anything, [undefined, {}, 1], []);
    accepts(address, ['a:1', 'host.example:65535', '[::1]:80'], [
      'a',
      ':1',
      'a:0',
      'a:65536',
      'a b:1',
      'a:1x',
      'a:01',
      7,
    ]);
  });

  test('S7: containers', () => {
    accepts(list(integer(0), 2, 1), [[1], [1, 2]], [[], [1, 2, 3], [-1], 'ab', { length: 1 }]);
    accepts(tuple(integer(), text(9)), [[1, 'a'], [1, 'a', 'newer field']], [[1], ['a', 1], [], {}]);
    accepts(mapOf(text(9), integer(), 1), [new Map(), new Map([['a', 1]])], [
      new Map([['a', 'b']]),
      new Map([['a', 1], ['b', 2]]),
      {},
    ]);
    accepts(record({ a: integer(), b: optional(text(3)) }), [{ a: 1 }, { a: 1, b: 'x', newer: 1 }], [
      {},
      { a: 'x' },
      { a: 1, b: 5 },
      [1],
      new Map(),
      null,
    ]);
    accepts(nullable(integer()), [null, 1], [undefined, 'x']);
    accepts(either(integer(), text(3)), [1, 'a'], [null]);
    accepts(where(integer(), (n) => n % 2 === 0, 'even'), [2], [3, 'x']);
  });

  test('reasons name the field, show the value shortly and stay on one line', () => {
    const rule = record({ members: list(record({ port: integer(1, 9) }), 5) });
    const reason = rule({ members: [{ port: 1 }, { port: 'x\n'.repeat(500) }] }, '')!;
    assert(reason.startsWith('members[1].port: '));
    assert(reason.length < 200 && !reason.includes('\n'));
  });

  test('inherited and accessor-like fields do not count as own', () => {
    assert(!conforms(record({ toString: anything, x: integer() }), Object.create({ x: 1 })));
    assertEquals(check(record({ constructor: optional(integer()) }), {}, '').kind, 'ok');
  });

  test('types follow rules', () => {
    const rule = tuple(integer(), nullable(text(5)));
    const value: unknown = [1, null, 'more'];
    if (!conforms(rule, value)) throw new Error('refused');
    const first: number = value[0];
    const second: string | null = value[1];
    assertEquals([first, second], [1, null]);
  });
});
