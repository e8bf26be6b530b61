import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { digestOf, type GossipState, mergeGossip, withTombstone } from '../../src/cluster/gossip_state.ts';
import { isConverged, leaderOf } from '../../src/cluster/convergence.ts';
import { step } from '../../src/cluster/membership.ts';
import type { Membership, MembershipEffect, MembershipEvent } from '../../src/cluster/membership_state.ts';
import { createMembership, selfRecord } from '../../src/cluster/membership_state.ts';
import { gossip, membership, peer, record, withClaims } from './support/gossip_samples.ts';

function run(
  state: Membership,
  event: MembershipEvent,
  now = 0,
): { state: Membership; effects: readonly MembershipEffect[] } {
  return step(state, event, now);
}

const kinds = (effects: readonly MembershipEffect[]): string[] => effects.map((effect) => effect.kind);
const statusOf = (state: Membership, uid: string): string | undefined => state.gossip.records.get(uid)?.status;
const tick: MembershipEvent = { kind: 'tick' };

/** Gossip of `from` with this state, seen by its sender and `seen`. */
function heard(from: string, state: GossipState, seen: readonly string[] = []): MembershipEvent {
  return { kind: 'gossip', from: peer(from), message: { state, seen: [from, ...seen] } };
}

/** Everybody has seen the present state. */
function converge(state: Membership): Membership {
  const digest = digestOf(state.gossip);
  const seen = [...state.gossip.records.values()].filter((one) => one.status !== 'down').map((one) => one.uid);
  const message = { clusterId: state.gossip.clusterId, digest, seen };
  const from = seen.find((uid) => uid !== state.selfUid);
  if (from === undefined) return run(state, tick).state;
  return run(state, { kind: 'digest', from: peer(from), message, repair: false }).state;
}

