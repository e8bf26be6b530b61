/**
 * A profile for the moves of a singleton: operators cannot make up their minds while the members that take part hear each
 * other late and by different ways, so that what belongs to one attempt arrives in the middle of another. Never so late that
 * anybody would be given up: all moves are planned ones.
 */
import type { Fault } from './fault.ts';
import type { PlanContext } from './profiles.ts';

export function echoes(context: PlanContext): Fault[] {
  const { random, from, to } = context;
  const faults: Fault[] = [];
  for (let at = from + random.between(0, 2_000); at < to; at += random.between(5_000, 8_000)) {
    faults.push(...random.chance(0.5) ? toAndFro(context, at) : comeback(context, at));
  }
  return faults.sort((first, second) => first.at - second.at);
}

function call(at: number, node: string, action: string, argument: string): Fault {
  return { kind: 'call', at, node, action, argument };
}

/** Between two members that hear each other by way of a third one only. */
function toAndFro({ random, nodes }: PlanContext, at: number): Fault[] {
  const [a = '', b = '', c = ''] = random.shuffled(nodes);
  const until = at + random.between(400, 1_800);
  const oneWay = random.chance(0.5);
  const faults: Fault[] = [{ kind: 'cut', at, until, from: [a], to: [b], oneWay, skewMs: 0, heal: 'deliver' }];
  if (random.chance(0.5)) {
    const factor = random.between(2, 12);
    faults.push({ kind: 'slow', at, until: until + 1_000, a: random.pick([a, b]), b: c, factor });
  }
  const singleton = random.integer(0, 9);
  let step = at + random.between(10, 300);
  for (let left = random.integer(3, 8); left > 0; left--) {
    faults.push(call(step, random.pick([a, b, c]), 'move', `${singleton}@${left % 2 === 0 ? a : b}`));
    step += random.between(20, 900);
  }
  return faults;
}

/**
 * The host stops a singleton, and starts it again while the next one is still asking everybody over slow links, and cannot
 * hear of it from the host itself.
 */
function comeback({ random, nodes }: PlanContext, at: number): Fault[] {
  const [a = '', b = '', ...others] = random.shuffled(nodes);
  const singleton = String(random.integer(0, 9));
  const factor = random.between(4, 20);
  const stopAt = at + random.between(1_000, 1_500);
  const cutAt = stopAt + random.between(20, 400);
  const startAt = cutAt + random.between(5, 300);
  const until = cutAt + random.between(600, 1_800);
  return [
    call(at, a, 'move', `${singleton}@${a}`),
    ...others.map((c): Fault => ({ kind: 'slow', at: at + 600, until: until + 500, a: b, b: c, factor })),
    call(stopAt, a, 'stop', singleton),
    { kind: 'cut', at: cutAt, until, from: [a], to: [b], oneWay: random.chance(0.3), skewMs: 0, heal: 'deliver' },
    call(startAt, a, 'start', singleton),
  ];
}
