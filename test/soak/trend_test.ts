import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Prng } from '../../src/testkit/prng.ts';
import { growsBeyond, trendOf } from './trend.ts';

const points = (count: number, of: (x: number) => number) => Array.from({ length: count }, (_, x) => ({ x, y: of(x) }));

test('points on a line give its slope, without error', () => {
  const { slope, error } = trendOf(points(10, (x) => 7 - 2.5 * x));
  assert(Math.abs(slope + 2.5) < 1e-9);
  assert(error < 1e-9);
});

test('what scatters without a direction does not grow; the same scatter on a rising line does', () => {
  const random = new Prng('trend');
  const noise = points(60, () => random.uint32() / 2 ** 32 * 10).map(({ y }) => y);
  assert(!growsBeyond(trendOf(points(60, (x) => noise[x]!)), 0.1));
  assert(growsBeyond(trendOf(points(60, (x) => noise[x]! + 0.5 * x)), 0.1));
});

test('two points are no measurement', () => {
  assertEquals(trendOf([{ x: 0, y: 0 }, { x: 1, y: 1_000 }]), { slope: 0, error: Infinity });
  assert(!growsBeyond(trendOf([]), 1));
});
