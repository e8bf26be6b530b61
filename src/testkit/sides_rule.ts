/** Rule 6, seen from outside: two sides that both lived are one again soon after they can reach each other. */
import type { InstanceRegistry } from './instance_registry.ts';
import { SimulationError, type World } from './sim_world.ts';

/**
 * From the heal until only one side hosts, in milliseconds: what a retransmission may still take (1.5 s), the round in which
 * members look for those that they have lost (5 s), a notice to each member of the other side, and the stop of its instances.
 */
const reunitedMs = 10_000;

export class SidesRule {
  #world: World;
  #registry: InstanceRegistry;
  #names: readonly string[];
  #apartUntil = 0;

  constructor(world: World, registry: InstanceRegistry, names: readonly string[]) {
    this.#world = world;
    this.#registry = registry;
    this.#names = names;
  }

  /** Nothing in the network parts any two hosts, and has not for so long that no side can still be on its own. */
  check(): void {
    const { now, network } = this.#world;
    if (network.cutPaths > 0) this.#apartUntil = now + reunitedMs;
    if (now < this.#apartUntil) return;
    for (const name of this.#names) {
      const hosts = this.#registry.living(name).map(({ process }) => process.name);
      if (hosts.length < 2) continue;
      throw new SimulationError('S1', `${name} runs on ${hosts.join(' and ')} although the sides can reach each other`);
    }
  }
}
