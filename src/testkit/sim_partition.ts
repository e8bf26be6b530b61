/** Cutting two groups of hosts apart, path by path. */
import { pathSkew } from './fault.ts';
import type { SimHost } from './sim_host.ts';
import type { World } from './sim_world.ts';
import type { PartitionOptions } from './world_options.ts';

export function partition(
  world: World,
  from: readonly string[],
  to: readonly string[],
  options: PartitionOptions,
): void {
  for (const a of from) {
    for (const b of to) {
      if (a === b) continue;
      cutPath(world, world.host(a), world.host(b), options);
      if (options.oneWay !== true) cutPath(world, world.host(b), world.host(a), options);
    }
  }
}

function cutPath(world: World, from: SimHost, to: SimHost, options: PartitionOptions): void {
  const skew = pathSkew(world.seed, from.name, to.name, world.now, options.skewMs ?? 0);
  const epoch = world.network.healEpoch;
  const still = (run: () => void) => () => {
    if (world.network.healEpoch === epoch) run();
  };
  const start = still(() => world.network.cut(from, to));
  if (skew === 0) start();
  else world.at(world.now + skew, start);
  if (options.forMs === undefined) return;
  world.at(world.now + skew + options.forMs, still(() => world.network.mend(from, to, options.heal ?? 'deliver')));
}
