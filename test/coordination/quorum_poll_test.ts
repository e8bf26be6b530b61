import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { Answer } from '../../src/coordination/quorum_messages.ts';
import { describeHeld, Poll, tokenFor } from '../../src/coordination/quorum_poll.ts';

const granted = (floor = 0, sealed = 0, forgotten = 0): Extract<Answer, { kind: 'granted' }> => ({
  kind: 'granted',
  floor,
  sealed,
  forgotten,
});
const held = (by: string, expiresInMs: number): Answer => ({ kind: 'held', by, expiresInMs });

function poll(...answers: Answer[]): Poll {
  const made = new Poll(['a', 'b', 'c'], 3, 'granted');
  answers.forEach((answer, at) => made.add(['a', 'b', 'c'][at]!, answer));
  return made;
}

test('a majority wins; what makes one impossible loses', () => {
  const one = poll(granted());
  assertEquals([one.won, one.lost, one.silent], [false, false, ['b', 'c']]);
  assert(poll(granted(), granted()).won);
  assert(poll(held('x', 1), held('x', 1)).lost);
  assert(!poll(granted(), held('x', 1)).lost);
});

test('each voter counts once, and only those that were asked', () => {
  const made = new Poll(['a', 'b'], 3, 'granted');
  for (let again = 0; again < 3; again += 1) made.add('a', granted());
  made.add('z', granted());
  assert(!made.won);
  made.add('b', granted());
  assert(made.won);
});

test('who holds it, when a majority may be free, and when votes are split', () => {
  assertEquals(describeHeld(poll(held('x', 300), held('x', 500)), 3), { by: 'x', expiresInMs: 500, split: false });
  assertEquals(describeHeld(poll(granted(), held('x', 300), held('y', 400)), 3), {
    by: 'x',
    expiresInMs: 300,
    split: true,
  });
  assertEquals(describeHeld(poll(granted(), held('x', 300)), 3).split, false, 'the silent one may vote for it too');
  assertEquals(describeHeld(poll(), 3), { by: undefined, expiresInMs: 0, split: false });
});

test('after a restart of all voters one slow wall clock, even that of whoever asks, does not set the token back', () => {
  assertEquals(tokenFor([granted(0, 0, 5_000), granted(0, 0, 1_000)], 1_100).token, 5_001);
});

test('the token is above all that the voters know; the tenure before is told only where their memories reach', () => {
  assertEquals(tokenFor([granted(50, 40, 30), granted(45, 45, 0)], 10), { token: 51, previous: 45 });
  assertEquals(tokenFor([granted(50, 40, 40), granted(45, 10, 0)], 1_000.7), { token: 1_000, previous: undefined });
});
