/** What a node answers, and what a death proves, where a lease decides about splits. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { KeepMajority, LeaseMajority } from '../../src/cluster/downing/mod.ts';
import type { DowningStrategy } from '../../src/cluster/downing/contract.ts';
import { graceDeadline } from '../../src/cluster/gate.ts';
import { GateKeeper } from '../../src/cluster/gate_keeper.ts';
import type { NodeContext } from '../../src/cluster/node_context.ts';
import { Pulse } from '../../src/cluster/pulse.ts';
import { resolveTiming } from '../../src/cluster/timing.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { codes } from '../../src/wire/codes.ts';
import { membersOf } from './downing/members.ts';

const leased = new LeaseMajority({ lease: MemoryLease.factory(new MemoryLeaseStore(), {}) });

/** A keeper on node A, with what it has sent. */
function keeperOn(members: string, strategy: DowningStrategy, hosts = false) {
  const environment = new ManualEnvironment();
  /** Milliseconds that only the wall clock knows of. */
  const suspended = { ms: 0 };
  /** For how long this process stands still when it reads the wall clock next, before it does so or after. */
  const stands = { before: 0, after: 0 };
  const clock = {
    now: () => environment.clock.now(),
    wall: () => {
      const { before, after } = stands;
      Object.assign(stands, { before: 0, after: 0 });
      environment.jump(before);
      const wall = environment.clock.wall() + suspended.ms;
      environment.jump(after);
      return wall;
    },
  };
  const all = membersOf(members);
  const self = all.find(({ uid }) => uid === 'A')!;
  const hosting = new Map(hosts ? [['s', { epoch: 1, plannedSince: 1, since: 1 }]] : []);
  const records = new Map(all.map((one) => [one.uid, { ...one, hosting }]));
  const sent: [to: string, code: unknown, nonce: unknown][] = [];
  const own = { ...environment, clock, timers: environment.timers };
  const node = {
    environment: own,
    pulse: new Pulse(own),
    settings: { strategy, timing: resolveTiming(), uid: 'A' },
    membership: () => ({ gossip: { records }, selfUid: 'A' }),
    view: () => ({ members: all, self }),
    send: (to: string, envelope: readonly unknown[]) => void sent.push([to, envelope[0], envelope[1]]),
  } as unknown as NodeContext;
  const keeper = new GateKeeper(node);
  const peer = (uid: string) => all.find((one) => one.uid === uid)! as never;
  const answer = (uid: string): void => {
    const nonce = sent.findLast(([, code]) => code === codes.gatePing)?.[2];
    keeper.ponged(peer(uid), [codes.gatePong, nonce] as never);
  };
  return { environment, keeper, sent, peer, answer, suspended, stands };
}

describe('the gate keeper where a lease decides about splits', () => {
  test('every node pings every member, hosting or not, and without one only hosts do', async () => {
    const { environment, keeper, sent } = keeperOn('A B C', leased);
    keeper.refresh();
    assertEquals(sent.length, 2);
    await environment.elapse(5_000);
    assertEquals(sent.length, 2 + 2 * 5);
    const other = keeperOn('A B C', new KeepMajority());
    other.keeper.refresh();
    await other.environment.elapse(5_000);
    assertEquals(other.sent, []);
  });

  test('rule 2: nobody on the other side of a split that this node sees is answered, also where a link comes back for a moment', () => {
    const { keeper, sent, peer } = keeperOn('A B C', leased);
    const pongs = () => sent.splice(0).map(([to]) => to);
    keeper.pinged(peer('B'), [codes.gatePing, 7] as never);
    assertEquals(pongs().length, 1);
    keeper.leaveUnanswered(new Set(['B']));
    keeper.pinged(peer('B'), [codes.gatePing, 8] as never);
    assertEquals(pongs().length, 0);
    keeper.pinged(peer('C'), [codes.gatePing, 9] as never);
    assertEquals(pongs().length, 1);
    keeper.leaveUnanswered(new Set());
    keeper.pinged(peer('B'), [codes.gatePing, 10] as never);
    assertEquals(pongs().length, 1);
  });

  test('rule 4: a death proves nothing once the dead may have claimed', async () => {
    const { environment, keeper, answer } = keeperOn('A B C', leased);
    keeper.refresh();
    answer('B');
    await environment.elapse(2_500);
    assertEquals([keeper.mayHaveClaimed('B'), keeper.mayHaveClaimed('C')], [false, false], 'C is younger: seen lately');
    await environment.elapse(600);
    assert(keeper.mayHaveClaimed('B'));
    assertEquals(keeper.mayHaveClaimed('X'), false);
    const other = keeperOn('A B', new KeepMajority());
    other.keeper.refresh();
    await other.environment.elapse(60_000);
    assertEquals(other.keeper.mayHaveClaimed('B'), false);
  });

  test('rule 2: on the side that leads a host goes on for the grace after the last word of the most silent; elsewhere not', () => {
    const until = (members: string, acks: Record<string, number>, last: number) =>
      graceDeadline(leased.arbiter, membersOf(members), 'A', new Map(Object.entries(acks)), 1_500, 5_000, last);
    assertEquals(until('A B C', { B: 9_000 }, 3_000), 9_500);
    assertEquals(until('A B C', { B: 7_000 }, 3_000), 8_500, 'the majority itself must be heard within the window');
    assertEquals(until('A B C D E', { B: 9_000 }, 3_000), -Infinity, 'no majority');
    assertEquals(until('A B', {}, 3_000), 9_500, 'the half of the oldest');
    assertEquals(until('A B C', { B: 9_000 }, -Infinity), -Infinity, 'one has never been heard');
    assertEquals(until('Ad B C', { B: 9_000, C: 9_000 }, 9_000), -Infinity);
  });
});

describe('the gate after a suspend that only the wall clock shows', () => {
  test('a process that stands still between the readings of its two clocks was not suspended', async () => {
    const { environment, keeper, answer, stands } = keeperOn('A B C', new KeepMajority(), true);
    keeper.refresh();
    for (let look = 0; look < 10; look += 1) {
      for (const uid of ['B', 'C']) answer(uid);
      stands[look % 2 === 0 ? 'before' : 'after'] = 90;
      assertEquals(keeper.open(), true, `look ${look}`);
      await environment.elapse(500);
    }
  });

  for (
    const [name, members, strategy] of [
      ['keep-majority', 'A B C', new KeepMajority()],
      ['lease-majority', 'A B C', leased],
      ['lease-majority, the oldest of two', 'A B', leased],
    ] as const
  ) {
    test(`S1: it is closed before anything else has run, and opens with fresh answers (${name})`, async () => {
      const { environment, keeper, answer, suspended } = keeperOn(members, strategy, true);
      const answerAll = () => {
        for (const uid of members.split(' ').slice(1)) answer(uid);
      };
      keeper.refresh();
      answerAll();
      assertEquals(keeper.open(), true);
      suspended.ms += 49;
      assertEquals(keeper.open(), true, 'readings of two clocks');
      suspended.ms += 20_000;
      assertEquals(keeper.open(), false);
      answerAll();
      assertEquals(keeper.open(), false, 'an answer to a ping of before says nothing');
      let opened = 0;
      keeper.onOpen(() => void opened++);
      await environment.elapse(1);
      answerAll();
      assertEquals([keeper.open(), opened], [true, 1]);
      suspended.ms -= 3_600_000;
      assertEquals(keeper.open(), false, 'a clock that is set back could hide a suspend');
      await environment.elapse(1);
      answerAll();
      assertEquals(keeper.open(), true);
    });
  }
});
