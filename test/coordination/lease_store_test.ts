import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { checkedAnswer } from '../../src/coordination/lease_store.ts';

test('good answers stay as they are', () => {
  const good = [
    { kind: 'granted', token: 7, previous: 0 },
    { kind: 'granted', token: Number.MAX_SAFE_INTEGER },
    { kind: 'held', expiresInMs: 0, by: 'b#1' },
    { kind: 'held' },
    { kind: 'released' },
    { kind: 'error', why: 'no', retryInMs: 5 },
  ] as const;
  for (const answer of good) assertEquals(checkedAnswer(answer), answer);
});

test('what is no answer is an error, and what is of no use is left out', () => {
  const unusable = { kind: 'error', why: 'the backend gave an answer that cannot be used' } as const;
  const bad: unknown[] = [undefined, null, 'granted', 7, [], {}, { kind: 'won' }, { kind: 'granted' }];
  for (const token of [0, -1, 1.5, NaN, Infinity, 2 ** 53, '7']) bad.push({ kind: 'granted', token });
  for (const answer of bad) assertEquals(checkedAnswer(answer), unusable, JSON.stringify(answer));
  for (const previous of [7, -1, NaN, '3']) {
    assertEquals(checkedAnswer({ kind: 'granted', token: 7, previous }), { kind: 'granted', token: 7 });
  }
  for (const wait of [NaN, -1, Infinity, '5']) {
    assertEquals(checkedAnswer({ kind: 'held', expiresInMs: wait, by: 5 }), { kind: 'held' });
    assertEquals(checkedAnswer({ kind: 'error', why: 5, retryInMs: wait }), { kind: 'error', why: '5' });
  }
});
