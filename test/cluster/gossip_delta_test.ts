import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { deltaOf, isEmptyDelta, promotes } from '../../src/cluster/gossip_delta.ts';
import { digestOf, type GossipState, mergeGossip, withRecord, withTombstone } from '../../src/cluster/gossip_state.ts';
import type { Membership } from '../../src/cluster/membership_state.ts';
import { receiveGossip } from '../../src/cluster/receive.ts';
import { gossip, membership, peer, record, withClaims } from './support/gossip_samples.ts';

const base = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining'), record('d', 'up', 3));

/** One change each, as a node makes them. */
const changes: Readonly<Record<string, (state: GossipState) => GossipState>> = {
  'a joiner': (state) => withRecord(state, record('e', 'joining')),
  'a status': (state) => withRecord(state, record('b', 'down', 2)),
  'a promotion': (state) => ({ ...withRecord(state, record('c', 'up', 4)), lastNumber: 4 }),
  'a claim': (state) => withClaims(state, [['a', 'd']]),
  'an entry': (state) => ({ ...state, entries: new Map([['k', { key: 'k', version: 1, by: 'a', value: 7 }]]) }),
  'a removal': (state) => withTombstone(state, 'd', 5, 10),
};

describe('a delta', () => {
  for (const [name, change] of Object.entries(changes)) {
    test(`of ${name} makes the old state the new one, and holds little else`, () => {
      const now = change(base);
      const delta = deltaOf(base, now);
      assertEquals(isEmptyDelta(delta, base), false);
      assertEquals(delta.records.size <= 2, true);
      assertEquals(digestOf(mergeGossip(base, delta, 10)), digestOf(now));
    });
  }

  test('of nothing is empty', () => assertEquals(isEmptyDelta(deltaOf(base, base), base), true));

  test('mentions nobody whose record is not in it, so that it can be checked as any gossip', () => {
    const delta = deltaOf(base, withClaims(base, [['a', 'd']]));
    assertEquals([...delta.records.keys()].sort(), ['a', 'd']);
  });

  test('promotes where somebody has a number that the receiver does not know', () => {
    assertEquals(promotes(base, deltaOf(base, changes['a promotion']!(base))), true);
    for (const name of ['a joiner', 'a status', 'a claim', 'an entry', 'a removal']) {
      assertEquals(promotes(base, deltaOf(base, changes[name]!(base))), false, name);
    }
    assertEquals(promotes(base, { ...base, records: new Map([['x', record('x', 'leaving', 2)]]) }), true);
    assertEquals(
      promotes(withTombstone(base, 'd', 1, 10), { ...base, records: new Map([['d', record('d', 'up', 3)]]) }),
      false,
    );
  });
});

/** `a` sends what changed from `base` to `now`; `mine` is what its receiver has. */
function receive(mine: GossipState, now: GossipState): { state: Membership; effects: readonly string[] } {
  const message = { state: deltaOf(base, now), seen: ['a'], digest: digestOf(now) };
  const { state, effects } = receiveGossip(membership('b', mine), peer('a'), message);
  return { state, effects: effects.map((effect) => effect.kind) };
}

describe('rule 3: a delta that arrives', () => {
  const promoted = changes['a promotion']!(base);

  test('and leads to exactly its sender’s state is taken, counted as seen, and passed on', () => {
    const { state, effects } = receive(base, promoted);
    assertEquals([state.gossip.records.get('c')?.status, [...state.seen].sort(), effects], ['up', ['a', 'b'], [
      'push',
    ]]);
  });

  test('with a promotion is not taken by who lacks a record that its sender has: the whole is asked for', () => {
    const mine = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining'));
    const before = digestOf(mine);
    const { state, effects } = receive({ ...mine, lastNumber: 3 }, promoted);
    assertEquals([digestOf({ ...state.gossip, lastNumber: 2 }), effects], [before, ['ask']]);
  });

  test('with a promotion is not taken by who has a record that its sender lacks', () => {
    const { state, effects } = receive(changes['a joiner']!(base), promoted);
    assertEquals([state.gossip.records.get('c')?.status, effects], ['joining', ['ask']]);
  });

  test('without one is taken by anybody, is seen by nobody else then, and goes on', () => {
    const { state, effects } = receive(changes['a joiner']!(base), withRecord(base, record('d', 'leaving', 3)));
    assertEquals(state.gossip.records.get('d')?.status, 'leaving');
    assertEquals([[...state.seen], effects], [['b'], ['push']]);
  });

  test('and brings nothing new is answered by nobody', () => {
    const both = changes['a joiner']!(withRecord(base, record('d', 'leaving', 3)));
    assertEquals(receive(both, withRecord(base, record('d', 'leaving', 3))).effects, []);
  });

  test('says nothing to a node that is in no cluster', () => {
    const message = { state: base, seen: ['a'], digest: digestOf(base) };
    const outside = { ...membership('c', gossip(record('c', 'joining'))), phase: 'outside' as const };
    assertEquals(receiveGossip(outside, peer('a'), message), { state: outside, effects: [] });
  });

  test('that downs its receiver ends it, also in another state', () => {
    const { state } = receive(changes['a joiner']!(base), withRecord(base, record('b', 'down', 2)));
    assertEquals(state.phase, 'ended');
  });
});
