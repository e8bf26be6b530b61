/** Links that hang before anybody is a member, when no heartbeats notice it. */
import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { simulatedNode } from '../../src/testkit/simulated_node.ts';
import { delayProfiles } from '../../src/testkit/sim_path.ts';
import { World } from '../../src/testkit/sim_world.ts';

const addresses = ['10.0.0.1:2550', '10.0.0.2:2550'];

for (const alone of [false, true]) {
  const what = alone ? 'a joiner and its seed' : 'two candidates';
  test(`FB-064: the link between ${what} hangs, and is renewed`, async () => {
    const world = new World({ seed: 3, drain: 'always', network: { delays: delayProfiles.wan } });
    const up = new Set<string>();
    for (const [index, address] of addresses.entries()) {
      world.addHost(`n${index + 1}`, address, async (process) => {
        const { environment, settings } = simulatedNode(process);
        const system = ActorSystem.create('app', { environment, logger: environment.log });
        await Cluster.join(system, { ...settings, seeds: alone ? addresses.slice(0, index) : addresses });
        up.add(address);
      });
    }
    for (const host of world.hosts) world.start(host);
    let hung = 0;
    for (let ms = 0; ms < 3_000 && hung === 0; ms += 2) {
      await world.advance(2);
      for (const { connection } of world.network.connectionsBetween(world.host('n1'), world.host('n2'))) {
        connection.hung = true;
        hung += 1;
      }
    }
    assertEquals([hung > 0, up.size <= 1], [true, true]);
    assertEquals(await world.advanceUntil(() => up.size === 2, 15_000), true);
  });
}
