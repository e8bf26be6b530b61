import { describe, test } from 'node:test';
import { assert, assertEquals, assertStrictEquals } from '@std/assert';
import { Alarm } from '../../src/cluster/alarm.ts';
import { canonicalText, hashDigits, hashText } from '../../src/cluster/canonical.ts';
import type { MemberChange } from '../../src/cluster/contract.ts';
import { type GossipState, withRecord } from '../../src/cluster/gossip_state.ts';
import { compareSides, isApart, rankOf, type SideRank } from '../../src/cluster/heal.ts';
import type { MembershipView, MemberStatus } from '../../src/cluster/member.ts';
import { judgeProbe, newDeathCase, probeTimes } from '../../src/cluster/proven_death.ts';
import { isActive, isLater, isStatus, laterStatus, mayMove } from '../../src/cluster/transitions.ts';
import { buildView, diffViews, sameView } from '../../src/cluster/view.ts';
import { ManualEnvironment, seededRandom } from '../../src/testkit/manual_environment.ts';
import { gossip, membership, record, withClaims } from './support/gossip_samples.ts';

const statuses: readonly MemberStatus[] = ['joining', 'up', 'leaving', 'exiting', 'down', 'removed'];

describe('statuses', () => {
  test('move as the table says, and only onward', () => {
    const allowed = statuses.flatMap((from) => statuses.filter((to) => mayMove(from, to)).map((to) => `${from}→${to}`));
    assertEquals(allowed, [
      'joining→up',
      'joining→leaving',
      'joining→down',
      'up→leaving',
      'up→down',
      'leaving→exiting',
      'leaving→down',
      'exiting→down',
      'exiting→removed',
      'down→removed',
    ]);
    for (const from of statuses) for (const to of statuses) if (mayMove(from, to)) assert(isLater(to, from));
  });

  test('of two the later one wins, in either order', () => {
    for (const a of statuses) for (const b of statuses) assertEquals(laterStatus(a, b), laterStatus(b, a));
    assertEquals(laterStatus('exiting', 'down'), 'down');
    assertEquals(statuses.filter(isActive), ['joining', 'up', 'leaving', 'exiting']);
    assert(!isStatus('toString') && !isStatus(1) && isStatus('up'));
  });
});

describe('rule 4: proven death', () => {
  test('needs two refusals at least 100 ms apart', () => {
    const first = judgeProbe(newDeathCase, 'refused', 1_000);
    assert(first.kind === 'again');
    assertEquals(first.afterMs, probeTimes.apart);
    const early = judgeProbe(first.next, 'refused', 1_099);
    assertEquals(early.kind, 'again');
    assertEquals(judgeProbe(first.next, 'refused', 1_100).kind, 'proven');
  });

  test('anything but a refusal starts over', () => {
    for (const outcome of ['open', 'timeout', 'other'] as const) {
      const first = judgeProbe(newDeathCase, 'refused', 0);
      assert(first.kind === 'again');
      const between = judgeProbe(first.next, outcome, 100);
      assert(between.kind === 'again');
      assertEquals(judgeProbe(between.next, 'refused', 200).kind, 'again');
    }
  });

  test('tries thin out', () => {
    let state = newDeathCase;
    let last = 0;
    for (let i = 0; i < 30; i++) {
      const verdict = judgeProbe(state, 'open', i);
      assert(verdict.kind === 'again');
      state = verdict.next;
      last = verdict.afterMs;
    }
    assertEquals(last, probeTimes.later);
  });
});

