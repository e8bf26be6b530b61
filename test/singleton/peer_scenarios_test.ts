/** More scenarios of other systems' suites, and faults that were found in them: one singleton or many, on virtual time. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertStrictEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { defaultManagerConfig } from '../../src/singleton/manager.ts';
import { resolveStart } from '../../src/singleton/start_options.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';
import { counterClass, Journal, Plain } from './fixtures.ts';
import { type Job, jobKey, Scene } from './scene.ts';

const worker = { roles: ['worker'] };
const where = (scene: Scene, node: MemoryNode) => scene.cluster.get(scene.ref(node).ask<string>('where', 3_000));

describe('who hosts', () => {
  test('P2: an observer without the role joins: nothing changes, and it reaches the host', async () => {
    const scene = new Scene();
    const first = await scene.add({ role: 'worker' }, worker);
    await scene.untilHost(first);
    const observer = await scene.add({ role: 'worker' });
    await scene.cluster.pass(2_000);
    assertEquals([scene.hosts(), scene.starts()], [[first], [first.address]]);
    assertEquals(await where(scene, observer), first.address);
  });

  test('P10: three nodes that down nobody: the first starts it', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add({}, { downing: 'manual' });
    await scene.untilHost(scene.nodes[0]!, 1_000);
    assertEquals(scene.starts(), [scene.nodes[0]!.address]);
  });

  test('P39: only one of two has the role; a second start gives the same ref, and both are answered', async () => {
    const scene = new Scene();
    const [plain, host] = [await scene.add({ role: 'worker' }), await scene.add({ role: 'worker' }, worker)];
    for (const node of scene.nodes) {
      const { singleton } = node.cluster;
      assertStrictEquals(singleton.start(jobKey, class extends Plain {} as never, { role: 'worker' }), scene.ref(node));
      assertEquals(await where(scene, node), host.address);
    }
    assertEquals(scene.hosts().includes(plain), false);
  });

  test('N9: two nodes that each found a cluster of their own: each has its own singleton', async () => {
    for (let n = 0; n < 2; n += 1) {
      const scene = new Scene();
      const alone = await scene.add();
      const { singleton } = alone.cluster;
      assertStrictEquals(singleton.start(jobKey, class extends Plain {} as never), scene.ref(alone));
      assertEquals(await where(scene, alone), alone.address);
    }
  });

  test('P24, P25, P26: a data centre is a role: one per data centre under a name of its own, reached from both', async () => {
    const scene = new Scene();
    const key = (place: string) => SingletonKey.of<Job>(`ingress-${place}`, place);
    const journals = new Map(['dc1', 'dc2'].map((place) => [place, new Journal()]));
    for (const place of ['dc1', 'dc1', 'dc2', 'dc2']) await scene.add(null, { roles: [place] });
    for (const { cluster } of scene.nodes) {
      for (const place of ['dc1', 'dc2']) {
        cluster.singleton.start(counterClass(journals.get(place)!, { name: `ingress-${place}`, role: place }));
      }
    }
    await scene.cluster.until(() => [...journals.values()].every(({ live }) => live === 1));
    const hosts = new Map([['dc1', scene.nodes[0]!.address], ['dc2', scene.nodes[2]!.address]]);
    for (const node of scene.nodes) {
      for (const [place, host] of hosts) {
        const asked = node.cluster.singleton.ref(key(place)).ask<string>('where', 10_000);
        assertEquals(await scene.cluster.get(asked), host);
      }
    }
    await scene.cluster.leave(scene.nodes[2]!);
    await scene.cluster.until(() => journals.get('dc2')!.lines.length === 3);
    assertEquals(journals.get('dc2')!.lines.at(-1), `start ${scene.nodes[2]!.address}`, 'the other one of dc2');
    assertEquals(journals.get('dc1')!.lines.length, 1);
  });
});

describe('moves', () => {
  test('P40, R8: stopped without a word of its own it has ended within a second', async () => {
    const scene = new Scene();
    const node = await scene.add();
    await scene.untilHost(node);
    node.cluster.singleton.stop(jobKey);
    assertEquals(node.cluster.singleton.isStarted(jobKey), false);
    await scene.cluster.until(() => scene.lines.some(([what]) => what === 'stop'), 1_000);
  });

  test('P42: a hundred with a slow stop, spread over two nodes: the first leaves, and all answer from the second', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const journal = new Journal();
    const classes = Array.from({ length: 100 }, (_, at) => counterClass(journal, { name: `entity-${at}`, stopMs: 50 }));
    for (const { cluster: { singleton } } of cluster.nodes) {
      for (const type of classes) singleton.start(type, { placement: 'spread' });
    }
    await cluster.until(() => journal.live === 100);
    const before = journal.lines.filter((line) => line === `start ${cluster.nodes[0]!.address}`).length;
    assert(before > 20 && before < 80, `${before} of them on the first`);
    await cluster.leave(cluster.nodes[0]!);
    const [second] = cluster.nodes;
    for (const type of classes) {
      const answer = second!.cluster.singleton.ref(type.singleton).ask<string>('where', 1_000);
      assertEquals(await cluster.get(answer), second!.address);
    }
    assertEquals([journal.live, journal.peak], [100, 100]);
  });

  test('A14: seven numbers from every node in turn, the host leaves, and all agree on the next', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add();
    const first = scene.nodes[0]!;
    await scene.untilHost(first);
    for (let n = 0; n < 7; n += 1) scene.tell(scene.nodes[n % 3]!, 1);
    await scene.cluster.leave(first);
    await scene.untilHost(scene.nodes[0]!, 30_000);
    await scene.allHandled();
    await scene.reachedAt(scene.nodes[0]!);
    for (const { cluster } of scene.nodes) assertEquals(cluster.singleton.hostOf('jobs'), scene.nodes[0]!.address);
  });

  test('N2, P20: four nodes with a lease, the host is downed: the next answers when the lease is granted', async () => {
    const scene = new Scene();
    const store = new MemoryLeaseStore(scene.cluster.environment.clock);
    const lease = MemoryLease.factory(store, { ttlMs: 3_000 });
    for (let n = 0; n < 4; n += 1) await scene.add({ lease });
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    await scene.untilHost(first);
    const owner = (node: MemoryNode) => `${node.address}#${node.cluster.uid}`;
    assertEquals(store.holderOf('jobs'), owner(first));
    const uid = owner(first);
    scene.nodes[3]!.cluster.down(first.address);
    scene.nodes.splice(0, 1);
    await scene.untilHost(second, 20_000);
    assertEquals(await where(scene, scene.nodes[2]!), second.address);
    assertEquals([store.holderOf('jobs') === owner(second), uid === owner(second)], [true, false]);
  });
});

describe('settings', () => {
  test('N5: the defaults', () => {
    const { role, bufferSize, bufferBytes, delivery, overflow, placement, acquireRetryIntervalMs, stopTimeoutMs } =
      resolveStart({ typeName: 'x', actor: Plain });
    assertEquals(
      [role, bufferSize, bufferBytes, delivery, overflow, placement, acquireRetryIntervalMs, stopTimeoutMs],
      [undefined, 1_000, 64 * 1024 * 1024, 'at-most-once', 'drop-newest', 'oldest', 5_000, 10_000],
    );
    const { handOverTimeoutMs, handOverPolicy, resendMs, moveAfterFailures } = defaultManagerConfig;
    assertEquals([handOverTimeoutMs, handOverPolicy, resendMs, moveAfterFailures], [10_000, 'host-anyway', 250, 5]);
  });

  test('FB-025, R3: a buffer of 1 keeps one message, one of 0 is refused by name before anything starts', async () => {
    for (const [bufferSize, kept] of [[1, 1], [1_000_000, 9]] as const) {
      const scene = new Scene();
      const node = await scene.add({ bufferSize, role: 'nobody' });
      scene.tell(node, 9);
      const { buffered, deadLettered } = node.cluster.singleton.find('jobs')!.proxy.stream.ledger();
      assertEquals([buffered, deadLettered], [kept, 9 - kept]);
    }
    const scene = new Scene();
    const node = await scene.cluster.join();
    for (const bufferSize of [0, -1, 1_000_001, 0.5]) {
      assertThrows(() => scene.start(node, { bufferSize }), OptionsError, 'bufferSize');
    }
    assertEquals(node.cluster.singleton.isStarted(jobKey), false);
  });

  test('FB-009: a lease whose owner two processes may have in common is refused; a factory names the process', async () => {
    const scene = new Scene();
    const node = await scene.cluster.join();
    const { environment } = scene.cluster;
    const store = new MemoryLeaseStore(environment.clock);
    const lease = (owner: string) => new MemoryLease(store, { name: 'jobs', owner, ttlMs: 1_000 }, environment);
    assertThrows(() => scene.start(node, { lease: lease('my-host') }), OptionsError, 'lease');
    assertEquals(node.cluster.singleton.isStarted(jobKey), false);
    scene.start(node, { lease: lease(`my-host#${node.cluster.uid}`) });
    await scene.untilHost(node);
    assertEquals(store.holderOf('jobs'), `my-host#${node.cluster.uid}`);
  });
});

describe('messages', () => {
  test('FB-024, R29: the view of a sender is old, and the one it believes in never heard of it: nothing is lost', async () => {
    const scene = new Scene();
    const [first, second] = [await scene.add(), await scene.add()];
    await scene.untilHost(first);
    const third = await scene.add(null);
    first.cluster.singleton.stop(jobKey);
    await scene.untilHost(second);
    scene.tell(third, 1);
    await scene.allHandled();
    // To one that has nothing to do with it, as after a move that this node has not heard of.
    const stranger = await scene.add(null);
    const { proxy } = third.cluster.singleton.find('jobs')!;
    proxy.onRefuse(second.cluster.uid, { name: 'jobs', epoch: 0, why: 'not-host', hint: stranger.address });
    scene.tell(third, 10);
    await scene.allHandled();
    assert(stranger.cluster.singleton.find('jobs') !== undefined, 'it was asked');
    const { told, acknowledged, deadLettered } = proxy.stream.ledger();
    assertEquals([told, acknowledged, deadLettered], [11, 11, 0]);
  });

  test('FB-027: the host has a role that the sender does not know of, and the oldest member lacks: it is delivered', async () => {
    const scene = new Scene();
    const oldest = await scene.add(null);
    const host = await scene.add({ role: 'game' }, { roles: ['game'] });
    await scene.untilHost(host);
    scene.tell(oldest, 3);
    await scene.allHandled();
    const lost = await scene.add({ role: 'other' });
    assert(
      scene.cluster.environment.logged.some(({ message }) => /with role other.* says game, which counts/.test(message)),
    );
    scene.tell(lost, 2);
    await scene.allHandled();
  });
});
