import { test } from 'node:test';
import { assert, assertEquals, assertGreater } from '@std/assert';
import type { ToyNode } from './manager_world.ts';
import { LeaseWorld } from './lease_world.ts';

function check(world: LeaseWorld, seed: number): void {
  if (world.handling.length <= 1) return;
  const who = world.handling.map((node) => node.uid).join(' and ');
  throw new Error(`seed ${seed}: ${who} may both handle messages\n${world.log.slice(-40).join('\n')}`);
}

/** What happens to the cluster in one step. */
function disturb(world: LeaseWorld, alive: readonly ToyNode[]): void {
  const what = world.next();
  const someone = alive[Math.floor(world.next() * alive.length)];
  const others = alive.filter((node) => node !== someone && !world.cutOff.has(node.uid) && node.state.started);
  if (what < 0.02 && alive.length < 6) world.join(true);
  else if (what < 0.03 && someone && others.length > 0 && !world.cutOff.has(someone.uid)) world.leave(someone);
  else if (what < 0.035 && someone && others.length > 0) world.crash(someone);
  else if (what < 0.042 && someone && others.length > 0 && !world.cutOff.has(someone.uid)) world.cut(someone);
  else if (what < 0.047) {
    for (const uid of [...world.cutOff].slice(0, 1)) {
      const node = world.nodes.get(uid)!;
      if (node.alive) world.notice(node);
      world.cutOff.delete(uid);
    }
  } else world.step(0.2);
}

function run(seed: number): LeaseWorld {
  const world = new LeaseWorld(seed);
  world.join(true);
  for (let step = 0; step < 800; step += 1) {
    disturb(world, [...world.nodes.values()].filter((node) => node.alive && !node.left));
    world.leaseStep(0.3);
    check(world, seed);
  }
  for (const uid of world.cutOff) if (world.nodes.get(uid)!.alive) world.notice(world.nodes.get(uid)!);
  world.cutOff.clear();
  world.join(true);
  for (let step = 0; step < 4_000; step += 1) {
    world.step(0);
    world.leaseStep(0);
    check(world, seed);
  }
  return world;
}

test('R64, R65, R66, R67, S1: with a lease never two, whatever is cut, and in the end one that holds it', () => {
  let losses = 0;
  let starts = 0;
  let denials = 0;
  for (let seed = 1; seed <= 50; seed += 1) {
    const world = run(seed);
    const tail = () => `seed ${seed}\n${world.log.slice(-30).join('\n')}`;
    assertEquals(world.instances.length, 1, tail());
    assertEquals(world.handling.length, 1, tail());
    assertEquals(world.owner, world.instances[0]!.uid, `held without an instance: ${tail()}`);
    for (let at = 1; at < world.starts.length; at += 1) {
      assert(world.starts[at]!.epoch > world.starts[at - 1]!.epoch, `seed ${seed}: epochs only grow`);
    }
    losses += world.losses;
    starts += world.starts.length;
    denials += world.denials;
  }
  assertGreater(losses, 20);
  assertGreater(starts, 150);
  assertGreater(denials, 120);
});
