import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { compare, decay } from '../../bench/compare.ts';
import type { Row } from '../../bench/measure.ts';
import { plots } from '../../bench/plot.ts';

const row = (value: number, unit: string, limit?: number): Row => ({
  what: 'a row',
  value,
  unit,
  spread: [value, value],
  ...(limit === undefined ? {} : { limit: { what: 'the limit', value: limit } }),
});

test('what costs more, and what yields less, is worse', () => {
  assertEquals(decay(row(100, 'ms'), row(125, 'ms')), 0.25);
  assertEquals(decay(row(100, 'msg/s'), row(75, 'msg/s')), 0.25);
  assert(decay(row(100, 'msg/s'), row(200, 'msg/s')) < 0);
});

test('a machine that is slower as a whole is no decay of what has a limit', () => {
  assertEquals(decay(row(100, 'msg/s', 1_000), row(50, 'msg/s', 500)), 0);
});

test('only what has become a fifth worse is told, with its figures', () => {
  const before = [{ runtime: 'bun', rows: [row(1_000, 'msg/s', 2_000)] }];
  assertEquals(compare(before, [{ runtime: 'bun', rows: [row(810, 'msg/s', 2_000)] }]), []);
  assertEquals(compare(before, [{ runtime: 'bun', rows: [row(700, 'msg/s', 2_000)] }]), [
    'bun: a row: 0.500 → 0.350 × the limit (30 % worse)',
  ]);
});

test('rows and runtimes that only one of the runs has are left out', () => {
  assertEquals(compare([], [{ runtime: 'bun', rows: [row(1, 'ms')] }]), []);
});

test('plots show every row of their unit, for each runtime', () => {
  const table = [{ runtime: 'bun', rows: [row(12, 'ms')] }, { runtime: 'node', rows: [row(34, 'ms')] }];
  const gaps = plots(table).find(({ name }) => name === 'gaps')!.svg;
  assert(gaps.includes('12.0 ms') && gaps.includes('34.0 ms') && gaps.includes('a row'));
});
