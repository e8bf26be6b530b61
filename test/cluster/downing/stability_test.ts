import { describe, test } from 'node:test';
import { assertEquals, assertStrictEquals } from '@std/assert';
import {
  calm,
  downEverybody,
  observeSplit,
  shifted,
  stabilityOf,
  type StabilityState,
} from '../../../src/cluster/downing/stability.ts';
import { membersOf } from './members.ts';

const five = membersOf('A B C D E');

/** Feeds `lost` members at times, with stableAfter 2 000 ms, then asks. */
function after(changes: readonly [at: number, lost: string, members?: string][]): StabilityState {
  let state = calm;
  for (const [at, lost, members] of changes) {
    const view = { members: members === undefined ? five : membersOf(members), unreachable: new Set(lost) };
    state = observeSplit(state, view, 2_000, at);
  }
  return state;
}

const verdict = (state: StabilityState, now: number): string => {
  const stability = stabilityOf(state, 2_000, now);
  return stability.kind === 'wait' ? `wait ${stability.until}` : stability.kind;
};

describe('R93: when a split is decided', () => {
  test('never while nobody is unreachable', () => {
    assertEquals(verdict(calm, 1e9), 'calm');
    assertEquals(verdict(after([[0, '']]), 1e9), 'calm');
  });

  test('once the view has not changed for stableAfter', () => {
    const state = after([[100, 'DE']]);
    assertEquals(verdict(state, 100), 'wait 2100');
    assertEquals(verdict(state, 2_099), 'wait 2100');
    assertEquals(verdict(state, 2_100), 'settled');
  });

  test('it stays settled, for a strategy that waits', () => {
    assertEquals(verdict(after([[100, 'DE']]), 1e9), 'settled');
  });

  test('FB-076: peers that are lost one after another are one split', () => {
    const state = after([[0, 'D'], [900, 'DE']]);
    assertEquals(verdict(state, 2_000), 'wait 2900');
    assertEquals(verdict(state, 2_900), 'settled');
  });

  test('FB-076: a flap shorter than stableAfter decides nothing', () => {
    assertEquals(verdict(after([[0, 'D'], [1_900, '']]), 1e9), 'calm');
  });

  test('a change of status starts the wait again, a joiner on this side does not', () => {
    const base = 'A B C D E';
    assertEquals(verdict(after([[0, 'E', base], [500, 'E', 'A B C Dl E']]), 2_000), 'wait 2500');
    assertEquals(verdict(after([[0, 'E', base], [500, 'E', 'A B C D E Fj']]), 2_000), 'settled');
  });

  test('the same view again changes nothing', () => {
    const state = after([[0, 'E']]);
    assertStrictEquals(observeSplit(state, { members: five, unreachable: new Set('E') }, 2_000, 500), state);
  });

  test('when all lost members are down the split is over', () => {
    assertEquals(verdict(after([[0, 'DE'], [2_000, 'DE', 'A B C Dd Ed']]), 2_000), 'calm');
  });

  test('a link broken inside the side is decided like a split', () => {
    const view = { members: five, unreachable: new Set<string>(), indirectlyConnected: new Set('AB') };
    const state = observeSplit(calm, view, 2_000, 0);
    assertEquals(verdict(state, 1_999), 'wait 2000');
    assertEquals(verdict(state, 2_000), 'settled');
  });
});

describe('R93 P60: the unstable rule', () => {
  test('a view that keeps changing past 3/4 of stableAfter is unstable at 1.75 times it', () => {
    const state = after([[0, 'B'], [1_000, 'BD'], [2_000, 'D'], [3_000, 'DE']]);
    assertEquals(verdict(state, 3_499), 'wait 3500');
    assertEquals(verdict(state, 3_500), 'unstable');
  });

  test('the last change at exactly 3/4 still settles', () => {
    assertEquals(verdict(after([[0, 'B'], [1_500, 'BD']]), 3_500), 'settled');
    assertEquals(verdict(after([[0, 'B'], [1_501, 'BD']]), 3_500), 'unstable');
  });

  test('P56: 3|2, then a further pair breaks and heals', () => {
    const state = after([[0, 'DE'], [400, 'CDE'], [1_800, 'DE']]);
    assertEquals(verdict(state, 3_500), 'unstable');
  });

  test('the answer does not depend on when a node asks', () => {
    const state = after([[0, 'B'], [1_900, 'BD']]);
    for (const now of [3_500, 5_000, 1e9]) assertEquals(verdict(state, now), 'unstable');
  });

  test('P60: when it settles nobody goes', () => {
    assertEquals(verdict(after([[0, 'B'], [1_000, 'BD'], [2_000, 'B'], [3_000, '']]), 6_000), 'calm');
  });

  test('a member that comes and goes starts the clock each time', () => {
    const flaps = Array.from({ length: 40 }, (_, i): [number, string] => [i * 300, i % 2 === 0 ? 'E' : '']);
    assertEquals(verdict(after([...flaps, [12_000, 'E']]), 12_000), 'wait 14000');
  });

  test('a change after a settled time starts the clock: a strategy that waited is not overrun', () => {
    const state = after([[0, 'E'], [60_000, 'DE']]);
    assertEquals(verdict(state, 60_000), 'wait 62000');
    assertEquals(verdict(state, 62_000), 'settled');
  });

  test('lost joiners delay, but do not make it unstable', () => {
    const joins = ['E', 'EF', 'EG', 'EH', 'EF'].map((lost, i): [number, string, string] => [
      i * 700,
      lost,
      'A B C D E Fj Gj Hj',
    ]);
    const state = after(joins);
    assertEquals(verdict(state, 3_499), 'wait 3500');
    assertEquals(verdict(state, 3_500), 'settled');
  });

  test('everybody goes, reachable or not, so that no survivor takes itself for the whole', () => {
    const members = membersOf('A B C D Ej Fd');
    assertEquals([...downEverybody({ members, unreachable: new Set('DE') })].join(''), 'ABCDE');
  });
});

test('R93: time in which this node stood still does not count as stable', () => {
  const state = shifted(after([[0, 'E']]), 600_000, 600_500);
  assertEquals(verdict(state, 600_500), 'wait 602000');
});
