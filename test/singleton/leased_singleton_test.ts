/** Whole clusters with a lease, on one virtual clock. */
import { test } from 'node:test';
import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertLessOrEqual,
  assertStringIncludes,
  assertThrows,
} from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { FencedError } from '../../src/actor/errors.ts';
import { OptionsError } from '../../src/actor/options.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import type { LeaseStore } from '../../src/coordination/lease_store.ts';
import { resolveLease } from '../../src/coordination/lease.ts';
import { QuorumLease } from '../../src/coordination/quorum_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { resolveStart, StartSingletonOptions } from '../../src/singleton/start_options.ts';
import { FaultyStore } from '../coordination/virtual_bench.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { counterClass, Journal } from './fixtures.ts';

const ttlMs = 3_000;

async function scene(size: number, options: { stopMs?: number; acquireRetryIntervalMs?: number; http?: boolean } = {}) {
  const journal = new Journal();
  const Counter = counterClass(journal, options);
  const cluster = new MemoryCluster();
  const store = new MemoryLeaseStore(cluster.environment.clock);
  const faults = new FaultyStore(store);
  const lease = (of: LeaseStore = faults) => (context: Parameters<ReturnType<typeof MemoryLease.factory>>[0]) =>
    new StoreLease(
      of,
      resolveLease('Lease', { name: context.name, owner: context.owner, ttlMs }, 10),
      cluster.environment,
    );
  await cluster.grow(size, { http: options.http ?? false });
  const { acquireRetryIntervalMs = 5_000 } = options;
  const start = (at: number) =>
    cluster.nodes[at]!.cluster.singleton.start(Counter, { lease: lease(), acquireRetryIntervalMs });
  const owner = (at: number) => `${cluster.nodes[at]!.address}#${cluster.nodes[at]!.cluster.uid}`;
  const refs = cluster.nodes.map((_, at) => start(at));
  const manager = (at: number) => cluster.nodes[at]!.cluster.singleton.find('counter')!.manager;
  return { journal, Counter, cluster, store, faults, refs, owner, manager, start };
}

test('R64, S5: the host holds the lease under its address and uid, and its token is the epoch', async () => {
  const { cluster, journal, store, owner, manager } = await scene(2);
  await cluster.until(() => journal.live === 1);
  assertEquals(store.holderOf('counter'), owner(0));
  assertEquals(manager(0).claim?.epoch, 1);
  const report = manager(0).leaseReport()!;
  assertEquals([report.state, report.token, report.acquired], ['held', 1, 1]);
  await cluster.pass(4 * ttlMs);
  assertEquals([store.holderOf('counter'), journal.lines.length], [owner(0), 1]);
});

test('R37, R67, P37, FB-042: a leave hands over with the lease: released after the end, acquired before the start, nothing lost', async () => {
  const { cluster, journal, store, refs, faults, owner } = await scene(2, { stopMs: 400 });
  const [first, second] = [owner(0), owner(1)];
  await cluster.until(() => journal.live === 1);
  for (let n = 0; n < 50; n += 1) refs[1]!.tell(n);
  const leaving = cluster.leave(cluster.nodes[0]!);
  for (let n = 50; n < 100; n += 1) refs[1]!.tell(n);
  await cluster.pass(200);
  assertEquals(store.holderOf('counter'), first, 'held while it stops');
  await leaving;
  await cluster.until(() => journal.got.length === 100);
  assertEquals(store.holderOf('counter'), second);
  assertEquals(journal.got, Array.from({ length: 100 }, (_, n) => n));
  assertEquals(await cluster.get(refs[1]!.ask('count')), 100);
  assertEquals(journal.peak, 1);
  const calls = faults.calls.filter((call) => !call.endsWith('renew'));
  assertEquals(calls[0], `${first} acquire`);
  assertEquals(calls.filter((call) => call.endsWith('release')), [`${first} release`]);
  assert(calls.indexOf(`${first} release`) < calls.lastIndexOf(`${second} acquire`));
});

test('P19, R69: messages told while the lease is pending are held, and handled in order once it is granted', async () => {
  const { cluster, journal, store, start } = await scene(1);
  await cluster.until(() => journal.live === 1);
  cluster.nodes[0]!.cluster.singleton.stop('counter');
  await cluster.until(() => journal.live === 0);
  await cluster.pass(20);
  const { signal } = new AbortController();
  assertEquals((await store.acquire({ name: 'counter', owner: 'other', ttlMs: 2_000, signal })).kind, 'granted');
  const deniedAt = cluster.environment.clock.now();
  const ref = start(0);
  for (let n = 0; n < 5; n += 1) ref.tell(n);
  await cluster.pass(1_900);
  assertEquals([journal.live, journal.got], [0, []]);
  await cluster.until(() => journal.got.length === 5);
  assertEquals(journal.got, [0, 1, 2, 3, 4]);
  assertLess(cluster.environment.clock.now() - deniedAt, 2_100, 'asked again when the term of the other ended');
});

