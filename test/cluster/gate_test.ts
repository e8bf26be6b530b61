import { describe, test } from 'node:test';
import { assertEquals, assertStrictEquals } from '@std/assert';
import fc from 'fast-check';
import { DownAll, KeepMajority, KeepOldest, ManualDowning, StaticQuorum } from '../../src/cluster/downing/mod.ts';
import { acknowledged, emptyGate, gateDeadline, retained } from '../../src/cluster/gate.ts';
import { membersOf } from './downing/members.ts';

const majority = new KeepMajority();
const window = 1_500;

function deadline(strategy: Parameters<typeof gateDeadline>[0], members: string, acks: Record<string, number>): number {
  return gateDeadline(strategy, membersOf(members), 'A', new Map(Object.entries(acks)), window);
}

describe('rule 2: until when a host may handle messages', () => {
  test('for ever when nobody else is needed', () => {
    assertEquals(deadline(majority, 'A', {}), Infinity);
    assertEquals(deadline(majority, 'A B', {}), Infinity, 'the half of the oldest');
    assertEquals(deadline(majority, 'A Bt Ct', {}), Infinity, 'the others are proven dead');
    assertEquals(deadline(new KeepOldest({ downIfAlone: false }), 'A B C', {}), Infinity);
  });

  test('for ever without a strategy', () => {
    assertEquals(deadline(new ManualDowning(), 'A B C D E', {}), Infinity);
    const ungated = { name: 'own', gated: false, decide: () => new Set<string>(), keeps: () => false };
    assertEquals(deadline(ungated, 'A B C', {}), Infinity);
    assertEquals(deadline(ungated, 'Ad B C', {}), -Infinity, 'but never while it is down');
  });

  test('until the window after the sending of the ping that completed a winning side', () => {
    assertEquals(deadline(majority, 'A B C', { B: 1_000 }), 2_500);
    assertEquals(deadline(majority, 'A B C', { B: 1_000, C: 1_200 }), 2_700, 'one of the two suffices');
    assertEquals(
      deadline(majority, 'A B C D E', { B: 1_000, C: 1_200, D: 1_100, E: 900 }),
      2_600,
      'two of four suffice',
    );
    assertEquals(deadline(new DownAll(), 'A B C', { B: 1_000, C: 1_200 }), 2_500, 'all are needed');
  });

  test('not at all while too few have ever answered', () => {
    assertEquals(deadline(majority, 'A B C', {}), -Infinity);
    assertEquals(deadline(majority, 'A B C D E', { B: 1_000 }), -Infinity);
    assertEquals(deadline(new StaticQuorum({ quorumSize: 3 }), 'A B C D', { B: 1_000 }), -Infinity);
  });

  test('answers of down, removed and unknown members do not count', () => {
    assertEquals(deadline(majority, 'A B C Dd Ed', { D: 1_000, E: 1_000, X: 1_000 }), -Infinity);
    assertEquals(deadline(majority, 'A B C Dd Ed', { B: 1_000, C: 900 }), 2_400, 'down ones still count against it');
  });

  test('rule 3: joiners that may be up elsewhere count against it', () => {
    assertEquals(deadline(majority, 'A B C', { B: 1_000 }), 2_500);
    assertEquals(deadline(majority, 'A B C Dj Ej', { B: 1_000 }), -Infinity);
    assertEquals(deadline(majority, 'A B C Dj Ej', { B: 1_000, D: 800 }), 2_300);
  });

  test('never for a node that is down itself', () => {
    assertEquals(deadline(majority, 'Ad', {}), -Infinity);
    assertEquals(gateDeadline(majority, membersOf('B'), 'A', new Map(), window), -Infinity);
  });

  test('bisection finds what adding one by one finds', () => {
    const strategies = [majority, new KeepOldest(), new StaticQuorum({ quorumSize: 3 }), new DownAll()];
    const members = fc.array(fc.constantFrom('', '', '', 'j', 'l', 'd'), { minLength: 0, maxLength: 7 });
    const times = fc.array(fc.option(fc.nat(20)), { minLength: 7, maxLength: 7 });
    fc.assert(fc.property(fc.constantFrom(...strategies), members, times, (strategy, statuses, sentAts) => {
      const text = ['A', ...statuses.map((status, at) => String.fromCharCode(66 + at) + status)].join(' ');
      const view = membersOf(text);
      const acks = new Map<string, number>();
      sentAts.forEach((at, i) => at !== null && acks.set(String.fromCharCode(66 + i), at));
      const expected = (): number => {
        if (strategy.keeps(view, new Set('A'))) return Infinity;
        for (let from = 20; from >= 0; from--) {
          const side = view.filter(({ uid, status }) => status !== 'down' && (acks.get(uid) ?? -1) >= from);
          if (strategy.keeps(view, new Set(['A', ...side.map(({ uid }) => uid)]))) return from + window;
        }
        return -Infinity;
      };
      assertEquals(gateDeadline(strategy, view, 'A', acks, window), expected());
    }));
  });
});

describe('acknowledgements', () => {
  test('the newest ping counts, late pongs and bad times change nothing', () => {
    const state = acknowledged(acknowledged(emptyGate, 'B', 100), 'B', 200);
    assertEquals(state.acks.get('B'), 200);
    for (const sentAt of [150, 200, NaN, Infinity]) assertStrictEquals(acknowledged(state, 'B', sentAt), state);
  });

  test('those of members that went are forgotten', () => {
    const state = acknowledged(acknowledged(emptyGate, 'B', 100), 'C', 200);
    assertStrictEquals(retained(state, membersOf('A B C')), state);
    assertEquals([...retained(state, membersOf('A B Cd')).acks.keys()], ['B']);
  });
});