describe('the leader', () => {
  test('is the oldest up member, else the oldest leaving, exiting or joining one, never a down one', () => {
    const cases: readonly (readonly [GossipState, string | undefined])[] = [
      [gossip(record('a', 'up', 2), record('b', 'up', 1)), 'b'],
      [gossip(record('a', 'down', 1), record('b', 'up', 7), record('c', 'leaving', 2)), 'b'],
      [gossip(record('a', 'exiting', 1), record('b', 'leaving', 2), record('c', 'joining')), 'b'],
      [gossip(record('a', 'exiting', 2), record('b', 'exiting', 1)), 'b'],
      [gossip(record('a', 'down', 1), record('c', 'joining'), record('b', 'joining')), 'b'],
      [gossip(record('a', 'down', 1)), undefined],
    ];
    for (const [state, leader] of cases) assertEquals(leaderOf(state.records)?.uid, leader);
  });

  test('rule 3: convergence includes joining and unreachable members, not down ones', () => {
    const state = withClaims(
      gossip(record('a', 'up', 1), record('b', 'joining'), record('c', 'up', 2), record('d', 'down', 3)),
      [['a', 'c']],
    );
    assert(!isConverged(state, new Set(['a', 'b'])));
    assert(!isConverged(state, new Set(['a', 'c'])));
    assert(isConverged(state, new Set(['a', 'b', 'c'])));
  });

  test('rule 3: numbers joiners on convergence, in join order, and never before', () => {
    const before = membership('a', gossip(record('a', 'up', 1), record('c', 'joining'), record('b', 'joining')));
    assertEquals(statusOf(run(before, tick).state, 'b'), 'joining');
    const after = converge(before);
    assertEquals([...after.gossip.records.values()].map((one) => one.upNumber), [1, 2, 3]);
    assertEquals(after.gossip.lastNumber, 3);
    assertEquals([...after.seen], ['a']);
  });

  test('rule 3: no numbering while any member is unreachable, and a number is never given twice', () => {
    const state = { ...gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining')), lastNumber: 6 };
    const cut = converge(membership('a', withClaims(state, [['b', 'c']])));
    assertEquals(statusOf(cut, 'c'), 'joining');
    const whole = converge(membership('a', state));
    assertEquals(whole.gossip.records.get('c')?.upNumber, 7);
  });

  test('rule 3: after it stood still, only what everybody has seen since counts', () => {
    const before = gossip(record('a', 'up', 1), record('b', 'up', 2));
    const joined = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining'));
    const told = heard('b', joined, ['c']);
    assertEquals(statusOf(run(membership('a', before), told).state, 'c'), 'up');
    // The same words, read late: who said them may have taken this node out meanwhile.
    const woken = run(membership('a', before), { kind: 'woke' });
    assertEquals(kinds(woken.effects).includes('push'), true);
    const late = run(woken.state, told).state;
    assertEquals(statusOf(late, 'c'), 'joining');
    assertEquals(statusOf(converge(late), 'c'), 'up');
  });

  test('rule 3: claims of and about down members hold nothing up', () => {
    const state = gossip(record('a', 'up', 1), record('b', 'down', 2), record('c', 'joining'));
    assertEquals(statusOf(converge(membership('a', withClaims(state, [['a', 'b'], ['b', 'c']]))), 'c'), 'up');
  });

  test('only the leader numbers', () => {
    const state = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining'));
    assertEquals(statusOf(converge(membership('b', state)), 'c'), 'joining');
  });

  test('minMembers holds back the first numbering only', () => {
    const two = gossip(record('a', 'joining'), record('b', 'joining'));
    assertEquals(statusOf(converge(membership('a', two, ['a'], 3)), 'a'), 'joining');
    const grown = gossip(record('a', 'up', 1), record('b', 'joining'));
    assertEquals(statusOf(converge(membership('a', grown, ['a'], 3)), 'b'), 'up');
  });

  test('removes exiting members on convergence and tells them', () => {
    const before = membership('a', gossip(record('a', 'up', 1), record('b', 'exiting', 2)), ['a']);
    const message = { clusterId: 'cluster', digest: digestOf(before.gossip), seen: ['b'] };
    const { state, effects } = run(before, { kind: 'digest', from: peer('b'), message, repair: false });
    assertEquals(statusOf(state, 'b'), undefined);
    assert(state.gossip.tombstones.has('b'));
    assertEquals(kinds(effects), ['farewell', 'push']);
  });

  test('does not remove exiting members while somebody is unreachable', () => {
    const state = gossip(record('a', 'up', 1), record('b', 'exiting', 2), record('c', 'up', 3));
    assertEquals(statusOf(converge(membership('a', withClaims(state, [['a', 'c']]))), 'b'), 'exiting');
  });
});

describe('rule 1: down members', () => {
  const downed = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'down', 3));

  test('are removed M after everybody has seen it, not before', () => {
    const waiting = run(membership('a', downed), tick, 100);
    assertEquals(waiting.effects, []);
    const message = { clusterId: 'cluster', digest: digestOf(downed), seen: ['b'] };
    const seen = run(waiting.state, { kind: 'digest', from: peer('b'), message, repair: false }, 500);
    assertEquals(seen.effects, [{ kind: 'wake', at: 2_500 }]);
    assertEquals(statusOf(run(seen.state, tick, 2_499).state, 'c'), 'down');
    assertEquals(statusOf(run(seen.state, tick, 2_500).state, 'c'), undefined);
  });

  test('the margin goes on when the state changes meanwhile', () => {
    const seen = step(membership('a', downed, ['a', 'b']), tick, 0).state;
    const busy = step(seen, { kind: 'entry', key: 'k', value: 1 }, 1_000).state;
    assertEquals(statusOf(step(busy, tick, 2_000).state, 'c'), undefined);
  });

  test('a new leader starts M again', () => {
    const first = step(membership('b', downed, ['a', 'b']), tick, 0).state;
    assertEquals(first.margins.size, 0);
    const both = step(first, { kind: 'down', uids: ['a'], terminated: true, why: 'test' }, 1_900);
    assertEquals(statusOf(both.state, 'c'), 'down');
    assertEquals(statusOf(step(both.state, tick, 3_899).state, 'c'), 'down');
    assertEquals(statusOf(step(both.state, tick, 3_900).state, 'c'), undefined);
  });

  test('proven death skips M', () => {
    const { state } = step(membership('a', gossip(record('a', 'up', 1), record('b', 'up', 2))), {
      kind: 'down',
      uids: ['b'],
      terminated: true,
      why: 'gone',
    }, 0);
    assertEquals(statusOf(state, 'b'), undefined);
  });

  test('an unreachable member that is not down holds the removal up', () => {
    const state = withClaims(gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'down', 3)), [['a', 'b']]);
    const after = step(membership('a', state), tick, 0);
    assertEquals(after.effects, []);
    assertEquals(statusOf(step(after.state, tick, 60_000).state, 'c'), 'down');
  });
});

