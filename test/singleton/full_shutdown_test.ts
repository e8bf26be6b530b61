/** The whole cluster goes down: nothing is handed from node to node while it does. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { ClusterStateError } from '../../src/facade/cluster.ts';
import { managerPath } from '../../src/singleton/instance.ts';
import { SingletonStateError } from '../../src/singleton/registry.ts';
import type { StartSingletonSettings } from '../../src/singleton/start_options.ts';
import type { MemoryNode } from '../facade/memory_cluster.ts';
import { type Job, Scene } from './scene.ts';

async function prepared(count: number, settings: StartSingletonSettings<Job> = {}): Promise<Scene> {
  const scene = new Scene();
  for (let n = 0; n < count; n += 1) await scene.add(settings);
  await scene.untilHost(scene.nodes[0]!);
  await scene.cluster.get(scene.nodes[1]!.cluster.prepareForFullShutdown());
  return scene;
}

const leaveInTime = async (scene: Scene, node: MemoryNode, ms: number): Promise<void> => {
  const { clock } = scene.cluster.environment;
  const from = clock.now();
  await scene.cluster.leave(node);
  assert(clock.now() - from < ms, `${clock.now() - from} ms`);
};

describe('a full shutdown', () => {
  test('P21, P22, P23: all know in time; the host leaves and nobody takes over; the others follow at once', async () => {
    const scene = await prepared(3);
    const { clock } = scene.cluster.environment;
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    assertEquals(scene.starts(), [first.address]);
    scene.tell(third, 3);
    await scene.allHandled();
    await leaveInTime(scene, first, 1_000);
    assertEquals(second.cluster.getMembers().length, 2);
    let answer: string | undefined;
    scene.ref(second).ask<string>('where', 5_000).then((from) => answer = from, (error) => answer = String(error.why));
    const asked = clock.now();
    await scene.cluster.until(() => answer !== undefined);
    assertEquals([answer, clock.now() - asked >= 5_000], ['the whole cluster is about to be shut down', true]);
    assertEquals(second.cluster.singleton.find('jobs')!.problem(), 'the whole cluster is about to be shut down');
    await leaveInTime(scene, third, 1_000);
    await leaveInTime(scene, second, 1_000);
    assertEquals(scene.lines.filter(([what]) => typeof what === 'string').map((line) => [...line]), [
      ['start', first.address],
      ['stop', first.address],
    ]);
  });

  test('one that is about to move gets there, and an instance that fails is restarted where it is', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add();
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    await scene.untilHost(first);
    scene.stopMs = 300;
    first.cluster.singleton.move('jobs', second.address);
    await scene.cluster.pass(100);
    await scene.cluster.get(first.cluster.prepareForFullShutdown());
    await scene.untilHost(second, 1_000);
    scene.tell(first, 2);
    await scene.allHandled();
    second.system.resolve(`/system/${managerPath('jobs').join('/')}/instance`)!.stop();
    await scene.cluster.until(() => scene.hosts().length === 0, 1_000);
    await scene.untilHost(second, 3_000);
    assertEquals(scene.starts(), [first, second, second].map(({ address }) => address));
  });

  test('P22: those that were there hand over to one that comes later, losing nothing, and to nobody else', async () => {
    const scene = await prepared(2);
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    scene.tell(second, 5);
    const newcomer = await scene.add();
    await scene.untilHost(newcomer, 1_000);
    scene.tell(first, 5);
    await scene.allHandled();
    await scene.cluster.leave(first);
    await scene.cluster.leave(second);
    scene.tell(newcomer, 5);
    await scene.allHandled();
    assertEquals(scene.starts(), [first.address, newcomer.address]);
  });

  test('called off: the next one takes over, and what was told meanwhile arrives', async () => {
    const scene = await prepared(3);
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    await scene.cluster.leave(first);
    scene.tell(third, 4);
    await scene.cluster.pass(3_000);
    assertEquals(scene.hosts(), []);
    assertEquals(third.cluster.cancelFullShutdown(), true);
    await scene.untilHost(second, 1_000);
    await scene.allHandled();
    assertEquals(second.cluster.cancelFullShutdown(), false);
  });

  test('moves and rebalancing are refused with the reason', async () => {
    const scene = await prepared(2);
    const { singleton } = scene.nodes[0]!.cluster;
    assertThrows(() => singleton.move('jobs'), SingletonStateError, 'the whole cluster is about to be shut down');
    assertThrows(() => singleton.rebalance(), SingletonStateError, 'the whole cluster is about to be shut down');
    assertEquals(scene.starts().length, 1);
  });

  test('a member that does not hear of it is named; wrong options, and a node that is out, are refused', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add({}, { downing: 'manual' });
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    await scene.untilHost(first);
    for (const other of [first, second]) scene.cluster.network.cut(other.address, third.address);
    await scene.cluster.pass(4_000);
    const { cluster } = first;
    const error = await assertRejects(
      () => scene.cluster.get(cluster.prepareForFullShutdown({ timeoutMs: 1_000 })),
      ClusterStateError,
    );
    assertEquals(error.message, `not every member knows of the full shutdown after 1000 ms: ${third.address}`);
    for (const options of [{ timeoutMs: 0 }, { timeout: 5 }, 7]) {
      await assertRejects(() => cluster.prepareForFullShutdown(options as never), OptionsError);
    }
    for (const other of [first, second]) scene.cluster.network.heal(other.address, third.address);
    await scene.cluster.get(cluster.prepareForFullShutdown());
    await scene.cluster.leave(second);
    await assertRejects(() => second.cluster.prepareForFullShutdown(), ClusterStateError);
    assertThrows(() => second.cluster.cancelFullShutdown(), ClusterStateError);
  });

  test('a spread one stays where it is, and is drawn nowhere else', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add({ placement: 'spread' });
    await scene.cluster.until(() => scene.starts().length === 1 && scene.hosts().length === 1);
    await scene.cluster.get(scene.nodes[0]!.cluster.prepareForFullShutdown());
    await scene.cluster.leave(scene.hosts()[0]!);
    await scene.cluster.pass(5_000);
    assertEquals([scene.hosts(), scene.starts().length], [[], 1]);
  });
});
