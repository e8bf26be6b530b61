/** How the profile `disk` draws its faults: those of disks and databases, and everything that moves a host meanwhile. */
import { databaseFaultKinds } from './sim_database.ts';
import { diskFaultKinds } from './sim_disk.ts';
import type { Fault } from './fault.ts';
import { mixed, operations, restarts } from './fault_plans.ts';
import type { PlanContext } from './profiles.ts';

const actions = [
  ...diskFaultKinds.map((kind) => `disk-${kind}`),
  ...databaseFaultKinds.map((kind) => `database-${kind}`),
  'disk-power',
  'disk-power',
];

export function disks(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const faults: Fault[] = [];
  let at = from + random.between(0, 5_000);
  while (at < to) {
    // Mostly short, sometimes longer than a lock takes to be stale.
    const ms = random.chance(0.7) ? random.between(50, 3_000) : random.between(3_000, 12_000);
    const [node, action] = [random.pick(nodes), random.pick(actions)];
    faults.push({ kind: 'call', at, node, action, argument: String(Math.round(ms)) });
    at += random.between(800, 10_000);
  }
  const others = random.pick([mixed, restarts, operations, () => []])(context);
  return [...faults, ...others].sort((a, b) => a.at - b.at);
}
