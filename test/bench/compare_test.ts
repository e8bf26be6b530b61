import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { compare, merged } from '../../bench/compare.ts';
import type { Row } from '../../bench/measure.ts';
import { plots } from '../../bench/plot.ts';

const row = (value: number, unit: string, limit?: number, more: Partial<Row> = {}): Row => ({
  what: 'a row',
  value,
  unit,
  spread: [value, value],
  ...(limit === undefined ? {} : { limit: { what: 'the limit', value: limit } }),
  ...more,
});
const onBun = (one: Row) => [{ runtime: 'bun', rows: [one] }];
/** One row before, and one now. */
const worse = (before: Row, now: Row): readonly string[] => compare(onBun(before), onBun(now)).worse;

test('what costs more, and what yields less, is worse', () => {
  assertEquals(worse(row(100, 'ms'), row(125, 'ms')), ['bun: a row: 100 → 125 ms (25 % worse)']);
  assertEquals(worse(row(100, 'msg/s'), row(75, 'msg/s')), ['bun: a row: 100 → 75.0 msg/s (25 % worse)']);
  assertEquals(worse(row(2, '×'), row(3, '×')).length, 1);
  assertEquals(worse(row(100, 'msg/s'), row(200, 'msg/s')), []);
});

test('a machine that is slower as a whole is no decay of what has a limit', () => {
  assertEquals(worse(row(100, 'msg/s', 1_000), row(50, 'msg/s', 500)), []);
});

test('only what has become a fifth worse is told, with its figures', () => {
  assertEquals(worse(row(1_000, 'msg/s', 2_000), row(810, 'msg/s', 2_000)), []);
  assertEquals(worse(row(1_000, 'msg/s', 2_000), row(700, 'msg/s', 2_000)), [
    'bun: a row: 0.500 → 0.350 × the limit (30 % worse)',
  ]);
});

test('what the machine does at most is no row of ours', () => {
  const context = (value: number) => onBun(row(value, 'calls/s', undefined, { context: true }));
  assertEquals(compare(context(100), context(10)), { compared: 0, worse: [], unknown: [] });
});

test('of a peer counts how many times better ours is, not how fast the peer is', () => {
  const peer = (value: number, ours: number) => row(value, 'msg/s', undefined, { peer: 'other', ours });
  assertEquals(worse(peer(100, 5), peer(50, 5)), []);
  assertEquals(worse(peer(100, 5), peer(100, 3)), ['bun: other: a row: 5.00 → 3.00 × the peer (40 % worse)']);
});

test('rows that were not measured before, or against something else, are named and not compared', () => {
  const nothing = { compared: 0, worse: [], unknown: ['bun: a row'] };
  assertEquals(compare([], onBun(row(1, 'ms'))), nothing);
  assertEquals(compare(onBun(row(9, 'msg/s', 10)), onBun(row(1, 'msg/s'))), nothing);
  const otherLimit = row(1, 'msg/s', undefined, { limit: { what: 'another limit', value: 10 } });
  assertEquals(compare(onBun(row(9, 'msg/s', 10)), onBun(otherLimit)), nothing);
  // What was not measured this time was not asked for.
  assertEquals(compare(onBun(row(1, 'ms')), [{ runtime: 'bun', rows: [] }]), { compared: 0, worse: [], unknown: [] });
});

test('rows of an earlier run stay where there is no newer one', () => {
  const before = [{ runtime: 'bun', rows: [row(1, 'ms'), row(2, 'ms', undefined, { peer: 'other' })] }];
  const now = [{ runtime: 'bun', rows: [row(3, 'ms')] }, { runtime: 'node', rows: [row(4, 'ms')] }];
  assertEquals(
    merged(before, now).map(({ runtime, rows }) => [runtime, rows.map(({ value }) => value)]),
    [['bun', [3, 2]], ['node', [4]]],
  );
});

test('plots show every row of their unit, for each runtime', () => {
  const table = [{ runtime: 'bun', rows: [row(12, 'ms')] }, { runtime: 'node', rows: [row(34, 'ms')] }];
  const gaps = plots(table).find(({ name }) => name === 'gaps')!.svg;
  assert(gaps.includes('12.0 ms') && gaps.includes('34.0 ms') && gaps.includes('a row'));
});
