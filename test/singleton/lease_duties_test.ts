/** What a singleton owes its lease: that it is asked for whatever way it is started, and given back before its process ends. */
import { test } from 'node:test';
import {
  assert,
  assertEquals,
  assertGreaterOrEqual,
  assertLess,
  assertStringIncludes,
  assertThrows,
} from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { OptionsError } from '../../src/actor/options.ts';
import type { LeaseContext, LeaseFactory } from '../../src/coordination/lease.ts';
import { resolveLease } from '../../src/coordination/lease.ts';
import type { LeaseStore } from '../../src/coordination/lease_store.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { StartSingletonOptions } from '../../src/singleton/start_options.ts';
import { singletonTask } from '../../src/singleton/task.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { counterClass, Journal } from './fixtures.ts';

const ttlMs = 3_000;

function leaseOver(cluster: MemoryCluster, store: LeaseStore): LeaseFactory {
  const { environment } = cluster;
  return ({ name, owner }) => new StoreLease(store, resolveLease('Lease', { name, owner, ttlMs }, 10), environment);
}

for (const end of ['leaves', 'is downed'] as const) {
  test(`R68, FB-043: a host that ${end} has ended only when its release, however slow, has reached the backend`, async () => {
    const cluster = new MemoryCluster();
    const { clock, timers } = cluster.environment;
    const memory = new MemoryLeaseStore(clock);
    const releases: { at: number; owner: string }[] = [];
    const slow: LeaseStore = {
      acquire: (request) => memory.acquire(request),
      renew: (request) => memory.renew(request),
      release: async (request) => {
        await new Promise<void>((resolve) => void timers.set(800, resolve));
        releases.push({ at: clock.now(), owner: request.owner });
        return memory.release(request);
      },
    };
    const journal = new Journal();
    const Counter = counterClass(journal);
    await cluster.grow(3, { rejoin: false });
    for (const node of cluster.nodes) node.cluster.singleton.start(Counter, { lease: leaseOver(cluster, slow) });
    await cluster.until(() => journal.live === 1);
    const [first, second] = cluster.nodes;
    const owner = `${first!.address}#${first!.cluster.uid}`;
    assertEquals(memory.holderOf('counter'), owner);
    let endedAt: number | undefined;
    void first!.cluster.whenEnded.then(() => endedAt = clock.now());
    if (end === 'leaves') void first!.cluster.leave();
    else second!.cluster.down(first!.address);
    await cluster.until(() => endedAt !== undefined);
    const own = releases.find((release) => release.owner === owner);
    assert(own !== undefined, 'it was released');
    assertGreaterOrEqual(endedAt!, own.at);
    await cluster.until(() => journal.live === 1 && memory.holderOf('counter') !== owner);
    assertEquals(journal.peak, 1);
  });
}

test('a hand-over with a lease takes no longer than the backend takes to give it back, whoever comes there first', async () => {
  for (const wayMs of [1, 10, 100]) {
    const cluster = new MemoryCluster();
    const { clock, timers } = cluster.environment;
    const memory = new MemoryLeaseStore(clock);
    const way = () => new Promise<void>((resolve) => void timers.set(wayMs, resolve));
    // As with every backend that is read before it is written to: the release arrives after the first look of the next.
    const twoTrips: LeaseStore = {
      acquire: (request) => way().then(() => memory.acquire(request)),
      renew: (request) => way().then(() => memory.renew(request)),
      release: (request) => way().then(way).then(way).then(() => memory.release(request)),
    };
    const journal = new Journal();
    const Counter = counterClass(journal);
    await cluster.grow(2);
    for (const node of cluster.nodes) node.cluster.singleton.start(Counter, { lease: leaseOver(cluster, twoTrips) });
    await cluster.until(() => journal.live === 1);
    void cluster.nodes[0]!.cluster.leave();
    await cluster.until(() => journal.live === 0);
    const endedAt = clock.now();
    await cluster.until(() => journal.live === 1);
    assertLess(clock.now() - endedAt, 100 + 8 * wayMs, `${wayMs} ms a way`);
    assertEquals(journal.peak, 1);
  }
});

test('FB-009: a factory whose leases have an owner of its own is refused: two processes would both hold it', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const store = new MemoryLeaseStore(cluster.environment.clock);
  const mine: LeaseFactory = ({ name }) => leaseOver(cluster, store)({ name, owner: 'worker' } as LeaseContext);
  const { singleton } = cluster.nodes[0]!.cluster;
  const Counter = counterClass(new Journal());
  assertThrows(() => singleton.start(Counter, { lease: mine }), OptionsError, 'StartSingletonOptions.lease.owner');
  assert(!singleton.isStarted('counter'));
});

test('two singletons with leases of one name are told of, since one backend takes them for one', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const store = new MemoryLeaseStore(cluster.environment.clock);
  const { singleton } = cluster.nodes[0]!.cluster;
  const actor = () => new (counterClass(new Journal()))();
  const shared = MemoryLease.factory(store, { name: 'shop', ttlMs });
  const told = () => cluster.environment.logsAt('warn').filter((line) => line.includes('leases of one name'));
  singleton.start({ typeName: 'a', actor, lease: MemoryLease.factory(store, { ttlMs }) });
  singleton.start({ typeName: 'b', actor, lease: shared });
  assertEquals(told(), []);
  singleton.start({ typeName: 'c', actor, lease: shared });
  assertEquals(told().length, 1);
  assertStringIncludes(told()[0]!, 'singletons b and c');
});

test('FB-052: with a lease that always refuses, no way to start a singleton starts an instance', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const { singleton } = cluster.nodes[0]!.cluster;
  const asked: string[] = [];
  const refusing: LeaseStore = {
    acquire: ({ name }) => {
      asked.push(name);
      return Promise.resolve({ kind: 'held', by: 'somebody#1', expiresInMs: 100 });
    },
    renew: () => Promise.resolve({ kind: 'held' }),
    release: () => Promise.resolve({ kind: 'released' }),
  };
  const lease = leaseOver(cluster, refusing);
  const born: string[] = [];
  const kind = (name: string) =>
    class extends Actor<string> {
      static readonly singleton: SingletonKey<string> = SingletonKey.of<string>(name);
      override preStart(): void {
        born.push(name);
      }
      override onReceive(): void {}
    };
  const start: Record<string, (name: string) => unknown> = {
    'class': (name) => singleton.start(kind(name), { lease }),
    'class-factory': (name) => singleton.start(kind(name), () => new (kind(name))(), { lease }),
    'key-class': (name) => singleton.start(SingletonKey.of<string>(name), kind(name), { lease }),
    'key-factory': (name) => singleton.start(SingletonKey.of<string>(name), () => new (kind(name))(), { lease }),
    'plain': (name) => singleton.start({ typeName: name, actor: () => new (kind(name))(), lease }),
    'builder': (name) =>
      singleton.start(
        StartSingletonOptions.create<string>().withTypeName(name).withActor(() => new (kind(name))()).withLease(lease),
      ),
    'lease-object': (name) =>
      singleton.start(kind(name), {
        lease: lease({
          name,
          owner: `a#${cluster.nodes[0]!.cluster.uid}`,
          environment: cluster.environment,
          driftBound: 0,
        }),
      }),
    'task': (name) =>
      singletonTask(cluster.nodes[0]!.cluster, name, { everyMs: 100 }, () => void born.push(name), { lease }),
  };
  for (const [name, run] of Object.entries(start)) run(name);
  await cluster.pass(20_000);
  assertEquals(born, []);
  assertEquals([...new Set(asked)].sort(), Object.keys(start).sort(), 'each has asked for its lease');
});
