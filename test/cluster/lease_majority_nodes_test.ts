/** Splits that a lease decides, over real nodes on one virtual clock. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLess, assertRejects } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { LeaseMajority, type LeaseMajorityOptions } from '../../src/cluster/downing/lease_majority.ts';
import { resolveTiming } from '../../src/cluster/timing.ts';
import type { LeaseStore, StoreRequest } from '../../src/coordination/lease_store.ts';
import { resolveLease, settingsFor } from '../../src/coordination/lease.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { allUp, Harness, statuses, type TestNode } from './support/node_harness.ts';

const hosting = new Map([['s', { epoch: 1, plannedSince: 1, since: 1 }]]);
const timing = resolveTiming({ stableAfterMs: 3_000, arbitrationMs: 10_000 });

/** One backend, and what each address sees of it. */
class Backend {
  readonly harness = new Harness();
  readonly store = new MemoryLeaseStore(this.harness.environment.clock);
  /** By address: how it fails. `silent` gives no answer, but acts. */
  readonly trouble = new Map<string, 'error' | 'silent'>();
  readonly log: string[] = [];

  settings(options: Partial<LeaseMajorityOptions> = {}) {
    return { strategy: this.strategy(options), timing };
  }

  strategy(options: Partial<LeaseMajorityOptions> = {}): LeaseMajority {
    return new LeaseMajority({
      lease: (context) =>
        new StoreLease(
          this.#seenFrom(context.owner.split('#')[0]!),
          resolveLease('TestLease', settingsFor(context, {}), 10),
          context.environment,
        ),
      ...options,
    });
  }

  get holder(): string | undefined {
    return this.store.holderOf('test-downing')?.split('#')[0];
  }

  #seenFrom(address: string): LeaseStore {
    const through = async <T>(kind: string, run: () => Promise<T>): Promise<T> => {
      const trouble = this.trouble.get(address);
      this.log.push(`${kind} ${address}${trouble === undefined ? '' : ` ${trouble}`}`);
      if (trouble === 'error') throw new Error('no route to the backend');
      const answer = await run();
      return trouble === 'silent' ? new Promise<T>(() => {}) : answer;
    };
    return {
      acquire: (request: StoreRequest) => through('acquire', () => this.store.acquire(request)),
      renew: (request) => through('renew', () => this.store.renew(request)),
      release: (request: StoreRequest) => through('release', () => this.store.release(request)),
    };
  }
}

const lives = (one: TestNode): boolean => one.node.ended() === undefined;
const whole = (nodes: readonly TestNode[]): boolean =>
  nodes.every((one) => allUp(one) && statuses(one).length === nodes.length);

/** So many nodes on the left, the oldest among them, and on the right. */
async function sides(onLeft: number, onRight: number, options: Partial<LeaseMajorityOptions> = {}) {
  const backend = new Backend();
  const { harness } = backend;
  const nodes = await harness.cluster(onLeft + onRight, '10.0.0.', backend.settings(options));
  await harness.environment.elapse(1_500);
  return { backend, harness, nodes, left: nodes.slice(0, onLeft), right: nodes.slice(onLeft) };
}

