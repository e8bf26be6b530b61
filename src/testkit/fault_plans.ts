/** How the built-in profiles draw their faults. */
import type { Fault } from './fault.ts';
import type { PlanContext } from './profiles.ts';
import type { HealMode } from './sim_network.ts';
import type { ResumeOrder } from './world_options.ts';

const healModes: readonly HealMode[] = ['deliver', 'reset', 'mixed'];
const resumeOrders: readonly ResumeOrder[] = ['due', 'timers-first', 'io-first'];

/** Draws from `make` at random times until the phase is over; gaps are uniform in `gap`. */
function repeated(context: PlanContext, gap: readonly [number, number], make: (at: number) => Fault[]): Fault[] {
  const faults: Fault[] = [];
  let at = context.from + context.random.between(0, gap[1]);
  while (at < context.to) {
    faults.push(...make(at));
    at += context.random.between(gap[0], gap[1]);
  }
  return faults;
}

/** How long a fault lasts: mostly around the detector's time-outs, sometimes far shorter or longer. */
function length(context: PlanContext): number {
  const random = context.random;
  const kind = random.next();
  if (kind < 0.25) return random.between(20, 1_500);
  if (kind < 0.7) return random.between(1_500, 9_000);
  return random.between(9_000, 30_000);
}

function split(context: PlanContext): [string[], string[]] {
  const order = context.random.shuffled(context.nodes);
  const size = context.random.integer(1, Math.max(1, order.length - 1));
  return [order.slice(0, size), order.slice(size)];
}

/** The whole cluster in two, or (partial) only some paths between the two groups. */
function cut(context: PlanContext, at: number): Fault[] {
  const random = context.random;
  let [from, to] = split(context);
  if (random.chance(0.25)) from = from.slice(0, 1);
  if (random.chance(0.25)) to = to.slice(0, random.integer(1, to.length));
  return [{
    kind: 'cut',
    at,
    until: at + length(context),
    from,
    to,
    oneWay: random.chance(0.25),
    skewMs: random.chance(0.5) ? random.between(1, 200) : 0,
    heal: random.pick(healModes),
  }];
}

export function partitions(context: PlanContext): Fault[] {
  return repeated(context, [3_000, 25_000], (at) => cut(context, at));
}

export function flaps(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [8_000, 25_000], (at) => {
    const [from, to] = split(context);
    const only = random.chance(0.5) ? to.slice(0, 1) : to;
    const faults: Fault[] = [];
    const count = random.integer(2, 8);
    let start = at;
    for (let i = 0; i < count; i++) {
      const until = start + random.between(200, 3_500);
      faults.push({
        kind: 'cut',
        at: start,
        until,
        from,
        to: only,
        oneWay: random.chance(0.2),
        skewMs: random.between(0, 60),
        heal: random.pick(healModes),
      });
      start = until + random.between(100, 3_000);
    }
    return faults;
  });
}

function pause(context: PlanContext, at: number, forMs: number): Fault {
  const { random } = context;
  return { kind: 'pause', at, until: at + forMs, node: random.pick(context.nodes), order: random.pick(resumeOrders) };
}

export function pauses(context: PlanContext): Fault[] {
  return repeated(context, [1_000, 15_000], (at) => [pause(context, at, length(context))]);
}

function crash(context: PlanContext, at: number): Fault {
  const { random } = context;
  const soon = random.chance(0.3);
  return {
    kind: 'crash',
    at,
    node: random.pick(context.nodes),
    power: random.chance(0.25),
    restartAfterMs: random.chance(0.85) ? (soon ? random.between(0, 1_500) : random.between(1_500, 25_000)) : undefined,
  };
}

export function crashes(context: PlanContext): Fault[] {
  return repeated(context, [4_000, 20_000], (at) => {
    const faults = [crash(context, at)];
    if (context.random.chance(0.25)) faults.push(crash(context, at + context.random.between(0, 3_000)));
    return faults;
  });
}

export function restarts(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [2_000, 15_000], (at) => [{
    kind: 'crash',
    at,
    node: random.pick(context.nodes),
    power: random.chance(0.1),
    restartAfterMs: random.chance(0.7) ? random.between(0, 100) : random.between(100, 3_000),
  }]);
}

