import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import type { Question } from '../../src/coordination/quorum_messages.ts';
import { majorityOf, Voter } from '../../src/coordination/quorum_voter.ts';

const config = { voters: 1, maxTtlMs: 1_000, driftBound: 0.01 };
const wall = 1_700_000_000_000;

/** A voter that votes, at time 2 000. */
function ready(): {
  voter: Voter;
  ask: (owner: string, question: Question, now?: number) => ReturnType<Voter['answer']>;
} {
  const voter = new Voter(config, 0);
  voter.conclude(wall);
  return { voter, ask: (owner, question, now = 2_000) => voter.answer(owner, question, now) };
}

const grant = (tenure: number): Question => ({ kind: 'grant', name: 'x', tenure, ttlMs: 500 });
const seal = (tenure: number, token: number): Question => ({ kind: 'seal', name: 'x', tenure, ttlMs: 500, token });
const renew = (tenure: number, token: number): Question => ({ kind: 'renew', name: 'x', tenure, ttlMs: 500, token });
const release = (tenure: number): Question => ({ kind: 'release', name: 'x', tenure });

describe('a voter', () => {
  test('majorities', () => assertEquals([1, 2, 3, 4, 5].map(majorityOf), [1, 2, 2, 3, 3]));

  test('rule 17: grants nothing until the longest term of its predecessor has run out on any clock', () => {
    const { voter, ask } = ready();
    assert(!voter.grants(1_019) && voter.grants(1_020));
    const answer = ask('a', grant(1), 100);
    assert(answer.kind === 'refused' && answer.retryInMs === 920);
  });

  test('one owner at a time, until it ends, is released, or its owner asks anew', () => {
    const { ask } = ready();
    assertEquals(ask('a', grant(1)).kind, 'granted');
    assertEquals(ask('b', grant(1), 2_100), { kind: 'held', by: 'a', expiresInMs: 400 });
    assertEquals(ask('a', grant(2), 2_100).kind, 'granted');
    assertEquals(ask('b', grant(1), 2_599).kind, 'held');
    assertEquals(ask('b', grant(1), 2_600).kind, 'granted');
    assertEquals(ask('a', release(2), 2_610).kind, 'released');
    assertEquals(ask('a', grant(3), 2_610).kind, 'held', 'another cannot release it');
    ask('b', release(1), 2_620);
    assertEquals(ask('a', grant(3), 2_620).kind, 'granted');
  });

  test('late questions of a tenure that is over change nothing', () => {
    const { ask } = ready();
    ask('a', grant(2));
    ask('a', release(1));
    assertEquals(ask('b', grant(1)).kind, 'held', 'a later tenure is not released');
    assertEquals(ask('a', grant(1)).kind, 'refused');
    ask('a', release(2));
    assertEquals(ask('a', grant(2)).kind, 'refused', 'a double of the grant after its release');
    assertEquals(ask('a', renew(2, 5)).kind, 'refused');
  });

  test('R78: a token is sealed only under an unbroken grant, above every earlier one', () => {
    const { ask } = ready();
    ask('a', grant(1));
    assertEquals(ask('a', seal(1, 10)).kind, 'granted');
    assertEquals(ask('a', seal(1, 10)).kind, 'granted', 'the same question again');
    assertEquals(ask('b', seal(1, 11)).kind, 'held');
    assertEquals(ask('a', seal(2, 11)).kind, 'refused');
    assertEquals(ask('a', seal(1, 12), 2_500).kind, 'refused', 'the grant has ended');
    const next = ask('b', grant(7), 2_500);
    assert(next.kind === 'granted' && next.floor === 10 && next.sealed === 10);
    assertEquals(ask('b', seal(7, 10), 2_500).kind, 'refused');
    assertEquals(ask('b', seal(7, 11), 2_500).kind, 'granted');
    assertEquals(ask('a', renew(1, 10), 3_500).kind, 'refused', 'another tenure has followed');
  });

  test('a renewal is taken up by a voter that was not asked before', () => {
    const { ask } = ready();
    assertEquals(ask('a', renew(4, 20)).kind, 'granted');
    assertEquals(ask('b', grant(1), 2_499).kind, 'held');
    const next = ask('b', grant(1), 2_500);
    assert(next.kind === 'granted' && next.floor === 20);
  });

  test('no term is longer than the longest', () => {
    const { ask } = ready();
    assertEquals(ask('a', { kind: 'grant', name: 'x', tenure: 1, ttlMs: 1_001 }).kind, 'refused');
  });

  test('rule 17: it learns from so many others that no sealed token can be missed', () => {
    const knows = (floor: number) => ({ kind: 'learnt', knows: true, floor }) as const;
    const forgot = { kind: 'learnt', knows: false, floor: 0 } as const;
    const of = (voters: number) => new Voter({ ...config, voters }, 0);
    const three = of(3);
    three.learn('b', knows(50), wall);
    assert(!three.knows);
    three.learn('c', knows(70), wall);
    assert(three.knows);
    const answer = three.answer('a', grant(1), 2_000);
    assert(answer.kind === 'granted' && answer.floor === 70 && answer.forgotten === 70);
    const total = of(3);
    total.learn('b', forgot, wall);
    assert(total.knows, 'a majority has forgotten: nobody is left to wait for');
    const fresh = total.answer('a', grant(1), 2_000);
    assert(fresh.kind === 'granted' && fresh.forgotten === wall);
    const five = of(5);
    five.learn('b', knows(1), wall);
    five.learn('c', forgot, wall);
    five.learn('d', knows(1), wall);
    assert(!five.knows, 'two that know and two that forgot, of five, prove nothing');
    five.learn('e', knows(9), wall);
    assert(five.knows);
  });

  test('the number of names is bounded; those that nobody holds make room, and their tokens are not forgotten', () => {
    const { voter, ask } = ready();
    const named = (name: string, now: number) => voter.answer('a', { kind: 'grant', name, tenure: 1, ttlMs: 500 }, now);
    for (let at = 0; at < limits.leaseNames; at += 1) assertEquals(named(`n${at}`, 2_000).kind, 'granted');
    assertEquals(named('more', 2_000).kind, 'refused');
    assertEquals(voter.refusedNames, 1);
    assertEquals(ask('a', { kind: 'seal', name: 'n0', tenure: 1, ttlMs: 500, token: wall + 5 }).kind, 'granted');
    const answer = named('more', 2_600);
    assert(answer.kind === 'granted');
    const later = named('n0', 2_600);
    assert(later.kind === 'granted' && later.floor === wall + 5 && later.forgotten === wall + 5);
  });
});
