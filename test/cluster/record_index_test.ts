import { describe, test } from 'node:test';
import { assert, assertEquals, assertNotStrictEquals, assertStrictEquals } from '@std/assert';
import { byAge, isConverged, leaderOf } from '../../src/cluster/convergence.ts';
import { type GossipState, mergeGossip, withRecord, withTombstone } from '../../src/cluster/gossip_state.ts';
import type { MemberStatus } from '../../src/cluster/member.ts';
import { carryIndex, indexOf, RecordIndex } from '../../src/cluster/record_index.ts';
import { isActive } from '../../src/cluster/transitions.ts';
import { fastPaths } from '../../src/fast_paths.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { gossip, record } from './support/gossip_samples.ts';

const statuses: readonly MemberStatus[] = ['joining', 'up', 'leaving', 'exiting', 'down'];
const uids = Array.from({ length: 40 }, (_, i) => String.fromCharCode(97 + i));

function assertIndex({ records }: GossipState): void {
  const [carried, anew] = [indexOf(records), new RecordIndex(records)];
  assertEquals(carried.hash, anew.hash);
  assertEquals(carried.byAge.map(({ uid }) => uid), anew.byAge.map(({ uid }) => uid));
  carried.byAge.forEach((one) => assertStrictEquals(one, records.get(one.uid)));
  assertEquals(carried.ring, anew.ring);
}

describe('the index of records', () => {
  test('is the same carried over as made anew, through changes, merges and removals', () => {
    const random = seededRandom(11);
    const below = (n: number): number => Math.floor(random.next() * n);
    const drawn = () => record(uids[below(40)]!, statuses[below(5)]!, below(9), { selfVersion: below(4) });
    const delta = (): GossipState => {
      const some = gossip(...Array.from({ length: below(4) }, drawn));
      const gone = below(3) === 0 ? uids[below(40)]! : undefined;
      return gone === undefined ? some : withTombstone(withRecord(some, record(gone, 'up')), gone, 0, 20);
    };
    for (let round = 0; round < 60; round++) {
      let state = gossip(...uids.filter(() => below(8) > 0).map((uid) => record(uid, 'up', below(9))));
      for (let i = 0; i < 30; i++) {
        // Some parts of it are asked for now and then only.
        if (below(2) === 0) indexOf(state.records).hash;
        if (below(2) === 0) indexOf(state.records).byAge;
        if (below(2) === 0) indexOf(state.records).ring;
        const what = below(3);
        if (what === 0) state = withRecord(state, drawn());
        else if (what === 1) state = withTombstone(state, uids[below(40)]!, 0, 20);
        else state = mergeGossip(state, delta(), 20);
        assertIndex(state);
      }
    }
  });

  test('a tombstone that a state has got in between takes its record out, whichever way it came', () => {
    const state = gossip(record('a', 'up', 1), record('b', 'up', 2));
    const merged = mergeGossip(state, gossip(record('a', 'up', 1)), 10);
    assertStrictEquals(merged.records, state.records);
    const told = mergeGossip(merged, { ...state, tombstones: new Map([['b', { address: 'x:1', since: 0 }]]) }, 10);
    assertEquals([...told.records.keys()], ['a']);
    const both = { ...state, tombstones: new Map([['a', { address: 'x:1', since: 0 }]]) };
    assertEquals([...mergeGossip(both, gossip(), 10).records.keys()], ['b']);
  });

  test('is carried over only where few change, and only while that fast path is on', () => {
    const state = gossip(...uids.map((uid) => record(uid, 'up', 1)));
    const { ring } = indexOf(state.records);
    const other = new Map(state.records).set('a', record('a', 'leaving', 1));
    carryIndex(state.records, other, ['a']);
    assertStrictEquals(indexOf(other).ring, ring);
    fastPaths.carriedIndex = false;
    try {
      const another = new Map(other);
      carryIndex(other, another, []);
      assertNotStrictEquals(indexOf(another).ring, ring);
    } finally {
      fastPaths.carriedIndex = true;
    }
  });

  test('answers who leads and what has converged as a look at all records does', () => {
    const random = seededRandom(5);
    const below = (n: number): number => Math.floor(random.next() * n);
    for (let i = 0; i < 500; i++) {
      const state = gossip(
        ...uids.slice(0, 6).map((uid) => record(uid, statuses[below(5)]!, below(3))),
      );
      const active = [...state.records.values()].filter(({ status }) => isActive(status));
      const seen = new Set(uids.slice(0, 6).filter(() => below(4) > 0));
      for (let twice = 0; twice < 2; twice++) {
        assertEquals(isConverged(state, seen), active.every(({ uid }) => seen.has(uid)));
      }
      const first = (['up', 'leaving', 'exiting', 'joining'] as const)
        .map((wanted) => active.find(({ status }) => status === wanted) && wanted).find((wanted) => wanted);
      const leader = leaderOf(state.records);
      assertEquals(leader?.status, first);
      const older = byAge(state.records).slice(0, leader === undefined ? 0 : byAge(state.records).indexOf(leader));
      assert(older.every(({ status }) => status !== first));
    }
  });
});