describe('the end of a node', () => {
  test('R86: a decision that contains this node ends it, for a new incarnation to come back', () => {
    const { state, effects } = run(membership('a', gossip(record('a', 'up', 1), record('b', 'up', 2))), {
      kind: 'down',
      uids: ['a'],
      terminated: false,
      why: 'split',
    });
    assertEquals(state.phase, 'ended');
    assertEquals(effects.at(-1), { kind: 'ended', why: 'split', selfDown: true, rejoin: true, via: [] });
    assertEquals(run(state, { kind: 'leaving' }).effects, []);
  });

  test('FB-061: it learns from gossip that it was downed, and that it was removed', () => {
    const mine = gossip(record('a', 'up', 1), record('b', 'up', 2));
    const asDown = run(membership('b', mine), heard('a', gossip(record('a', 'up', 1), record('b', 'down', 2))));
    assertEquals(kinds(asDown.effects).at(-1), 'ended');
    const asGone = run(membership('b', mine), heard('a', withTombstone(mine, 'b', 0, 100)));
    assertEquals(asGone.effects, [{
      kind: 'ended',
      why: 'this node was removed',
      selfDown: true,
      rejoin: true,
      via: [],
    }]);
  });

  test('a leaver is told that it may go', () => {
    const mine = gossip(record('a', 'up', 1), record('b', 'exiting', 2));
    const { effects } = run(membership('b', mine), heard('a', withTombstone(mine, 'b', 0, 100)));
    assertEquals(effects, [{ kind: 'ended', why: 'left', selfDown: false, rejoin: false, via: [] }]);
  });

  test('the last member goes without asking anybody', () => {
    const leaving = run(membership('a', gossip(record('a', 'up', 1), record('b', 'down', 2))), { kind: 'leaving' });
    assertEquals(statusOf(leaving.state, 'a'), 'leaving');
    const gone = run(leaving.state, { kind: 'exiting' });
    assertEquals(kinds(gone.effects).at(-1), 'ended');
  });
});

describe('joining', () => {
  test('R101: forming alone makes this node up at once', () => {
    const outside = createMembership(record('a', 'joining'), { marginMs: () => 0, minMembers: 1 });
    const { state } = run(outside, { kind: 'form', clusterId: 'x', formedAt: 5, founders: [] });
    assertEquals(selfRecord(state).status, 'up');
    assertEquals(selfRecord(state).upNumber, 1);
  });

  test('rule 5: founders are up only after all of them have seen the founding', () => {
    const outside = createMembership(record('a', 'joining'), { marginMs: () => 0, minMembers: 1 });
    const { state } = run(outside, { kind: 'form', clusterId: 'x', formedAt: 5, founders: [record('b', 'joining')] });
    assertEquals(selfRecord(state).status, 'joining');
    assertEquals(selfRecord(converge(state)).status, 'up');
  });

  test('FB-059: the welcome is any gossip that knows this uid; nothing else is believed before', () => {
    const outside = createMembership(record('b', 'joining'), { marginMs: () => 0, minMembers: 1 });
    const strange = run(outside, heard('a', gossip(record('a', 'up', 1))));
    assertEquals(strange.state.phase, 'outside');
    const welcome = gossip(record('a', 'up', 1), record('b', 'joining'));
    const inside = run(outside, heard('a', welcome));
    assertEquals(inside.state.phase, 'member');
    assertEquals([...inside.state.seen].sort(), ['a', 'b']);
    assertEquals(kinds(inside.effects), ['progress']);
  });

  test('what a node published before the welcome is kept', () => {
    const outside = createMembership(record('b', 'joining'), { marginMs: () => 0, minMembers: 1 });
    const started = new Map([['s', { generation: 1, role: undefined }]]);
    const busy = run(outside, { kind: 'publish', started, hosting: undefined }).state;
    const inside = run(busy, heard('a', gossip(record('a', 'up', 1), record('b', 'joining'))));
    assertEquals(selfRecord(inside.state).started, started);
    assertEquals(kinds(inside.effects), ['push']);
  });

  test('FB-055: a joiner waits while its address is held, whatever the status of the holder, and no longer', () => {
    for (const status of ['joining', 'up', 'leaving', 'exiting'] as const) {
      const holder = record('b', status, status === 'joining' ? 0 : 2);
      const state = membership('a', gossip(record('a', 'up', 1), holder));
      const joiner = record('z', 'joining', 0, { address: holder.address });
      const waits = run(state, { kind: 'join', record: joiner });
      assertEquals(waits.effects, [{ kind: 'contested', joiner, holder }]);
      const freed = run(waits.state, { kind: 'down', uids: ['b'], terminated: true, why: 'new process' });
      assertEquals(statusOf(freed.state, 'z'), 'joining', status);
      assertEquals(
        statusOf(run(waits.state, { kind: 'down', uids: ['b'], terminated: true, why: '' }, 6_000).state, 'z'),
        undefined,
      );
    }
  });

  test('a waiting joiner that got in elsewhere is never put back to joining', () => {
    const holder = record('b', 'up', 2);
    const joiner = record('z', 'joining', 0, { address: holder.address });
    const waits = run(membership('a', gossip(record('a', 'up', 1), holder)), { kind: 'join', record: joiner }).state;
    const elsewhere = gossip(record('a', 'up', 1), record('b', 'down', 2), { ...joiner, status: 'up', upNumber: 3 });
    const known = run(waits, heard('z', elsewhere));
    assertEquals(known.state.waiting.size, 1, 'z is no member here yet, so its gossip is not believed');
    const merged = { ...waits, gossip: mergeGossip(waits.gossip, elsewhere, 10) };
    const { state } = run(merged, { kind: 'down', uids: ['z'], terminated: false, why: '' });
    assertEquals(statusOf(state, 'z'), 'down');
  });

  test('a removed uid can never join again', () => {
    const state = membership('a', withTombstone(gossip(record('a', 'up', 1), record('b', 'down', 2)), 'b', 0, 10));
    const { effects } = run(state, { kind: 'join', record: record('b', 'joining') });
    assertEquals(effects.map((effect) => effect.kind === 'refuse-join' && effect.final), [true]);
  });
});

