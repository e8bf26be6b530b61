import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { Actor } from '../../src/actor/actor.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { simulatedNode } from '../../src/testkit/simulated_node.ts';
import { World } from '../../src/testkit/sim_world.ts';

const addresses = ['10.0.0.1:2550', '10.0.0.2:2550', '10.0.0.3:2550'];
const key = SingletonKey.of<string>('recorder');

/** Three nodes of a user's program, written with the public classes only. */
function threeNodes(): { world: World; clusters: Map<string, Cluster>; heard: string[] } {
  const world = new World({ seed: 5, drain: 'always' });
  const clusters = new Map<string, Cluster>();
  const heard: string[] = [];
  for (const [index, address] of addresses.entries()) {
    const name = `n${index + 1}`;
    class Recorder extends Actor<string> {
      override onReceive(message: string): void {
        heard.push(`${name}: ${message}`);
      }
    }
    world.addHost(name, address, async (process) => {
      const { environment, settings } = simulatedNode(process);
      const system = ActorSystem.create('app', { environment, logger: environment.log });
      const cluster = await Cluster.join(system, { ...settings, seeds: addresses });
      cluster.singleton.start(key, Recorder);
      clusters.set(name, cluster);
    });
  }
  return { world, clusters, heard };
}

describe('simulatedNode', () => {
  test('runs a program of the public API: form, crash, take over, partition and heal', async () => {
    const { world, clusters, heard } = threeNodes();
    for (const host of world.hosts) world.start(host);
    const views = (count: number) => [...clusters.values()].every((cluster) => cluster.upMembers().length === count);
    assertEquals(await world.advanceUntil(() => clusters.size === 3 && views(3), 10_000), true);

    const host = [...clusters.values()][0]?.leader()?.address ?? '';
    const hostName = `n${addresses.indexOf(host) + 1}`;
    const [sender] = ['n1', 'n2', 'n3'].filter((name) => name !== hostName);
    const ref = clusters.get(sender ?? '')?.singleton.ref(key);
    ref?.tell('one');
    assertEquals(await world.advanceUntil(() => heard.length === 1, 1_000), true);
    assertEquals(heard, [`${hostName}: one`]);

    clusters.delete(hostName);
    world.crash(hostName);
    assertEquals(await world.advanceUntil(() => views(2), 10_000), true);
    ref?.tell('two');
    assertEquals(await world.advanceUntil(() => heard.length === 2, 5_000), true);
    assertEquals(heard[1]?.endsWith(': two') && !heard[1].startsWith(hostName), true);

    const rest = [...clusters.keys()];
    world.partition(rest.slice(0, 1), rest.slice(1));
    const reachable = () =>
      [...clusters.values()].every((cluster) => cluster.getMembers().every((one) => one.reachable));
    assertEquals(await world.advanceUntil(() => !reachable(), 5_000), true);
    world.heal();
    assertEquals(await world.advanceUntil(reachable, 5_000), true);
  });
});
