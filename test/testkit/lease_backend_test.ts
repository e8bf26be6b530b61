import { assertEquals, assertGreater } from '@std/assert';
import { describe, test } from 'node:test';
import type { StoreAnswer } from '../../src/coordination/lease_store.ts';
import { LeaseBackend, type LeaseFaultKind, leaseFaultKinds } from '../../src/testkit/lease_backend.ts';
import { drawLeases, everySideLives, leaseAction } from '../../src/testkit/lease_load.ts';
import { leases } from '../../src/testkit/lease_plans.ts';
import { Prng } from '../../src/testkit/prng.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { profileNamed } from '../../src/testkit/profiles.ts';
import { programNamed } from '../../src/testkit/programs.ts';
import { simulate } from '../../src/testkit/simulate.ts';
import { World } from '../../src/testkit/sim_world.ts';

const { signal } = new AbortController();
const ask = (owner: string, ttlMs = 1_000) => ({ name: 'x', owner, ttlMs, signal });

function setUp(seed = 1) {
  const world = new World({ seed, drain: 'always' });
  const backend = new LeaseBackend(world);
  const [a, b] = ['a', 'b'].map((name, i) => world.start(world.addHost(name, `10.0.0.${i}:1`, () => {}))!);
  /** What came of it within `ms`: the kind of the answer, `rejected`, or `silence`. */
  const outcome = async (promise: Promise<{ kind: string }>, ms = 100): Promise<string> => {
    let seen = 'silence';
    promise.then((answer) => seen = answer.kind, () => seen = 'rejected');
    await world.advance(ms);
    return seen;
  };
  return { world, backend, a: a!, b: b!, outcome };
}

describe('the backend of simulated leases', () => {
  test('one owner at a time, tokens grow, and a term ends', async () => {
    const { world, backend, a, b, outcome } = setUp();
    const [first, second] = [backend.client(a), backend.client(b)];
    let token = 0;
    const grant = first.acquire(ask('a'));
    grant.then((answer: StoreAnswer) => token = answer.kind === 'granted' ? answer.token : 0);
    assertEquals(await outcome(grant), 'granted');
    assertEquals(await outcome(second.acquire(ask('b'))), 'held');
    assertEquals(await outcome(first.renew({ ...ask('a'), token })), 'granted');
    assertEquals(await outcome(second.release(ask('b'))), 'released');
    assertEquals(await outcome(second.acquire(ask('b'))), 'held', 'it was not theirs to release');
    await world.advance(1_000);
    assertEquals(await outcome(second.acquire(ask('b'))), 'granted');
    assertEquals(await outcome(first.renew({ ...ask('a'), token })), 'held');
    assertEquals(token, 1);
  });

  test('late, never, unknown, deny: for one node or for all, and only for a while', async () => {
    const seen: Record<LeaseFaultKind, Set<string>> = {
      late: new Set(),
      never: new Set(),
      unknown: new Set(),
      deny: new Set(),
    };
    for (let seed = 1; seed <= 20; seed++) {
      for (const kind of leaseFaultKinds) {
        const { world, backend, a, b, outcome } = setUp(seed);
        assertEquals(leaseAction(backend, `lease-${kind}`, '5000 a'), true);
        const first = outcome(backend.client(a).acquire(ask('a', 100)));
        seen[kind].add(await first);
        await world.advance(13_000);
        assertEquals(await outcome(backend.client(b).acquire(ask('b'))), 'granted', 'the other node, and afterwards');
      }
    }
    assertEquals(seen.never, new Set(['silence']));
    assertEquals(seen.unknown, new Set(['rejected']));
    assertEquals(seen.deny, new Set(['held']));
    assertEquals(seen.late.has('silence'), true);
    assertEquals(leaseAction(setUp().backend, 'move', '3'), false);
  });

  test('what was overtaken by a later request of the same owner has no effect', async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const { world, backend, a, b, outcome } = setUp(seed);
      const client = backend.client(a);
      backend.fault('late', undefined, 10);
      void client.release(ask('a'));
      await world.advance(20);
      assertEquals(await outcome(client.acquire(ask('a', 60_000))), 'granted');
      await world.advance(20_000);
      assertEquals(await outcome(backend.client(b).acquire(ask('b'))), 'held', `seed ${seed}`);
    }
  });

  test('an answer waits while its process is stopped', async () => {
    const { world, backend, a, outcome } = setUp();
    a.suspend();
    const grant = backend.client(a).acquire(ask('a'));
    assertEquals(await outcome(grant), 'silence');
    a.resume('due');
    assertEquals(await outcome(grant), 'granted');
    assertGreater(world.steps, 0);
  });
});

describe('the profile lease', () => {
  test('draws both kinds of leases, odd numbers of voters, and splits that nobody loses', () => {
    const drawn = Array.from({ length: 60 }, (_, n) => drawLeases(new Prng(`${n}`), ['a', 'b', 'c', 'd', 'e', 'f']));
    assertEquals(new Set(drawn.map(({ kind }) => kind)), new Set(['store', 'quorum']));
    assertEquals(new Set(drawn.map(({ everySideLives }) => everySideLives)), new Set([true, false]));
    for (const { kind, voters, ttlMs, maxTtlMs } of drawn) {
      assertEquals(voters.length % 2, kind === 'quorum' ? 1 : 0);
      assertEquals(maxTtlMs >= ttlMs, true);
    }
    assertEquals(everySideLives.keeps([], new Set()), true);
    const context = { random: new Prng('p'), nodes: ['n1', 'n2', 'n3'], from: 0, loopback: false, to: 100_000 };
    const actions = leases(context).flatMap((fault) => fault.kind === 'call' ? [fault.action] : []);
    for (const kind of leaseFaultKinds) assertEquals(actions.includes(`lease-${kind}`), true, kind);
  });

  test('R70, FB-008, S1: every singleton has a lease, tokens are epochs, and what a frozen handler does late is fenced', async () => {
    const { leases: leased } = profileNamed('lease');
    assertEquals(leased, true);
    let frozen = 0;
    for (const seed of [1, 4, 6]) {
      const result = await simulate({ seed, program: programNamed('singletons'), profile: 'lease' });
      assertEquals(result.failure, undefined, formatReport(result));
      assertGreater(result.statistics['handled'] ?? 0, 100);
      frozen += result.statistics['frozenHandlers'] ?? 0;
    }
    assertGreater(frozen, 0);
  });
});
