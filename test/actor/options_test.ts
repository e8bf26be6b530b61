import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { checkOption, checkOptions, OptionsError, type Rule, rules, show } from '../../src/actor/options.ts';

class Shape {}

describe('rules', () => {
  const cases: readonly (readonly [label: string, rule: Rule, good: readonly unknown[], bad: readonly unknown[]])[] = [
    ['text', rules.text(3), ['a', 'abc'], ['', 'abcd', 1, null]],
    ['integer', rules.integer(1, 5), [1, 5], [0, 6, 1.5, NaN, '1', null, Infinity]],
    ['integer without a top', rules.integer(0), [0, Number.MAX_SAFE_INTEGER], [-1, 2 ** 53]],
    ['duration', rules.durationMs(1), [1, 0.5 + 1, 2 ** 31 - 1], [0, -1, NaN, Infinity, 2 ** 31, '5']],
    ['number', rules.number(0, 1), [0, 0.5, 1], [-0.1, 1.1, NaN, '0']],
    ['boolean', rules.boolean, [true, false], [0, 'true']],
    ['function', rules.function, [() => {}], [{}, null]],
    ['object', rules.object, [{}, []], [null, 1, 'a']],
    ['one of', rules.oneOf('a', 2), ['a', 2], ['b', '2']],
    ['instance', rules.instance(Shape), [new Shape()], [{}, null]],
    ['either', rules.either(rules.boolean, rules.integer(1)), [true, 1], [0, 'a']],
    ['list', rules.listOf(rules.text(), 2), [[], ['a', 'b']], [['a', ''], ['a', 'b', 'c'], 'ab']],
  ];
  for (const [label, rule, good, bad] of cases) {
    test(label, () => {
      assertEquals(good.map((value) => rule.accepts(value)), good.map(() => true));
      assertEquals(bad.map((value) => rule.accepts(value)), bad.map(() => false));
    });
  }
});

describe('options', () => {
  interface Some {
    readonly count?: number;
    readonly name?: string;
  }
  const some = { count: rules.integer(1), name: rules.text() };

  test('R3: the error names family, field, value and rule', () => {
    const error = assertThrows(() => checkOptions<Some>('Some', { count: 0 }, some), OptionsError);
    assertEquals([error.family, error.field, error.value], ['Some', 'count', 0]);
    assertEquals(error.message, 'Some.count: must be a whole number of at least 1, got 0');
    assertEquals(error.name, 'OptionsError');
  });

  test('of a list, the first bad item is named', () => {
    const list = rules.listOf(rules.text(), 3, (item) => item === 7);
    const refusal = (value: unknown) => assertThrows(() => checkOption('Some', 'list', value, list), OptionsError);
    const error = refusal(['a', '', 5]);
    assertEquals([error.field, error.value], ['list[1]', '']);
    assertEquals(error.message, 'Some.list[1]: must be a non-empty string of at most 1024 characters, got ""');
    assertEquals(refusal([7]).value, '(hidden)');
    for (const value of ['ab', ['a', 'b', 'c', '']]) assertEquals(refusal(value).field, 'list');
  });

  test('a field nobody knows is refused, also an inherited one', () => {
    assertThrows(() => checkOptions<Some>('Some', { cuont: 1 } as Some, some), OptionsError, 'known are count, name');
    assertThrows(() => checkOptions<Some>('Some', { toString: 1 } as unknown as Some, some), OptionsError, 'toString');
  });

  test('undefined means not given; null does not', () => {
    checkOptions<Some>('Some', { count: undefined, name: 'a' }, some);
    checkOption('Some', 'count', undefined, some.count);
    assertThrows(() => checkOptions<Some>('Some', { count: null } as unknown as Some, some), OptionsError, 'got null');
  });

  for (const value of [null, 1, 'text', [1]]) {
    test(`${show(value)} is no options object`, () => {
      assertThrows(() => checkOptions<Some>('Some', value as Some, some), OptionsError, 'must be an object');
    });
  }

  test('values are shown briefly', () => {
    const shown: readonly (readonly [unknown, string])[] = [
      ['a', '"a"'],
      [5n, '5n'],
      [undefined, 'undefined'],
      [[1, 2], 'an array of 2'],
      [{}, 'an object'],
      [Object.create(null), 'an object'],
      [new Shape(), 'an instance of Shape'],
      [Symbol('x'), 'Symbol(x)'],
    ];
    for (const [value, text] of shown) assertEquals(show(value), text);
    assertStringIncludes(show('x'.repeat(1_000)), '…');
    assertEquals(show('x'.repeat(1_000)).length < 120, true);
    assertStringIncludes(show(() => {}), 'function');
  });
});
