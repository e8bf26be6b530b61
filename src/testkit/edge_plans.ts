/** Profiles that look for trouble where the rules of membership end: at the bounds of a margin, a gate, a vote or a proof. */
import type { Fault } from './fault.ts';
import { lieKinds } from './lies.ts';
import type { PlanContext } from './profiles.ts';
import type { HealMode } from './sim_network.ts';

const healModes: readonly HealMode[] = ['deliver', 'reset', 'mixed'];

function cutFault(
  { random }: PlanContext,
  at: number,
  forMs: number,
  from: readonly string[],
  to: readonly string[],
): Fault {
  const skewMs = random.chance(0.3) ? random.between(1, 150) : 0;
  return { kind: 'cut', at, until: at + forMs, from, to, oneWay: false, skewMs, heal: random.pick(healModes) };
}

/**
 * An operator does not wait for the strategy: whoever is cut off is downed at once, by hand. Either a single member that has
 * lost everybody, mostly the oldest; or one of the other half, while the cut is too short for any strategy to decide.
 */
export function impatience(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const faults: Fault[] = [];
  for (let at = from + random.between(0, 4_000); at < to; at += random.between(16_000, 26_000)) {
    const single = random.chance(0.5);
    const first = random.chance(0.5) ? nodes[0] ?? '' : random.pick(nodes);
    const order = random.shuffled(nodes.filter((node) => node !== first));
    const side = single ? [first] : order.slice(0, Math.floor(nodes.length / 2));
    const others = nodes.filter((node) => !side.includes(node));
    const [judges, judged] = single ? [others, side] : [side, others];
    const forMs = single || random.chance(0.3) ? random.between(1_000, 12_000) : random.between(2_700, 4_800);
    faults.push(cutFault(context, at, forMs, side, others));
    const argument = judged.includes(first) ? first : random.pick(judged);
    const node = random.pick(judges);
    faults.push({ kind: 'call', at: at + random.between(50, single ? 3_000 : 1_000), node, action: 'down', argument });
  }
  return faults.sort((a, b) => a.at - b.at);
}

/** Members join or leave in the very moment in which the cluster falls apart, so that the sides count differently. */
export function recounts(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const faults: Fault[] = [];
  const waiting = [...nodes].slice(Math.max(3, Math.ceil(nodes.length / 2)));
  for (let at = from + random.between(0, 2_000); at < to; at += random.between(17_000, 28_000)) {
    const joiner = waiting.shift();
    const order = random.shuffled(nodes);
    if (joiner !== undefined && random.chance(0.7)) faults.push({ kind: 'start', at, node: joiner });
    else {
      for (const node of order.slice(0, random.integer(1, 2))) {
        faults.push({ kind: 'leave', at, node, restartAfterMs: random.between(0, 12_000) });
      }
    }
    const side = random.shuffled(nodes).slice(0, Math.floor(nodes.length / 2));
    const others = order.filter((node) => !side.includes(node));
    faults.push(cutFault(context, at + random.between(0, 1_200), random.between(7_000, 14_000), side, others));
  }
  for (const node of waiting) faults.push({ kind: 'start', at: to - 1, node });
  return faults.sort((a, b) => a.at - b.at);
}

/** Long cuts, far enough apart that what was parted can come together again in between. */
export function reunions(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const faults: Fault[] = [];
  for (let at = from + random.between(0, 3_000); at < to; at += random.between(34_000, 45_000)) {
    const order = random.shuffled(nodes);
    const size = random.integer(1, order.length - 1);
    faults.push(cutFault(context, at, random.between(9_000, 16_000), order.slice(0, size), order.slice(size)));
  }
  return faults;
}

/** Operators move singletons over links that take most of a second each way: answers come when nobody waits for them any more. */
export function crawls(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const slow = nodes.flatMap((a, index) =>
    nodes.slice(index + 1).filter(() => random.chance(0.6)).map((b): Fault => {
      return { kind: 'slow', at: from, until: to, a, b, factor: random.between(3, 9) };
    })
  );
  const moves = Array.from({ length: 60 }, (): Fault => {
    const action = random.pick(['move', 'move', 'move', 'stop', 'start'] as const);
    const argument = String(random.integer(0, 9));
    return { kind: 'call', at: random.between(from, to), node: random.pick(nodes), action, argument };
  });
  return [...slow, ...moves].sort((a, b) => a.at - b.at);
}

/** Members that send what no honest one does. */
export function lies(context: PlanContext): Fault[] {
  const { random, nodes, from, to } = context;
  const count = random.integer(20, 80);
  const faults = Array.from({ length: count }, (): Fault => {
    const argument = random.pick(lieKinds);
    return { kind: 'call', at: random.between(from, to), node: random.pick(nodes), action: 'lie', argument };
  });
  return faults.sort((a, b) => a.at - b.at);
}

/** The network is in pieces while the cluster forms, and whole a little later. */
export function founding(context: PlanContext): Fault[] {
  const { random, nodes } = context;
  const faults: Fault[] = [];
  const count = random.integer(1, 3);
  for (let i = 0; i < count; i++) {
    const order = random.shuffled(nodes);
    const side = order.slice(0, random.integer(1, Math.max(1, order.length - 1)));
    const others = order.filter((node) => !side.includes(node));
    const at = i === 0 ? 0 : random.between(0, 4_000);
    faults.push(cutFault(context, at, random.between(1_000, 9_000), side, others));
  }
  return faults.sort((a, b) => a.at - b.at);
}

/**
 * Something in the network, or a full accept queue, refuses connections to a living process, and resets those that it has.
 * On one machine for less than it takes to prove a death; from elsewhere for any time.
 */
export function refusals(context: PlanContext): Fault[] {
  const { random, nodes, loopback, from, to } = context;
  const faults: Fault[] = [];
  for (let at = from + random.between(0, 2_000); at < to; at += random.between(2_000, 9_000)) {
    const forMs = loopback ? random.between(5, 85) : random.between(5, 4_000);
    faults.push({ kind: 'refuse', at, until: at + forMs, node: random.pick(nodes) });
    if (random.chance(0.25)) {
      const restartAfterMs = random.between(0, 6_000);
      faults.push({
        kind: 'crash',
        at: at + random.between(0, 500),
        node: random.pick(nodes),
        power: false,
        restartAfterMs,
      });
    }
  }
  return faults.sort((a, b) => a.at - b.at);
}
