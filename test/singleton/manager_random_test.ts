import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { ToyWorld } from './manager_world.ts';

/** Somebody else could take over. */
function others(world: ToyWorld, uid: string): boolean {
  return [...world.truth.values()].some((one) => one.uid !== uid && one.status === 'up' && one.started.has('x'));
}

/** Joins, leaves, crashes, lost and reordered messages, lagging views: never two, and one again in the end. */
function run(seed: number, crashes: boolean, placement: 'oldest' | 'spread' = 'oldest'): ToyWorld {
  const world = new ToyWorld(seed, placement);
  const check = () => {
    if (world.instances.length > 1) {
      throw new Error(`seed ${seed}: two instances\n${world.log.slice(-40).join('\n')}`);
    }
  };
  world.join(true);
  for (let step = 0; step < 600; step += 1) {
    const what = world.next();
    const alive = [...world.nodes.values()].filter((node) => node.alive && !node.left);
    const someone = alive[Math.floor(world.next() * alive.length)];
    if (what < 0.02 && alive.length < 6) world.join(world.next() < 0.8);
    else if (what < 0.03 && someone && others(world, someone.uid)) world.leave(someone);
    else if (crashes && what < 0.035 && someone && alive.length > 1) world.crash(someone);
    else world.step(crashes ? 0.2 : 0);
    check();
  }
  world.join(true);
  for (let step = 0; step < 4_000; step += 1) {
    world.step(0);
    check();
  }
  return world;
}

function plannedRuns(placement: 'oldest' | 'spread', seeds: number): void {
  for (let seed = 1; seed <= seeds; seed += 1) {
    const world = run(seed, false, placement);
    assertEquals(world.instances.length, 1, `seed ${seed}\n${world.log.slice(-30).join('\n')}`);
    // Without a crash every start but the first is planned, and the state came along.
    for (const start of world.starts.slice(1)) {
      assertEquals(
        [start.reason, start.warm],
        ['planned', true],
        `seed ${seed}: ${JSON.stringify(world.starts)}\n${
          world.log.filter((l) => !/ view -> (younger|idle|ended)/.test(l)).slice(-75).join('\n')
        }`,
      );
    }
    for (let at = 1; at < world.starts.length; at += 1) {
      assert(world.starts[at]!.epoch > world.starts[at - 1]!.epoch, `seed ${seed}: epochs only grow`);
    }
  }
}

test('R21, R23, R144: never two instances, and exactly one in the end, over random moves', () => {
  plannedRuns('oldest', 60);
});

test('R147: the same where it is spread', () => {
  plannedRuns('spread', 25);
});

test('R144: never two with crashes on either side of a hand-over', () => {
  for (const [placement, seeds] of [['oldest', 40], ['spread', 15]] as const) {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const world = run(seed, true, placement);
      assertEquals(world.instances.length, 1, `seed ${seed}\n${world.log.slice(-30).join('\n')}`);
      const used = world.starts.flatMap(({ after }) => after ?? []);
      assertEquals(used.length, new Set(used).size, `seed ${seed}: one result was started from twice`);
    }
  }
});

test('R144, S3: whoever was offered the result gives up and goes, and its word comes late: still a planned move', () => {
  const seeds = { oldest: [1994, 3181, 3651, 3653], spread: [422, 1017] } as const;
  for (const placement of ['oldest', 'spread'] as const) {
    for (const seed of seeds[placement]) {
      const reasons = new Set(run(seed, false, placement).starts.slice(1).map(({ reason }) => reason));
      assertEquals([...reasons], ['planned'], `seed ${seed}`);
    }
  }
});
