import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { SenderReport } from './load.ts';
import { accounts, brokenAccounts, percentile, table } from './verdict.ts';

function report(numbered: number, change: Partial<SenderReport['counters']> = {}, dead: SenderReport['dead'] = []) {
  const counters = { told: numbered, acknowledged: numbered, deadLettered: 0, outcomeUnknown: 0, buffered: 0 };
  return {
    sender: 1,
    numbered,
    dead,
    counters: { ...counters, resent: 0, dropped: 0, bufferedBytes: 0, windowFull: 0, ...change },
  };
}

const journal = (...numbers: number[]) => new Uint32Array(numbers.flatMap((n) => [1, n]));

test('everything handled once, in order, over two instances: nothing is broken', () => {
  const all = accounts([report(4)], [journal(1, 2), journal(3, 4)]);
  assertEquals(brokenAccounts(all, 'none'), []);
});

test('what is lost, doubled or reordered is found, also over instances', () => {
  const [account] = accounts([report(4)], [journal(1, 2, 4), journal(2)]);
  assertEquals([account!.lost, account!.doubled, account!.reordered], [1, 1, 0]);
  const [turned] = accounts([report(3)], [journal(2, 1), journal(3)]);
  assertEquals([turned!.lost, turned!.doubled, turned!.reordered], [0, 0, 1]);
  assertEquals(brokenAccounts([account!], 'none').length, 3, 'acknowledged more than was handled, too');
});

test('what is reported as of unknown outcome is not lost, and counts only where there was a crash', () => {
  const dead = [{ from: 2, to: 3, reason: 'outcome-unknown' }];
  const counters = { acknowledged: 1, outcomeUnknown: 2 };
  const all = accounts([report(3, counters, dead)], [journal(1, 2)]);
  assertEquals(brokenAccounts(all, 'outcome-unknown'), []);
  assertEquals(brokenAccounts(all, 'none'), ['sender 1: 2 of unknown outcome although nothing crashed']);
});

test('a sum that does not add up, and another reason than a crash, are broken promises', () => {
  const missing = accounts([report(3, { acknowledged: 2 })], [journal(1, 2, 3)]);
  assertEquals(brokenAccounts(missing, 'none')[0], 'sender 1: 1 unaccounted for');
  const dead = [{ from: 3, to: 3, reason: 'buffer-overflow' }];
  const overflow = accounts([report(3, { acknowledged: 2, deadLettered: 1 }, dead)], [journal(1, 2)]);
  assertEquals(brokenAccounts(overflow, 'outcome-unknown'), [
    'sender 1: 1 dead letters for which there was no reason',
  ]);
});

test('percentiles and columns', () => {
  assertEquals([percentile([3, 1, 2], 0.5), percentile([1, 2, 3], 0.99)], [2, 3]);
  assertEquals(table([['a', 'b'], ['long', 12]]), ['a      b', '--------', 'long  12']);
});
