import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { splitOf } from '../../src/cluster/split.ts';
import { ringOf, ringSize, watchedBy } from '../../src/cluster/ring.ts';
import type { GossipState } from '../../src/cluster/gossip_state.ts';
import { gossip, record, withClaims } from './support/gossip_samples.ts';

const uids = (count: number): string[] => Array.from({ length: count }, (_, i) => `n${String(i).padStart(3, '0')}`);
const cluster = (names: readonly string[]): GossipState => gossip(...names.map((uid, i) => record(uid, 'up', i + 1)));
const cut = (left: readonly string[], right: readonly string[]): [string, string][] =>
  left.flatMap((a) => right.map((b): [string, string] => [a, b]));
const shown = (state: GossipState, self: string): [string, string] => {
  const { lost, victims } = splitOf(state, self);
  return [[...lost].sort().join(), [...victims].sort().join()];
};

describe('the ring', () => {
  test('everybody watches everybody while few, else at most nine, and watching is mutual', () => {
    for (const count of [1, 2, 9, 10, 11, 40]) {
      const state = cluster(uids(count));
      const ring = ringOf(state);
      for (const uid of ring) {
        const watched = watchedBy(ring, state, uid);
        assertEquals(watched.includes(uid), false);
        assertEquals(watched.length, count <= ringSize + 1 ? count - 1 : 8);
        for (const other of watched) assert(watchedBy(ring, state, other).includes(uid));
      }
    }
  });

  test('reaches past unreachable neighbours and goes on watching them', () => {
    const names = uids(40);
    const near = names.slice(1, 5);
    const watched = watchedBy(names, withClaims(cluster(names), cut(['n000'], near)), 'n000');
    for (const uid of near) assert(watched.includes(uid));
    assert(watched.includes('n008'));
    const far = watchedBy(names, withClaims(cluster(names), [['n000', 'n020']]), 'n000');
    assert(far.includes('n020'));
  });

  test('down members are no part of it', () => {
    assertEquals(ringOf(gossip(record('a', 'up', 1), record('b', 'down', 2), record('c', 'exiting', 3))), ['a', 'c']);
  });
});

describe('the split', () => {
  const five = cluster(['a', 'b', 'c', 'd', 'e']);

  test('nobody is lost without claims', () => {
    assertEquals(shown(five, 'a'), ['', '']);
  });

  test('a clean cut: each side loses the other, whatever it still believes of what the other side sees', () => {
    const right = withClaims(five, cut(['c', 'd', 'e'], ['a', 'b']));
    for (const self of ['c', 'd', 'e']) assertEquals(shown(right, self), ['a,b', '']);
    const left = withClaims(five, cut(['a', 'b'], ['c', 'd', 'e']));
    for (const self of ['a', 'b']) assertEquals(shown(left, self), ['c,d,e', '']);
  });

  test('FB-076: while only some have noticed, those lost by few count as broken links, not as a majority', () => {
    const early = withClaims(five, [['c', 'a'], ['c', 'b'], ['d', 'a']]);
    assertEquals(splitOf(early, 'c').lost.size, 0);
  });

  test('FB-079: claims of an observer that is lost itself do not count', () => {
    const state = withClaims(five, [...cut(['a', 'd', 'e'], ['b', 'c']), ['c', 'b'], ['c', 'a'], ['b', 'e']]);
    for (const self of ['a', 'd', 'e']) assertEquals(shown(state, self), ['b,c', '']);
  });

  test('FB-079: one broken link costs the younger end, the same for every node', () => {
    const state = withClaims(five, [['b', 'a'], ['a', 'b']]);
    for (const self of ['a', 'b', 'c', 'd', 'e']) assertEquals(shown(state, self), ['', 'b']);
  });

  test('a member with several broken links is the one that goes', () => {
    const state = withClaims(five, [['a', 'd'], ['a', 'e']]);
    assertEquals(shown(state, 'c'), ['', 'a']);
  });

  test('two members, one link: each has lost the other', () => {
    const two = withClaims(cluster(['a', 'b']), [['a', 'b']]);
    assertEquals(shown(two, 'a'), ['b', '']);
    assertEquals(shown(two, 'b'), ['a', '']);
  });

  test('a large cluster cut in half along the ring, and crosswise', () => {
    const names = uids(40);
    for (const left of [names.slice(0, 20), names.filter((_, i) => i % 2 === 0)]) {
      const right = names.filter((uid) => !left.includes(uid));
      let state = cluster(names);
      // Each round everybody notices who of those it watches by now is at the other side.
      for (let round = 0; round < 20; round++) {
        const ring = ringOf(state);
        const claims = left.flatMap((uid) =>
          watchedBy(ring, state, uid).filter((other) => right.includes(other)).map((
            other,
          ): [string, string] => [uid, other])
        );
        state = withClaims(state, claims);
      }
      for (const self of [left[0] ?? '', left[7] ?? '']) {
        assertEquals([...splitOf(state, self).lost].sort(), right);
        assertEquals(splitOf(state, self).victims.size, 0);
      }
    }
  });
});
