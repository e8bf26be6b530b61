import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { Row } from '../../bench/measure.ts';
import { besideOurs, ratioText, recordedRows } from '../../bench/peer_ratios.ts';

const row = (what: string, value: number, unit: string, peer?: string): Row => ({
  what,
  value,
  unit,
  spread: [value, value],
  ...(peer === undefined ? {} : { peer }),
});

test('a peer stands beside our row of the same name: more of a rate, less of a cost', () => {
  const rows = besideOurs([
    row('tell', 100, 'msg/s'),
    row('gap', 5, 'ms'),
    row('tell', 20, 'msg/s', 'other'),
    row('gap', 8_000, 'ms', 'other'),
    row('ask', 1, 'asks/s', 'other'),
  ]);
  assertEquals(rows.map(({ ours }) => ours), [undefined, undefined, 5, 1_600, undefined]);
  assertEquals(rows.map(ratioText), ['', '', 'ours 5.00 × better', 'ours 1.60 k × better', '']);
});

test('a peer that is not at hand: its figures for what was measured, and by the limits of both machines', () => {
  const ours = [
    row('queue plus call, burst of a million', 48e6, 'calls/s'),
    row('local tell, burst of a million', 23.6e6, 'msg/s'),
    row('local ask, one at a time', 1_794e3, 'asks/s'),
  ];
  const recorded = besideOurs([...ours, ...recordedRows('bun', ours)]).slice(ours.length);
  assertEquals(recorded.map(({ what, ours, oursByLimit }) => [what, ours, oursByLimit]), [
    // Four times its figure, on a machine that does twice as much.
    ['local tell, burst of a million', 4, 2],
    ['local ask, one at a time', 2, undefined],
  ]);
});

test('figures are not put beside a peer that ran itself', () => {
  const rows = [row('local ask, one at a time', 9, 'asks/s'), row('local ask, one at a time', 3, 'asks/s', 'actor-ts')];
  assertEquals(recordedRows('bun', rows), []);
});