test('the lease is seen from outside: detail, metrics, and the reason why nobody hosts', async () => {
  const { cluster, journal, store } = await scene(1, { http: true });
  const get = async (path: string) => {
    const answer = await cluster.nodes[0]!.cluster.fetch(new Request(`http://node${path}`));
    return [answer.status, await answer.text()] as const;
  };
  await cluster.until(() => journal.live === 1);
  const [, detail] = await get('/cluster/singletons/counter');
  assertEquals(JSON.parse(detail).lease.state, 'held');
  assertEquals([JSON.parse(detail).lease.token, JSON.parse(detail).epoch], [1, 1]);
  assertStringIncludes((await get('/metrics'))[1], 'singlet_lease_held{singleton="counter"} 1');
  cluster.environment.jump(2 * ttlMs);
  const { signal } = new AbortController();
  assertEquals((await store.acquire({ name: 'counter', owner: 'other', ttlMs: 60_000, signal })).kind, 'granted');
  await cluster.pass(100);
  assertEquals(journal.live, 0);
  const [status, ready] = await get('/ready');
  assertEquals([status, JSON.parse(ready).reasons], [200, [
    'Singleton counter waits for its lease: other holds it.',
  ]]);
  assertStringIncludes(JSON.parse((await get('/cluster/singletons/counter'))[1]).problem, 'waits for its lease');
  assertStringIncludes((await get('/metrics'))[1], 'singlet_lease_total{singleton="counter",what="lost"} 1');
});

test('R70, P36, FB-037, FB-129: a host that slept past its term handles nothing on waking; then it starts anew under a new token', async () => {
  const { cluster, journal, refs, manager } = await scene(1);
  await cluster.until(() => journal.live === 1);
  refs[0]!.tell(1);
  await cluster.until(() => journal.got.length === 1);
  // Messages come in, and then the whole process stands still for two terms.
  for (let n = 2; n < 50; n += 1) refs[0]!.tell(n);
  cluster.environment.jump(2 * ttlMs);
  const before = journal.got.length;
  cluster.environment.runTurns();
  assertEquals(journal.got.length, before, 'nothing is handled under the old token');
  await cluster.until(() => journal.lines.length === 3);
  assertEquals(journal.lines.map((line) => line.split(' ')[0]), ['start', 'stop', 'start']);
  await cluster.until(() => journal.got.length === 49);
  assertEquals(journal.got, Array.from({ length: 49 }, (_, n) => n + 1), 'queued messages went back and came again');
  assertGreater(manager(0).claim!.epoch, 1);
  assertEquals(journal.peak, 1);
});

test('FB-022, S3: lost and regained on the same node after another tenure: what its own senders had sent is settled, though they tell no more', async () => {
  const { cluster, journal, refs, store } = await scene(1, { acquireRetryIntervalMs: 500 });
  const ledger = () => cluster.nodes[0]!.cluster.singleton.find('counter')!.proxy.stream.ledger();
  await cluster.until(() => journal.live === 1);
  refs[0]!.tell(1);
  await cluster.until(() => ledger().acknowledged === 1);
  for (let n = 2; n < 50; n += 1) refs[0]!.tell(n);
  cluster.environment.jump(2 * ttlMs);
  const { signal } = new AbortController();
  assertEquals((await store.acquire({ name: 'counter', owner: 'other', ttlMs: 1_000, signal })).kind, 'granted');
  await cluster.until(() => journal.lines.length === 3);
  await cluster.pass(1_000);
  assertEquals(journal.got, [1], 'another may have handled the rest');
  const { told, acknowledged, outcomeUnknown, buffered } = ledger();
  assertEquals({ told, acknowledged, outcomeUnknown, buffered }, {
    told: 49,
    acknowledged: 1,
    outcomeUnknown: 48,
    buffered: 0,
  });
});

