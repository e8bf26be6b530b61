import { describe, test } from 'node:test';
import { assertEquals, assertStrictEquals } from '@std/assert';
import { answered, forgotten, longestSilenceMs, nobodyHeard, seen } from '../../src/cluster/heard.ts';
import { membersOf } from './downing/members.ts';

const at = (now: number, wall = now + 1_000_000) => ({ now, wall });
const who = (text: string, uid: string) => membersOf(text).find((one) => one.uid === uid)!;

describe('since when a member has been silent', () => {
  const four = 'A B C Dd';
  const state = answered(answered(seen(nobodyHeard, membersOf(four), 'B', at(0)), 'A', at(400)), 'C', at(700));

  test('the one that has been silent longest counts; down ones do not', () => {
    assertEquals(longestSilenceMs(state, membersOf(four), who(four, 'B'), at(1_000)), 600);
    assertEquals(longestSilenceMs(nobodyHeard, membersOf('A Bd'), who('A Bd', 'A'), at(1_000)), 0);
  });

  test('an older member must have answered; a younger one counts from when it was seen', () => {
    const fresh = seen(nobodyHeard, membersOf('A B C'), 'B', at(100));
    assertEquals(longestSilenceMs(fresh, membersOf('A B C'), who('A B C', 'B'), at(300)), Infinity);
    const heardA = answered(fresh, 'A', at(250));
    assertEquals(longestSilenceMs(heardA, membersOf('A B C'), who('A B C', 'B'), at(300)), 200);
  });

  test('what is forgotten is silent for ever, until a new answer', () => {
    const members = membersOf('A B');
    const once = answered(seen(nobodyHeard, members, 'A', at(0)), 'B', at(500));
    const gone = forgotten(once);
    assertEquals(longestSilenceMs(gone, members, who('A B', 'A'), at(600)), Infinity);
    assertEquals(longestSilenceMs(answered(gone, 'B', at(700)), members, who('A B', 'A'), at(750)), 50);
  });

  test('a suspend counts, where only the wall clock shows it; a wall clock that is set back does not', () => {
    const members = membersOf('A B');
    const one = answered(seen(nobodyHeard, members, 'A', at(0)), 'B', at(500));
    assertEquals(longestSilenceMs(one, members, who('A B', 'A'), at(600, 1_000_600 + 60_000)), 60_100);
    assertEquals(longestSilenceMs(one, members, who('A B', 'A'), at(600, 400)), 100);
  });

  test('an old answer does not replace a newer one, a stranger is not taken in, and who has gone is forgotten', () => {
    assertStrictEquals(answered(state, 'A', at(300)), state);
    assertStrictEquals(answered(state, 'X', at(900)), state);
    assertStrictEquals(seen(state, membersOf(four), 'B', at(900)), state);
    assertEquals([...seen(state, membersOf('A B Cd'), 'B', at(900)).keys()], ['A']);
  });
});