function leave(context: PlanContext, at: number, node: string): Fault {
  const { random } = context;
  return { kind: 'leave', at, node, restartAfterMs: random.between(0, 8_000) };
}

export function leaves(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [6_000, 18_000], (at) => {
    const count = random.chance(0.3) ? random.integer(1, Math.max(1, context.nodes.length - 1)) : 1;
    const together = random.shuffled(context.nodes).slice(0, count);
    return together.map((node) => leave(context, at + random.between(0, 200), node));
  });
}

export function rolling(context: PlanContext): Fault[] {
  const { random } = context;
  const order = random.chance(0.5) ? context.nodes.slice() : random.shuffled(context.nodes);
  const step = (context.to - context.from) / (order.length + 1);
  return order.map((node, index): Fault => ({
    kind: 'leave',
    at: context.from + step * (index + random.between(0, 0.4)),
    node,
    restartAfterMs: random.between(0, step / 3),
  }));
}

/** Hosts that a `start` fault names do not run before it. */
export function joins(context: PlanContext): Fault[] {
  const { random } = context;
  const first = random.integer(1, Math.min(2, context.nodes.length - 1));
  const faults: Fault[] = [];
  let at = context.from + random.between(0, 2_000);
  let next = first;
  while (next < context.nodes.length) {
    const count = random.pick([1, 2, 5]);
    for (const node of context.nodes.slice(next, next + count)) {
      faults.push({ kind: 'start', at: at + random.between(0, 150), node });
    }
    next += count;
    at += random.between(500, 12_000);
  }
  return faults;
}

export function operations(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [1_500, 9_000], (at) => {
    const node = random.pick(context.nodes);
    const singleton = String(random.integer(0, 9));
    if (random.chance(0.6)) return [{ kind: 'call', at, node, action: 'move', argument: singleton }];
    const back = at + random.between(500, 6_000);
    return [
      { kind: 'call', at, node, action: 'stop', argument: singleton },
      { kind: 'call', at: back, node, action: 'start', argument: singleton },
    ];
  });
}

export function churn(context: PlanContext): Fault[] {
  const { random } = context;
  const waiting = context.nodes.slice(Math.ceil(context.nodes.length / 2));
  const faults = waiting.map((node): Fault => ({
    kind: 'start',
    at: random.between(context.from, (context.from + context.to) / 2),
    node,
  }));
  return faults.concat(repeated(context, [2_000, 12_000], (at) => {
    const kind = random.next();
    if (kind < 0.45) return [leave(context, at, random.pick(context.nodes))];
    return [crash(context, at)];
  }));
}

export function clocks(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [1_000, 9_000], (at) => {
    if (random.chance(0.5)) return [pause(context, at, random.between(10, 900))];
    return [{ kind: 'clock', at, node: random.pick(context.nodes), jumpMs: random.between(-3_600_000, 3_600_000) }];
  });
}

function link(context: PlanContext, at: number): Fault[] {
  const { random } = context;
  const [a, b] = random.shuffled(context.nodes);
  if (a === undefined || b === undefined) return [];
  const kind = random.next();
  if (kind < 0.45) return [{ kind: 'reset', at, a, b }];
  if (kind < 0.75) return [{ kind: 'hang', at, a, b }];
  return [{ kind: 'slow', at, until: at + length(context), a, b, factor: random.between(5, 60) }];
}

export function links(context: PlanContext): Fault[] {
  return repeated(context, [500, 8_000], (at) => link(context, at));
}

export function mixed(context: PlanContext): Fault[] {
  const { random } = context;
  return repeated(context, [1_500, 12_000], (at) => {
    const kind = random.next();
    if (kind < 0.25) return cut(context, at);
    if (kind < 0.45) return [pause(context, at, length(context))];
    if (kind < 0.62) return [crash(context, at)];
    if (kind < 0.75) return [leave(context, at, random.pick(context.nodes))];
    if (kind < 0.9) return link(context, at);
    if (kind < 0.93) return [{ kind: 'listener', at, node: random.pick(context.nodes) }];
    const jumpMs = random.between(-3_600_000, 3_600_000);
    return [{ kind: 'clock', at, node: random.pick(context.nodes), jumpMs }];
  });
}