describe('LeaseMajority, node by node', () => {
  test('P59: 3|2, the majority asks first and goes on; then 1|2, and the single holder goes on', async () => {
    const { backend, harness, left, right } = await sides(3, 2);
    harness.cutAll(left, right);
    const took = await harness.until(() => whole(left), 9_000);
    assertLess(took, 2_000 + 3_000 + timing.removalMarginMs + 1_200);
    assertEquals(backend.holder, left[0]!.address);
    await harness.until(() => right.every((one) => !lives(one)), 32_000);
    assert(whole(left));
    // Within the term of its lease, the claimant is cut off from the others of its side.
    harness.cutAll([left[0]!], left.slice(1));
    await harness.until(() => whole([left[0]!]) && left.slice(1).every((one) => !lives(one)), 32_000);
    assertEquals(backend.log.filter((line) => line.startsWith('release')), []);
  });

  test('R92: a denied majority and a granted minority end with exactly one side', async () => {
    const { backend, harness, left, right } = await sides(2, 1);
    for (const one of left) backend.trouble.set(one.address, 'error');
    harness.cutAll(left, right);
    await harness.until(() => whole(right), 25_000);
    await harness.until(() => left.every((one) => !lives(one)), 32_000);
    assertEquals(backend.holder, right[0]!.address);
    assert(left[0]!.node.ended()!.why.includes('no route to the backend'), left[0]!.node.ended()!.why);
  });

  test('FB-053: a backend that acts and gives no answer: its grant goes back, and exactly one side goes on', async () => {
    const { backend, harness, left, right } = await sides(2, 1);
    backend.trouble.set(left[0]!.address, 'silent');
    harness.cutAll(left, right);
    await harness.until(() => !lives(left[0]!), 15_000);
    // The next of its side asks, or the other side: whoever is first.
    const others = [...left.slice(1), ...right];
    await harness.until(() => [left.slice(1), right].some((side) => whole(side)), 30_000);
    await harness.until(() => others.filter(lives).length <= 2, 30_000);
    assert(whole(others.filter(lives)));
  });

  test('without the backend nobody goes on after a split; without a split nobody needs it', async () => {
    const { backend, harness, nodes, left, right } = await sides(2, 1);
    for (const one of nodes) backend.trouble.set(one.address, 'error');
    nodes[0]!.node.publish({ hosting });
    await harness.environment.elapse(10_000);
    assert(whole(nodes) && nodes[0]!.node.gate.open());
    harness.cutAll(left, right);
    await harness.until(() => nodes.every((one) => !lives(one)), 40_000);
  });

  test('an outage is one line when it begins, and its reason can be asked for', async () => {
    const { backend, harness, left, right } = await sides(2, 1);
    backend.trouble.set(left[0]!.address, 'error');
    harness.cutAll(left, right);
    await harness.until(() => left[0]!.node.claim()?.problem !== undefined, 6_000);
    assertEquals(left[0]!.node.claim()?.problem, 'lease test-downing: no route to the backend');
    await harness.environment.elapse(2_000);
    const lines = harness.environment.logsAt('warn').filter((line) => line.includes('cannot be asked for'));
    assertEquals(lines.length, 1);
    backend.trouble.clear();
    await harness.until(() => whole(left), 6_000);
    assertEquals(left[0]!.node.claim(), { state: 'none', problem: undefined });
    const counters = left[0]!.node.counters();
    assertGreater(counters.get('downing lease failed')!, 1);
    assertEquals(counters.get('downing lease granted'), 1);
  });

  test('of two members either one goes on when the other is gone, the younger a little later', async () => {
    for (const gone of [0, 1]) {
      const backend = new Backend();
      const { harness } = backend;
      const nodes = await harness.cluster(2, '10.0.0.', backend.settings());
      await harness.environment.elapse(2_000);
      nodes[gone]!.crash();
      const took = await harness.until(() => whole([nodes[1 - gone]!]), 15_000);
      const expected = 2_000 + 3_000 + (gone === 0 ? 5_000 : 0) + timing.removalMarginMs;
      assert(took > expected - 1_000 && took < expected + 1_200, `${took}, expected ${expected}`);
    }
  });

  test('rule 2: a crash on the other side closes no gate of the majority; a minority closes within G', async () => {
    const { harness, nodes, left, right } = await sides(3, 2);
    for (const one of nodes) one.node.publish({ hosting });
    await harness.environment.elapse(2_000);
    right[1]!.crash();
    let closed = 0;
    await harness.until(() => {
      for (const one of [...left, right[0]!]) if (!one.node.gate.open()) closed += 1;
      return whole([...left, right[0]!]);
    }, 10_000);
    assertEquals(closed, 0);
    harness.cutAll(left, [right[0]!]);
    const took = await harness.until(() => !right[0]!.node.gate.open(), 2_000);
    assertLess(took, timing.gateWindowMs + 1);
    assert(left[0]!.node.gate.open());
  });

  test('rule 2: with a short delay of the minority the majority pauses until it has the lease', async () => {
    const { backend, harness, nodes, left, right } = await sides(2, 1, { minorityDelayMs: 100 });
    nodes[0]!.node.publish({ hosting });
    await harness.environment.elapse(2_000);
    harness.cutAll(left, right);
    const closedAfter = await harness.until(() => !nodes[0]!.node.gate.open(), 3_000);
    assertLess(closedAfter, timing.gateWindowMs + 101);
    await harness.until(() => backend.holder !== undefined, 5_000);
    await harness.until(() => nodes[0]!.node.gate.open(), 50);
  });

  for (const [delay, denied] of [[5_000, false], [5_000, true], [0, false], [0, true], [1_500, true]] as const) {
    const who = denied ? 'the minority is granted' : 'the majority asks first';
    test(`S1: no gate is open beside a successor of the other side (${delay} ms, ${who})`, async () => {
      const { backend, harness, nodes, left, right } = await sides(2, 1, { minorityDelayMs: delay });
      for (const one of nodes) one.node.publish({ hosting });
      await harness.environment.elapse(500);
      if (denied) { for (const one of left) backend.trouble.set(one.address, 'error'); }
      harness.cutAll(left, right);
      const removed = (side: readonly TestNode[], others: readonly TestNode[]): boolean =>
        side.some((one) => lives(one) && statuses(one).length <= nodes.length - others.length);
      let successors = 0;
      await harness.until(() => {
        for (const [side, others] of [[left, right], [right, left]] as const) {
          if (!removed(side, others)) continue;
          successors += 1;
          assert(others.every((one) => !one.node.gate.open()), 'open beside a successor');
        }
        return [left, right].some((side) => side.every((one) => !lives(one)));
      }, 60_000);
      assertGreater(successors, 0);
    });
  }

  test('a split that heals while the lease is asked for takes nobody out, and the lease is free again', async () => {
    const { backend, harness, nodes, left, right } = await sides(2, 1);
    backend.trouble.set(left[0]!.address, 'error');
    harness.cutAll(left, right);
    await harness.until(() => backend.log.length > 0, 6_000);
    backend.trouble.clear();
    harness.healAll(left, right);
    await harness.until(() => whole(nodes), 5_000);
    await harness.environment.elapse(10_000);
    assert(whole(nodes));
    assertEquals(backend.holder, undefined);
  });

  test('the lease is given back early when who was taken out serves its address again, not before', async () => {
    const backend = new Backend();
    const { harness } = backend;
    const nodes = await harness.cluster(2, '10.0.0.', backend.settings());
    const [a, b] = nodes as [TestNode, TestNode];
    await harness.environment.elapse(2_000);
    a.crash();
    await harness.until(() => whole([b]), 15_000);
    assertEquals(backend.holder, b.address);
    const again = await harness.add(a.address, [b.address], backend.settings());
    await harness.until(() => whole([b, again]), 5_000);
    await harness.until(() => backend.holder === undefined, 1_000);
    await harness.environment.elapse(2_000);
    b.crash();
    await harness.until(() => whole([again]), 15_000);
  });

  test('who was cut off longer than a claim is good for goes, whatever the lease would say', async () => {
    const { backend, harness, left, right } = await sides(2, 1);
    for (const one of right) backend.trouble.set(one.address, 'silent');
    harness.cutAll(left, right);
    await harness.until(() => whole(left), 10_000);
    // A pause of the other side, far beyond the term: nobody holds the lease any more.
    harness.environment.jump(600_000);
    backend.trouble.clear();
    await harness.until(() => right.every((one) => !lives(one)), 20_000);
    assert(right.some((one) => /has not been heard/.test(one.node.ended()!.why)), right[0]!.node.ended()!.why);
    assert(whole(left));
  });

  test('FB-079: a broken link inside of a side takes one end out, by the lease', async () => {
    const { harness, nodes } = await sides(5, 0);
    harness.network.cut(nodes[1]!.address, nodes[2]!.address);
    const rest = nodes.filter((_, n) => n !== 2);
    await harness.until(() => !lives(nodes[2]!) || !lives(nodes[1]!), 10_000);
    await harness.until(() => nodes.filter(lives).length === 4 && whole(nodes.filter(lives)), 10_000);
    assertEquals(rest.every(lives) || !lives(nodes[1]!), true);
  });

  test('S1: an operator cannot take out another member, which might claim for itself; each node may take out itself', async () => {
    const { harness, nodes, left, right } = await sides(2, 1);
    for (const one of left) for (const other of right) assertEquals(one.node.down(other.address), 'refused');
    harness.cutAll(left, right);
    await harness.environment.elapse(1_000);
    assertEquals(left[0]!.node.down(right[0]!.address), 'refused', 'nor while it is cut off');
    await harness.until(() => whole(left) && !lives(right[0]!), 40_000);
    assertEquals(left[1]!.node.down(left[1]!.address), 'downed');
    await harness.until(() => nodes.filter(lives).length === 1 && statuses(left[0]!).length === 1, 20_000);
    assertEquals(left[0]!.node.down('10.0.0.99:1'), 'unknown');
  });

  test('a lease that is too short, or that every node would own, is refused, and nothing stays behind', async () => {
    const { harness } = new Backend();
    const lease = MemoryLease.factory(new MemoryLeaseStore(harness.environment.clock), { ttlMs: 10_000 });
    const error = await assertRejects(
      () => harness.add('10.0.9.1:4000', [], { strategy: new LeaseMajority({ lease }), timing }),
      OptionsError,
      'LeaseMajority.lease: must have a ttlMs of at least 27264',
    );
    assertEquals(error.value, 10_000);
    const store = new MemoryLeaseStore(harness.environment.clock);
    const strategy = new LeaseMajority({
      lease: (context) => MemoryLease.factory(store, {})({ ...context, owner: 'every node' }),
    });
    await assertRejects(
      () => harness.add('10.0.9.1:4000', [], { strategy, timing }),
      OptionsError,
      'LeaseMajority.lease.owner: must contain',
    );
    await harness.add('10.0.9.1:4000', []);
  });
});