test('R70, R71: an arbiter outage ends the instance within the term; one runs again soon after', async () => {
  const { cluster, journal, owner, faults, manager, store } = await scene(2, { acquireRetryIntervalMs: 500 });
  await cluster.until(() => journal.live === 1);
  await cluster.pass(500);
  const cutAt = cluster.environment.clock.now();
  let calls = 0;
  for (const name of ['acquire', 'renew', 'release'] as const) {
    const call = faults[name].bind(faults) as (request: never) => Promise<never>;
    let broken = true;
    (faults as unknown as Record<string, unknown>)[name] = (request: never) =>
      broken ? Promise.reject(new Error(`etcd is down (${calls += 1})`)) : call(request);
    cluster.environment.timers.set(10_000, () => broken = false);
  }
  await cluster.until(() => journal.live === 0);
  assertLessOrEqual(cluster.environment.clock.now() - cutAt, ttlMs + 10);
  await cluster.pass(2_000);
  assertEquals(journal.live, 0);
  assert(manager(0).leaseProblem?.includes('etcd is down'));
  const lines = (text: string) =>
    (['info', 'warn', 'error'] as const).flatMap((level) => cluster.environment.logsAt(level))
      .filter((line) => line.includes(text)).length;
  const told = () => ['cannot be asked for', 'lease', 'granted at last'].map(lines);
  const [begun, all] = told();
  assert(begun === 1 && all! <= 4, `one story, not a storm: ${all} lines`);
  await cluster.until(() => journal.live === 1);
  assertEquals(told(), [1, all! + 1, 1], 'one line when it is over, none in between');
  assertLess(cluster.environment.clock.now() - cutAt, 10_000 + 1_000);
  assertEquals([manager(0).leaseProblem, store.holderOf('counter'), journal.peak], [undefined, owner(0), 1]);
});

test('S1: a host cut off from the arbiter but not from its peers stops within the term; nobody runs until it is back or moved', async () => {
  const { cluster, journal, owner, faults, store } = await scene(2, { acquireRetryIntervalMs: 500 });
  await cluster.until(() => journal.live === 1);
  faults.broken = owner(0);
  const cutAt = cluster.environment.clock.now();
  await cluster.until(() => journal.live === 0);
  assertLessOrEqual(cluster.environment.clock.now() - cutAt, ttlMs + 10);
  await cluster.pass(3 * ttlMs);
  assertEquals([journal.live, store.holderOf('counter')], [0, undefined], 'it is still the oldest');
  cluster.nodes[1]!.cluster.singleton.move('counter', cluster.nodes[1]!.address);
  await cluster.until(() => journal.live === 1);
  assertEquals([store.holderOf('counter'), journal.peak], [owner(1), 1]);
});

test('rule 16: a handler that runs on after the loss is fenced: it cannot tell, reply, spawn or get a token', async () => {
  const outcomes: string[] = [];
  let inside: (() => void) | undefined;
  class Slow extends Actor<string> {
    static readonly singleton: SingletonKey<string> = SingletonKey.of<string>('slow');
    override async onReceive(message: string): Promise<void> {
      if (message !== 'go') return;
      outcomes.push(`fence ${this.context.fence()}`);
      const { sender, self } = this.context;
      await new Promise<void>((resolve) => inside = resolve);
      for (
        const [name, act] of Object.entries({
          tell: () => self.tell('x', self),
          reply: () => sender.tell('late'),
          spawn: () => this.context.spawn(Slow, 'child'),
          fence: () => this.context.fence(),
        })
      ) {
        try {
          act();
          outcomes.push(`${name} passed`);
        } catch (error) {
          outcomes.push(`${name} ${error instanceof FencedError ? 'fenced' : error}`);
        }
      }
    }
  }
  const cluster = new MemoryCluster();
  const store = new MemoryLeaseStore(cluster.environment.clock);
  await cluster.grow(1);
  const ref = cluster.nodes[0]!.cluster.singleton.start(Slow, { lease: MemoryLease.factory(store, { ttlMs }) });
  ref.tell('go');
  await cluster.until(() => inside !== undefined);
  cluster.environment.jump(2 * ttlMs);
  inside!();
  await cluster.pass(50);
  assertEquals(outcomes, ['fence 1', 'tell fenced', 'reply fenced', 'spawn fenced', 'fence fenced']);
});

test('the options: a factory or a lease, an interval, and a clear error for anything else', () => {
  const { factory } = MemoryLease;
  const lease = factory(new MemoryLeaseStore(), { ttlMs });
  const options = StartSingletonOptions.create().withTypeName('x').withActor(() =>
    new (class extends Actor {
      onReceive(): void {}
    })()
  ).withLease(lease).withAcquireRetryIntervalMs(700);
  assertEquals(resolveStart(options.settings).acquireRetryIntervalMs, 700);
  assertEquals(resolveStart(options.settings).lease, lease);
  assertThrows(() => resolveStart({ ...options.settings, lease: {} as never }), OptionsError, 'lease');
  assertThrows(
    () => resolveStart({ ...options.settings, acquireRetryIntervalMs: 0 }),
    OptionsError,
    'acquireRetryIntervalMs',
  );
});