describe('R116, R117: what is refused', () => {
  const mine = gossip(record('a', 'up', 1), record('b', 'up', 2, { selfVersion: 5 }), record('c', 'up', 3));
  const self = mine.records.get('b') ?? record('b', 'up');
  const edit = (uid: string, change: Partial<typeof self>): GossipState => {
    const one = mine.records.get(uid) ?? record(uid, 'up');
    return { ...mine, records: new Map(mine.records).set(uid, { ...one, ...change }) };
  };
  const cases: readonly (readonly [string, GossipState])[] = [
    ['other roles for this node', edit('b', { roles: ['admin'] })],
    ['other roles for a known uid', edit('c', { roles: ['admin'], selfVersion: 2 })],
    ['another number for this node', edit('b', { upNumber: 1 })],
    ['another address for a known uid', edit('c', { address: '10.9.9.9:1' })],
    ['a version that jumps too far', edit('c', { selfVersion: 5_000_000 })],
    ['a number that jumps too far', { ...mine, lastNumber: 50_000_000 }],
    ['another formation stamp', { ...mine, formedAt: 1 }],
    [
      'a reachability version that jumps too far',
      { ...mine, reachability: new Map([['c', new Map([['a', { version: 9_000_000, unreachable: true }]])]]) },
    ],
  ];
  for (const [what, state] of cases) {
    test(what, () => {
      const before = membership('b', mine);
      const after = run(before, heard('a', state));
      assertEquals(kinds(after.effects), ['refused']);
      assertEquals(digestOf(after.state.gossip), digestOf(mine));
    });
  }

  const started = new Map([['s', { generation: 1, role: undefined }]]);
  const claims: readonly (readonly [string, GossipState])[] = [
    ['a newer version of this node by somebody else', edit('b', { selfVersion: 6, started })],
    ['other content under the same version', edit('b', { started })],
    ['what this node says about reachability', withClaims(mine, [['b', 'a']])],
  ];
  for (const [what, state] of claims) {
    test(`${what} is refuted, so that whoever believes it comes back`, () => {
      const { state: after, effects } = run(membership('b', mine), heard('a', state));
      assertEquals(kinds(effects), ['refused', 'push']);
      const victim = run(membership('a', mine), heard('c', state)).state;
      const healed = run(victim, { ...heard('b', after.gossip) }).state;
      assertEquals(digestOf(healed.gossip), digestOf(after.gossip));
      assertEquals(healed.gossip.records.get('b')?.started.size, 0);
      assertEquals(healed.gossip.reachability.get('b')?.get('a')?.unreachable ?? false, false);
      // Once more the same changes nothing.
      assertEquals(digestOf(run(after, heard('a', state)).state.gossip), digestOf(after.gossip));
    });
  }

  for (const status of ['leaving', 'exiting'] as const) {
    test(`that this node is ${status}, which cannot be taken back: it ends and joins again`, () => {
      const { effects } = run(membership('b', mine), heard('a', edit('b', { status })));
      assertEquals(effects.map((effect) => effect.kind === 'ended' && effect.rejoin), [true]);
    });
  }

  test('gossip of nodes that are no members, of another cluster, or from another address', () => {
    const before = membership('b', mine);
    assertEquals(kinds(run(before, heard('x', mine)).effects), ['refused', 'notice']);
    assertEquals(kinds(run(before, heard('a', { ...mine, clusterId: 'other' })).effects), ['refused', 'notice']);
    const moved: MembershipEvent = {
      kind: 'gossip',
      from: { ...peer('a'), address: '1.1.1.1:1' },
      message: { state: mine, seen: [] },
    };
    assertEquals(kinds(run(before, moved).effects), ['refused']);
  });

  test('a downed member is not believed, but told', () => {
    const down = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'down', 3));
    const { state, effects } = run(membership('b', down), heard('c', edit('c', { selfVersion: 9 })));
    assertEquals(kinds(effects), ['reply']);
    assertEquals(state.gossip.records.get('c')?.selfVersion, 1);
  });

  test('others may promote this node and mark it down', () => {
    const joining = gossip(record('a', 'up', 1), record('b', 'joining'));
    const promoted = { ...gossip(record('a', 'up', 1), record('b', 'up', 2)) };
    assertEquals(selfRecord(run(membership('b', joining), heard('a', promoted)).state).status, 'up');
  });
});

