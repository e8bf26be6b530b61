/** Calls that make no sense end in one clear error, and leave nothing behind. */
import { test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { jobKey, Scene } from './scene.ts';

test('R3: options that are no object are refused, not ignored', async () => {
  const scene = new Scene();
  const node = await scene.cluster.join();
  for (const options of [null, 5, 'role', [], true]) {
    assertThrows(() => scene.start(node, options as never), OptionsError, 'StartSingletonOptions.options: must be');
  }
  assertEquals(node.cluster.singleton.isStarted(jobKey), false);
});

test('R9: a start whose lease cannot be made leaves nothing behind, and the next one works', async () => {
  const scene = new Scene();
  const node = await scene.cluster.join();
  const { environment } = scene.cluster;
  const store = new MemoryLeaseStore(environment.clock);
  const broken = () => {
    throw new Error('no such backend');
  };
  assertThrows(() => scene.start(node, { lease: broken }), Error, 'no such backend');
  for (const made of [undefined, null, 5, {}, { acquireWithToken: () => {} }]) {
    const lease = () => made as never;
    assertThrows(() => scene.start(node, { lease }), OptionsError, 'must be a factory that returns a lease');
  }
  assertEquals([node.cluster.singleton.isStarted(jobKey), node.cluster.selfMember.started.size], [false, 0]);
  scene.start(node, { lease: MemoryLease.factory(store, { ttlMs: 1_000 }) });
  await scene.untilHost(node);
  assert(store.holderOf('jobs') !== undefined);
});

test('R104: a subscription without a listener, or with unknown options, is refused', async () => {
  const scene = new Scene();
  const { cluster } = await scene.cluster.join();
  for (const listener of [undefined, null, 5, {}]) {
    assertThrows(() => cluster.subscribe(listener as never), OptionsError, 'Cluster.subscribe.listener: must be a');
  }
  for (const options of [null, { replayMode: 'all' }, { replay: 'events' }]) {
    assertThrows(() => cluster.subscribe(() => {}, options as never), OptionsError, 'SubscribeOptions');
  }
});
