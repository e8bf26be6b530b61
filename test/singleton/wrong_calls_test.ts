/** Calls that make no sense end in one clear error, and leave nothing behind. */
import { test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { OptionsError } from '../../src/actor/options.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import type { Assembly } from '../../src/facade/assembly.ts';
import { SingletonStateError } from '../../src/singleton/registry.ts';
import { World } from '../../src/testkit/sim_world.ts';
import { type Job, jobKey, Scene } from './scene.ts';
import { assembleIn } from './simulated_assembly.ts';

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

class Idle extends Actor<Job> {
  override onReceive(): void {}
}

test('R118: a start that the state of the cluster has no room for is refused, and leaves nothing behind', async () => {
  const world = new World({ seed: 1, drain: 'always' });
  const nodes: Assembly[] = [];
  for (const name of ['n1', 'n2']) {
    const host = world.addHost(name, `${name}:1`, async (process) => {
      const node = await assembleIn(process, { seeds: ['n1:1', 'n2:1'], http: false });
      nodes.push(node);
      node.node.start();
    });
    world.start(host);
  }
  const size = () => nodes.map(({ node }) => node.view().members.filter(({ status }) => status === 'up').length);
  assert(await world.advanceUntil(() => size().join() === '2,2', 20_000));
  const names = Array.from({ length: 9_000 }, (_, at) => `${at}-`.padEnd(250, '✓'));
  const [first, second] = nodes as [Assembly, Assembly];
  for (const { node } of nodes) {
    node.publish({ started: new Map(names.map((name, at) => [name, { generation: at + 1, role: undefined }])) });
  }
  const told = () => first.node.view().members.every(({ started }) => started.size === names.length);
  assert(await world.advanceUntil(told, 10_000));
  const start = () => first.registry.start(jobKey, () => new Idle());
  assertThrows(
    start,
    SingletonStateError,
    'singleton jobs cannot be started: what all members have started would take',
  );
  assertEquals(first.registry.isStarted('jobs'), false);
  second.node.publish({ started: new Map() });
  assert(await world.advanceUntil(() => !told(), 10_000));
  start();
  assertEquals(first.registry.isStarted('jobs'), true);
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
