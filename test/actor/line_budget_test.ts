import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { LineBudget } from '../../src/actor/line_budget.ts';

test('twenty lines a minute; the twentieth says for how long there will be none, the next how many were left out', () => {
  let now = 5_000;
  const budget = new LineBudget({ clock: { now: () => now, wall: () => 0 } });
  const taken = Array.from({ length: 30 }, () => budget.take());
  assertEquals(taken.filter((more) => more !== undefined).length, 20);
  assertEquals([taken[18], taken[19], taken[20]], [{}, { silentForMs: 60_000 }, undefined]);
  now += 59_999;
  assertEquals(budget.take(), undefined);
  now += 1;
  assertEquals([budget.take(), budget.take()], [{ leftOut: 11 }, {}]);
  now += 60_000;
  assertEquals(budget.take(), {});
});
