/** Clusters whose lease backend fails, on virtual time. */
import { test } from 'node:test';
import { assert, assertEquals, assertLess } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { resolveLease } from '../../src/coordination/lease.ts';
import { MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import type { StartSingletonSettings } from '../../src/singleton/start_options.ts';
import { FaultyStore } from '../coordination/virtual_bench.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

const ttlMs = 3_000;

/** A backend that each node reaches through a `FaultyStore` of its own, so that one can be cut off alone. */
class Backend {
  readonly cluster = new MemoryCluster();
  readonly store = new MemoryLeaseStore(this.cluster.environment.clock);
  readonly ways = new Map<string, FaultyStore>();

  lease(node: MemoryNode): NonNullable<StartSingletonSettings<any>['lease']> {
    const way = new FaultyStore(this.store);
    this.ways.set(node.address, way);
    return ({ name, owner }) =>
      new StoreLease(way, resolveLease('Lease', { name, owner, ttlMs }, 10), this.cluster.environment);
  }

  cut(node: MemoryNode, off: boolean): void {
    this.ways.get(node.address)!.broken = off ? `${node.address}#${node.cluster.uid}` : undefined;
  }
}

test('FB-011, S1: an instance that calls outside by a timer and stores nothing: its last call comes before the first of its successor', async () => {
  const backend = new Backend();
  const { cluster } = backend;
  await cluster.grow(3);
  const calls: { readonly at: number; readonly from: string }[] = [];
  class Caller extends Actor<'tick'> {
    override preStart(): void {
      this.context.timers.startFixedRate('tick', 'tick', 200);
    }
    override onReceive(): void {
      calls.push({ at: cluster.environment.clock.now(), from: this.cluster.address });
    }
  }
  for (const node of cluster.nodes) {
    node.cluster.singleton.start({ typeName: 'caller', actor: Caller, lease: backend.lease(node) });
  }
  await cluster.until(() => calls.length > 5);
  const [first, ...others] = cluster.nodes as [MemoryNode, MemoryNode, MemoryNode];
  backend.cut(first, true);
  for (const other of others) cluster.network.cut(first.address, other.address);
  await cluster.until(() => calls.some(({ from }) => from !== first.address), 60_000);
  await cluster.pass(5_000);
  const firstOfNext = calls.findIndex(({ from }) => from !== first.address);
  const last = calls.filter(({ from }) => from === first.address).at(-1)!;
  assertLess(last.at, calls[firstOfNext]!.at);
  assert(calls.slice(firstOfNext).every(({ from }) => from !== first.address));
});

test('FB-020, R71: the backend fails for two terms, twenty times: each time one hosts again within a retry', async () => {
  const backend = new Backend();
  const { cluster } = backend;
  await cluster.grow(2);
  let live = 0;
  class Idle extends Actor<never> {
    override preStart(): void {
      live += 1;
    }
    override postStop(): void {
      live -= 1;
    }
    override onReceive(): void {}
  }
  const acquireRetryIntervalMs = 1_000;
  for (const node of cluster.nodes) {
    const lease = backend.lease(node);
    node.cluster.singleton.start({ typeName: 'idle', actor: Idle, lease, acquireRetryIntervalMs });
  }
  for (let round = 0; round < 20; round += 1) {
    await cluster.until(() => live === 1);
    for (const node of cluster.nodes) backend.cut(node, true);
    await cluster.pass(2 * ttlMs);
    assertEquals(live, 0, `round ${round}`);
    for (const node of cluster.nodes) backend.cut(node, false);
    const back = cluster.environment.clock.now();
    await cluster.until(() => live === 1, ttlMs + acquireRetryIntervalMs);
    assertLess(cluster.environment.clock.now() - back, acquireRetryIntervalMs + 200, `round ${round}`);
  }
  assertEquals(live, 1);
});
