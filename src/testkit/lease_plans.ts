/** How the profile `lease` draws its faults: those of the lease's backend, and everything that parts a host from its lease. */
import type { Fault } from './fault.ts';
import { mixed } from './fault_plans.ts';
import { leaseFaultKinds } from './lease_backend.ts';
import type { PlanContext } from './profiles.ts';

/** Mostly around a term, sometimes far longer. */
function length({ random }: PlanContext): number {
  return random.chance(0.7) ? random.between(200, 9_000) : random.between(9_000, 25_000);
}

/** The backend is bad for everybody, or for one node only, which its peers still hear. */
function backendFault(context: PlanContext, at: number): Fault {
  const { random, nodes } = context;
  const scope = random.chance(0.5) ? '' : ` ${random.pick(nodes)}`;
  const action = `lease-${random.pick(leaseFaultKinds)}`;
  return { kind: 'call', at, node: random.pick(nodes), action, argument: `${Math.round(length(context))}${scope}` };
}

export function leases(context: PlanContext): Fault[] {
  const { random } = context;
  const faults: Fault[] = [];
  let at = context.from + random.between(0, 5_000);
  while (at < context.to) {
    faults.push(backendFault(context, at));
    at += random.between(1_000, 15_000);
  }
  const others = random.chance(0.6) ? mixed(context) : [];
  return [...faults, ...others, ...sleeps(context), ...moves(context)].sort((a, b) => a.at - b.at);
}

/** Longer than it takes the others to have an instance of their own; the oldest is most likely the host. */
function sleeps({ random, nodes, from, to }: PlanContext): Fault[] {
  return Array.from({ length: random.integer(0, 3) }, (): Fault => {
    const at = random.between(from, to);
    const until = at + random.between(7_000, 25_000);
    const node = random.pick(nodes.slice(0, random.chance(0.5) ? 1 : nodes.length));
    const order = random.pick(['due', 'timers-first', 'io-first'] as const);
    return random.chance(0.4) ? { kind: 'sleep', at, until, node } : { kind: 'pause', at, until, node, order };
  });
}

function moves({ random, nodes, from, to }: PlanContext): Fault[] {
  return Array.from({ length: random.integer(0, 4) }, () => ({
    kind: 'call',
    at: random.between(from, to),
    node: random.pick(nodes),
    action: 'move',
    argument: String(random.integer(0, 9)),
  }));
}

/**
 * The holder of a lease is alone, and whoever could say so is not what it was: all others have restarted, or what it hears from
 * the backend is old.
 */
export function amnesia({ random, nodes, from, to }: PlanContext): Fault[] {
  const faults: Fault[] = [];
  for (let at = from + random.between(0, 3_000); at < to - 20_000; at += random.between(30_000, 40_000)) {
    const holder = random.chance(0.7) ? nodes[0] ?? '' : random.pick(nodes);
    const others = nodes.filter((node) => node !== holder);
    const until = at + random.between(14_000, 22_000);
    const cut = { from: [holder], to: others, oneWay: false, skewMs: 0, heal: 'mixed' } as const;
    if (random.chance(0.5)) {
      faults.push({ kind: 'cut', at, until, ...cut });
      for (const node of others) {
        const crash = { node, power: false, restartAfterMs: random.between(50, 400) };
        faults.push({ kind: 'crash', at: at + random.between(0, 1_500), ...crash });
      }
    } else {
      const lateMs = Math.round(random.between(2_000, 9_000));
      faults.push({ kind: 'call', at, node: holder, action: 'lease-late', argument: `${lateMs} ${holder}` });
      faults.push({ kind: 'cut', at: at + random.between(0, 3_000), until, ...cut });
      faults.push({ kind: 'call', at: at + lateMs, node: holder, action: 'lease-never', argument: `15000 ${holder}` });
    }
  }
  return faults.sort((a, b) => a.at - b.at);
}