test('the cluster itself as the arbiter: the voters vote, and a leave loses nothing', async () => {
  const journal = new Journal();
  const Counter = counterClass(journal);
  const cluster = new MemoryCluster();
  const leaseVoters = ['127.0.0.1:101', '127.0.0.1:102', '127.0.0.1:103'];
  await cluster.grow(4, { leaseVoters, leaseMaxTtlMs: ttlMs });
  const lease = QuorumLease.factory({ ttlMs });
  const refs = cluster.nodes.map((node) =>
    node.cluster.singleton.start(Counter, { lease, acquireRetryIntervalMs: 500 })
  );
  await cluster.until(() => journal.live === 1);
  const manager = (at: number) => cluster.nodes[at]!.cluster.singleton.find('counter')!.manager;
  const first = manager(0).claim!.epoch;
  assertGreater(first, 1_000_000_000_000);
  await cluster.pass(3 * ttlMs);
  assertEquals(journal.lines.length, 1);
  for (let n = 0; n < 50; n += 1) refs[3]!.tell(n);
  await cluster.leave(cluster.nodes[0]!);
  for (let n = 50; n < 100; n += 1) refs[3]!.tell(n);
  await cluster.until(() => journal.got.length === 100);
  assertEquals(journal.got, Array.from({ length: 100 }, (_, n) => n));
  assertGreater(manager(0).claim!.epoch, first);
  assertEquals([journal.live, journal.peak], [1, 1]);
});

test('rule 18, R71: after a crash another runs within a term and a second, with a larger token', async () => {
  for (const voters of [false, true]) {
    const journal = new Journal();
    const Counter = counterClass(journal);
    const cluster = new MemoryCluster();
    const leaseVoters = ['127.0.0.1:101', '127.0.0.1:102', '127.0.0.1:103'];
    await cluster.grow(3, voters ? { leaseVoters, leaseMaxTtlMs: ttlMs } : {});
    const store = new MemoryLeaseStore(cluster.environment.clock);
    const lease = voters ? QuorumLease.factory({ ttlMs }) : MemoryLease.factory(store, { ttlMs });
    const managers = cluster.nodes.map((node) => {
      node.cluster.singleton.start(Counter, { lease });
      return node.cluster.singleton.find('counter')!.manager;
    });
    await cluster.until(() => journal.live === 1);
    await cluster.pass(ttlMs);
    const first = managers[0]!.claim!.epoch;
    const at = cluster.environment.clock.now();
    cluster.network.crash(cluster.nodes[0]!.address);
    managers[0]!.dispose();
    await cluster.until(() => managers[1]!.claim !== undefined);
    assertLessOrEqual(cluster.environment.clock.now() - at, ttlMs + 1_000, voters ? 'quorum' : 'memory');
    assertGreater(managers[1]!.claim!.epoch, first);
  }
});

test('S1: an operator downs a host that lives on, cut off from its peers but not from the arbiter: never two, and then it moves', async () => {
  const handled: { host: string; epoch: number }[] = [];
  class Ticker extends Actor<'tick'> {
    static readonly singleton: SingletonKey<'tick'> = SingletonKey.of<'tick'>('ticker');
    override preStart(): void {
      this.context.timers.startFixedDelay('tick', 'tick', 20);
    }
    override onReceive(): void {
      handled.push({ host: this.cluster.address, epoch: this.context.fence() });
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(3, { downing: 'manual' });
  const store = new MemoryLeaseStore(cluster.environment.clock);
  const [first, second, third] = cluster.nodes;
  for (const node of cluster.nodes) {
    node.cluster.singleton.start(Ticker, { lease: MemoryLease.factory(store, { ttlMs }), acquireRetryIntervalMs: 500 });
  }
  await cluster.until(() => handled.length > 10);
  for (const other of [second!, third!]) cluster.network.cut(first!.address, other.address);
  await cluster.pass(3_000);
  second!.cluster.down(first!.address);
  await cluster.pass(15_000);
  assertEquals(new Set(handled.map(({ host }) => host)), new Set([first!.address]), 'the lease is held where it was');
  assert(
    second!.cluster.getMembers().every(({ address }) => address !== first!.address),
    'and the others count it out',
  );
  for (const other of [second!, third!]) cluster.network.heal(first!.address, other.address);
  await cluster.until(() => handled.at(-1)!.host === second!.address);
  const hosts = handled.map(({ host }) => host);
  assertEquals(hosts.indexOf(second!.address), hosts.lastIndexOf(first!.address) + 1, 'one after the other');
  assertGreater(handled.at(-1)!.epoch, handled[0]!.epoch);
});