describe('rule 6: ranks of sides', () => {
  const side: SideRank = { clusterId: 'x', formedAt: 10, founded: true, upNumber: 3, address: 'h2:1' };

  test('order them totally: founded, formation stamp, cluster id, number, address with its port as a number', () => {
    const worse: readonly Partial<SideRank>[] = [
      { founded: false, clusterId: 'a', formedAt: 1 },
      { clusterId: 'y', formedAt: 11 },
      { clusterId: 'y', upNumber: 1 },
      { upNumber: 4, address: 'h1:1' },
      { address: 'h3:1' },
      { address: 'h2:10' },
      { upNumber: 0 },
    ];
    for (const change of worse) {
      assert(compareSides(side, { ...side, ...change }) < 0, JSON.stringify(change));
      assert(compareSides({ ...side, ...change }, side) > 0, JSON.stringify(change));
    }
    assertEquals(compareSides(side, side), 0);
    assertEquals(compareSides({ ...side, upNumber: 0 }, { ...side, upNumber: 0 }), 0);
  });

  test('rule 6: a side of the same cluster id is another one only if its oldest member is out here', () => {
    const state = gossip(record('a', 'down', 1), record('b', 'up', 2), record('c', 'leaving', 3));
    const rank = rankOf(state);
    const of = (uid: string, upNumber: number): SideRank => ({
      ...rank,
      upNumber,
      address: record(uid, 'up', upNumber).address,
    });
    const cases: readonly (readonly [SideRank, boolean])[] = [
      [of('a', 1), true],
      [of('b', 2), false],
      [of('c', 3), false],
      // Never heard of: it joined that side after the two had parted.
      [of('d', 4), true],
      // Another process at the address of a member.
      [of('b', 9), true],
      [{ ...of('b', 2), clusterId: 'another' }, true],
      [{ ...of('b', 0), founded: false }, true],
    ];
    for (const [side, apart] of cases) assertEquals(isApart(state, side), apart, JSON.stringify(side));
  });

  test('are taken from the oldest active member', () => {
    const state = gossip(record('a', 'down', 1), record('b', 'up', 2), record('c', 'up', 3));
    assertEquals(rankOf(state).upNumber, 2);
    assertEquals(rankOf(state).founded, true);
  });
});

const verdicts = (own: Record<string, boolean>) =>
  new Map(Object.entries(own).map(([uid, reachable]) => [uid, { reachable }]));

const mineAgain = (state: GossipState): GossipState => ({ ...state, reachability: new Map() });

/** Of members that stay: who changed, member by member. */
function differences(before: MembershipView, after: MembershipView): MemberChange[] {
  return after.members.flatMap((member): MemberChange[] => {
    const known = before.members.find(({ uid }) => uid === member.uid);
    const { reachable: was, ...old } = known!;
    const { reachable, ...now } = member;
    const up = member.uid === after.self.uid && now.status === 'up' && old.status !== 'up';
    return [
      ...(sameFields(old, now) ? [] : [{ kind: 'member', before: known, member } as const]),
      ...(was === reachable ? [] : [{ kind: 'reachability', member, reachable } as const]),
      ...(up ? [{ kind: 'self-up' } as const] : []),
    ];
  });
}

function sameFields<T extends object>(a: T, b: T): boolean {
  return (Object.keys(a) as (keyof T)[]).every((key) => a[key] === b[key]);
}