describe('seen', () => {
  const mine = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'up', 3));

  test('is joined for the same state, taken over for a newer one, and started again after a merge of two', () => {
    const same = run(membership('b', mine), heard('a', mine, ['c']));
    assertEquals([...same.state.seen].sort(), ['a', 'b', 'c']);
    assertEquals(same.effects, []);

    const newer = { ...mine, entries: new Map([['k', { key: 'k', version: 1, by: 'a', value: 1 }]]) };
    const taken = run(membership('b', mine, ['a', 'b', 'c']), heard('a', newer));
    assertEquals([...taken.state.seen].sort(), ['a', 'b']);
    assertEquals(kinds(taken.effects), ['progress']);

    const older = run(taken.state, heard('c', mine));
    assertEquals([...older.state.seen].sort(), ['a', 'b']);
    assertEquals(kinds(older.effects), ['reply']);

    const other = { ...mine, entries: new Map([['l', { key: 'l', version: 1, by: 'c', value: 1 }]]) };
    const both = run(taken.state, heard('c', other));
    assertEquals([...both.state.seen], ['b']);
    assertEquals(kinds(both.effects), ['push']);
  });

  test('a digest that ran ahead of its state counts once the state is here', () => {
    const newer = { ...mine, entries: new Map([['k', { key: 'k', version: 1, by: 'a', value: 1 }]]) };
    const message = { clusterId: 'cluster', digest: digestOf(newer), seen: ['a', 'c'] };
    const early = run(membership('b', mine), { kind: 'digest', from: peer('c'), message, repair: false });
    assertEquals(early.effects, []);
    const { state } = run(early.state, heard('a', newer));
    assertEquals([...state.seen].sort(), ['a', 'b', 'c']);
  });

  test('a digest that differs is answered where it asks for that: soon, or at once with the whole state', () => {
    const message = { clusterId: 'cluster', digest: '0'.repeat(16), seen: [] };
    const cases: readonly (readonly [boolean | 'whole', string[]])[] = [[false, []], [true, ['repair']], ['whole', [
      'reply',
    ]]];
    for (const [repair, expected] of cases) {
      const { effects } = run(membership('b', mine), { kind: 'digest', from: peer('c'), message, repair });
      assertEquals(kinds(effects), expected);
    }
  });

  test('uids that are no members are ignored', () => {
    const { state } = run(membership('b', mine), heard('a', mine, ['x', 'y']));
    assertEquals([...state.seen].sort(), ['a', 'b']);
  });
});
