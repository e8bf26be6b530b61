import { describe, test } from 'node:test';
import { assert, assertEquals, assertNotEquals, assertStrictEquals } from '@std/assert';
import {
  digestOf,
  type GossipState,
  type MemberRecord,
  mergeGossip,
  mergeRecord,
  pruneTombstones,
  withRecord,
  withTombstone,
} from '../../src/cluster/gossip_state.ts';
import type { MemberStatus } from '../../src/cluster/member.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { gossip, record } from './support/gossip_samples.ts';

const statuses: readonly MemberStatus[] = ['joining', 'up', 'leaving', 'exiting', 'down'];

/** Random states over few uids and small versions, so that ties and conflicts (also forged ones) are common. */
function randomState(random: { next(): number }): GossipState {
  const below = (n: number): number => Math.floor(random.next() * n);
  const records: MemberRecord[] = [];
  for (const uid of ['a', 'b', 'c', 'd']) {
    if (below(4) === 0) continue;
    const status = statuses[below(5)] ?? 'up';
    const extra = {
      selfVersion: below(3),
      roles: below(2) === 0 ? [] : ['r'],
      terminated: status === 'down' && below(2) === 0,
      hosting: new Map(below(2) === 0 ? [] : [['s', { epoch: below(3), plannedSince: 1, since: 1 }]]),
    };
    records.push(record(uid, status, below(4), extra));
  }
  let state = { ...gossip(...records), lastNumber: below(9) };
  const reachability = new Map<string, Map<string, { version: number; unreachable: boolean }>>();
  for (const observer of state.records.keys()) {
    const row = new Map<string, { version: number; unreachable: boolean }>();
    for (const subject of state.records.keys()) {
      if (below(2) === 0) row.set(subject, { version: below(3), unreachable: below(2) === 0 });
    }
    if (row.size > 0) reachability.set(observer, row);
  }
  const entries = new Map();
  for (const key of ['k', 'l']) {
    if (below(2) === 0) entries.set(key, { key, version: below(3), by: ['a', 'b'][below(2)] ?? 'a', value: below(2) });
  }
  state = { ...state, reachability, entries };
  const gone = ['a', 'b', 'c', 'd'][below(8)];
  return gone === undefined ? state : withTombstone(state, gone, 0, 100);
}

const same = (a: GossipState, b: GossipState): boolean =>
  digestOf(a) === digestOf(b) && [...a.tombstones.keys()].sort().join() === [...b.tombstones.keys()].sort().join();

const merge = (a: GossipState, b: GossipState): GossipState => mergeGossip(a, b, 100);

describe('merging gossip', () => {
  test('FB-060: is commutative, associative and idempotent, forged equal versions included', () => {
    const random = seededRandom(7);
    for (let i = 0; i < 3_000; i++) {
      const [a, b, c] = [randomState(random), randomState(random), randomState(random)];
      assert(same(merge(a, b), merge(b, a)), `commutative, round ${i}`);
      assert(same(merge(merge(a, b), c), merge(a, merge(b, c))), `associative, round ${i}`);
      assert(same(merge(a, a), a), `idempotent, round ${i}`);
      const both = merge(a, b);
      assert(same(merge(both, a), both) && same(merge(both, b), both), `absorbing, round ${i}`);
    }
  });

  test('R102: a tombstone wins over every status that lagging gossip still holds', () => {
    for (const status of statuses) {
      const removed = withTombstone(gossip(record('a', 'up', 1), record('b', 'down', 2)), 'b', 0, 100);
      const lagging = gossip(record('a', 'up', 1), record('b', status, status === 'joining' ? 0 : 2));
      assertEquals([...merge(removed, lagging).records.keys()], ['a']);
      assertEquals([...merge(lagging, removed).records.keys()], ['a']);
    }
  });

  test('FB-058: rows of and about members that are gone vanish with them', () => {
    const reachability = new Map([
      ['a', new Map([['b', { version: 1, unreachable: true }]])],
      ['b', new Map([['a', { version: 1, unreachable: true }]])],
    ]);
    const state = { ...gossip(record('a', 'up', 1), record('b', 'up', 2)), reachability };
    assertEquals(withTombstone(state, 'b', 0, 100).reachability.size, 0);
    assertEquals(merge(state, withTombstone(state, 'b', 0, 100)).reachability.size, 0);
  });

  test('a member is numbered once: of two numbers the smaller stays', () => {
    assertEquals(mergeRecord(record('a', 'up', 5), record('a', 'up', 3)).upNumber, 3);
    assertEquals(mergeRecord(record('a', 'leaving', 0), record('a', 'up', 3)), record('a', 'leaving', 3));
  });

  test('what adds nothing keeps the identity of the record', () => {
    const newer = record('a', 'leaving', 1, { selfVersion: 4 });
    assertStrictEquals(mergeRecord(newer, record('a', 'up', 1, { selfVersion: 3 })), newer);
  });

  test('FB-073: tombstones are bounded, the first learned go first, and old ones are forgotten', () => {
    let state = gossip();
    for (let i = 0; i < 2_000; i++) {
      state = withTombstone(withRecord(state, record(`x${i}`, 'down', i + 1)), `x${i}`, i, 100);
    }
    assertEquals(state.tombstones.size, 100);
    assertEquals([...state.tombstones.keys()][0], 'x1900');
    assertEquals(pruneTombstones(state, 1_950).tombstones.size, 50);
    assertEquals(pruneTombstones(state, 3_000).tombstones.size, 0);
  });
});

describe('digests', () => {
  test('do not depend on the order of records, rows, entries or map keys', () => {
    const [a, b] = [record('a', 'up', 1), record('b', 'up', 2)];
    const hosting = new Map([['x', { epoch: 1, plannedSince: 1, since: 1 }], ['y', {
      epoch: 2,
      plannedSince: 1,
      since: 1,
    }]]);
    const one = gossip(a, { ...b, hosting });
    const other = gossip({ ...b, hosting: new Map([...hosting].reverse()) }, { ...a, appVersion: '1' });
    assertEquals(digestOf(one), digestOf(other));
  });

  test('change with every field that members must agree on', () => {
    const base = gossip(record('a', 'up', 1));
    const entry = { key: 'k', version: 1, by: 'a', value: 1 };
    const variants: GossipState[] = [
      base,
      { ...base, clusterId: 'x' },
      { ...base, lastNumber: 9 },
      gossip(record('a', 'leaving', 1)),
      gossip(record('a', 'up', 1, { selfVersion: 2 })),
      gossip(record('a', 'up', 1, { roles: ['r'] })),
      gossip(record('a', 'up', 1, { started: new Map([['s', { generation: 1, role: undefined }]]) })),
      gossip(record('a', 'up', 1, { started: new Map([['s', { generation: 1, role: 'r' }]]) })),
      { ...base, entries: new Map([['k', entry]]) },
      { ...base, entries: new Map([['k', { ...entry, value: null }]]) },
      { ...base, reachability: new Map([['a', new Map([['a', { version: 1, unreachable: false }]])]]) },
    ];
    assertEquals(new Set(variants.map(digestOf)).size, variants.length);
  });

  test('do not contain tombstones, which each node forgets on its own', () => {
    const state = gossip(record('a', 'up', 1), record('b', 'down', 2));
    const removed = withTombstone(state, 'b', 0, 100);
    assertEquals(digestOf(removed), digestOf(pruneTombstones(removed, 1)));
    assertNotEquals(digestOf(removed), digestOf(state));
  });
});