describe('views', () => {
  const mine = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'up', 3));

  test('are in age order, with the same objects for what did not change', () => {
    const before = buildView(membership('a', mine), 1, new Map());
    const after = buildView(membership('a', { ...mine }), 2, new Map());
    assert(sameView(before, after));
    assertStrictEquals(before.members[1], after.members[1]);
    assertEquals(before.members.map((member) => member.uid), ['a', 'b', 'c']);
  });

  test('R98, R99: the own verdict decides; only about others do claims count, and not those of lost observers', () => {
    const state = membership('a', withClaims(mine, [['b', 'c']]));
    const reachable = (own: Record<string, boolean>): boolean[] =>
      buildView(state, 1, verdicts(own)).members.map((member) => member.reachable);
    assertEquals(reachable({ a: true, b: true, c: true }), [true, true, true]);
    assertEquals(reachable({}), [true, true, false]);
    assertEquals(reachable({ b: false }), [true, false, true]);
    assertEquals(reachable({ a: false, b: false, c: false }), [true, false, false]);
  });

  test('go on from the view before, and are what they would be without it', () => {
    const random = seededRandom(3);
    const below = (n: number): number => Math.floor(random.next() * n);
    const uids = ['a', 'b', 'c', 'd', 'e'];
    let state = gossip(...uids.map((uid) => record(uid, 'joining')));
    let before = buildView(membership('a', state), 0, new Map());
    for (let revision = 1; revision < 2_000; revision++) {
      const uid = uids[below(5)]!;
      if (below(3) === 0) state = withClaims(below(2) === 0 ? mineAgain(state) : state, [[uids[below(5)]!, uid]]);
      else state = withRecord(state, record(uid, below(4) === 0 ? 'down' : 'up', below(3)));
      const own = verdicts(below(2) === 0 ? {} : { [uids[below(5)]!]: below(2) === 0 });
      const view = buildView(membership('a', state), revision, own, before);
      const anew = buildView(membership('a', state), revision, own);
      assertEquals(view, anew);
      view.members.forEach((member, i) => assertStrictEquals(member, anew.members[i]));
      assertStrictEquals(view.self, anew.self);
      assertStrictEquals(view.leader, anew.leader);
      const same = before.members.length === anew.members.length &&
        before.members.every((member, i) => member === anew.members[i]);
      assertEquals(view.members === before.members, same);
      assertEquals(diffViews(before, view).filter(({ kind }) => kind !== 'leader'), differences(before, view));
      before = view;
    }
  });

  test('tell what changed, in order', () => {
    const b = record('b', 'up', 2);
    const before = buildView(
      membership('c', gossip(record('a', 'up', 1), b, record('c', 'joining'))),
      1,
      new Map(),
    );
    const entries = new Map([['k', { key: 'k', version: 1, by: 'b', value: 1 }]]);
    const next = { ...gossip(b, record('c', 'up', 3), record('d', 'joining')), entries };
    const after = buildView(membership('c', next), 2, verdicts({ d: false }));
    assertEquals(
      diffViews(before, after).map((change) =>
        'member' in change ? `${change.kind} ${change.member.uid} ${change.member.status}` : change.kind
      ),
      ['member a removed', 'member c up', 'self-up', 'member d joining', 'reachability d joining', 'leader', 'entry'],
    );
  });
});

describe('canonical text', () => {
  test('does not depend on the order of keys, and keeps types apart', () => {
    assertEquals(
      canonicalText({ b: 1, a: [new Map([['y', 1], ['x', 2]])] }),
      canonicalText({ a: [new Map([['x', 2], ['y', 1]])], b: 1 }),
    );
    const values = [
      '1',
      1,
      1n,
      true,
      'true',
      null,
      undefined,
      [],
      {},
      new Map(),
      new Set(),
      [1],
      new Uint8Array([1]),
      new Date(1),
    ];
    assertEquals(new Set(values.map(canonicalText)).size, values.length);
  });

  test('hashes are stable over runtimes', () => {
    assertEquals(hashDigits(hashText('singlet')), hashDigits(hashText('singlet')));
    assertEquals(new Set(Array.from({ length: 20_000 }, (_, i) => hashDigits(hashText(`n${i}`)))).size, 20_000);
  });
});

describe('an alarm', () => {
  test('rings once at the earliest time, and can be set again', () => {
    const environment = new ManualEnvironment();
    const rings: number[] = [];
    const alarm = new Alarm(environment, () => void rings.push(environment.clock.now()));
    alarm.at(50);
    alarm.at(80);
    alarm.at(20);
    environment.advance(100);
    assertEquals(rings, [20]);
    alarm.at(150);
    alarm.cancel();
    alarm.at(170);
    environment.advance(100);
    assertEquals(rings, [20, 170]);
    assertEquals(environment.timerCount, 0);
  });
});
