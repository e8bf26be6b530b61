/**
 * Every duration that safety rests on, computed in one place. Two inequalities must hold, or the options are refused:
 *
 *   handOverTimeout > detection + 1.75 · stableAfter + M     a silent peer is removed before anybody hosts in spite of it
 *   M ≥ (G + stopBound) · (1 + 2 · drift)                    the losing side has stopped before the winning side starts
 *
 * G is the gate window: a host handles nothing once it has heard no winning side for that long. stopBound is the most its
 * running handler and `postStop` may take after that. drift is how much two monotonic clocks may differ, as a fraction.
 * M is the removal margin: the wait between "every survivor has seen `down`" and removal.
 */
import { checkOptions, OptionsError, type Rules, rules } from '../actor/options.ts';

export interface TimingOptions {
  /** Between heartbeats. Default 500 ms. */
  readonly heartbeatMs?: number;
  /** Silence after which a peer is unreachable; at least two heartbeats. Default 2 000 ms. */
  readonly unreachableAfterMs?: number;
  /** How long a split must stay the same before it is decided. Default by cluster size, see `stableAfterTable`. */
  readonly stableAfterMs?: number;
  /** Wait for a silent peer that is still a member. Default 10 000 ms up to 5 members, more where stableAfter is longer. */
  readonly handOverTimeoutMs?: number;
  /** G. Default 1 500 ms. */
  readonly gateWindowMs?: number;
  /** Default 1 000 ms. */
  readonly stopBoundMs?: number;
  /** A fraction; default 0.0002 (0.2 ms a second, twice what a healthy quartz may be off). */
  readonly driftBound?: number;
  /** How much longer a decision takes because an arbiter is asked. Comes from the downing strategy; default 0. */
  readonly arbitrationMs?: number;
  /** M. Default: the smallest safe one and 100 ms in reserve, 2 601 ms with the other defaults. */
  readonly removalMarginMs?: number;
}

/** Resolved, frozen, all in milliseconds. What depends on the cluster's size is asked through the functions below. */
export interface Timing {
  readonly heartbeatMs: number;
  readonly unreachableAfterMs: number;
  /** Longest time from a crash until it is seen: the deadline detector's silence. */
  readonly detectionMs: number;
  readonly gateWindowMs: number;
  /** Between two gate pings of a host: four in a window. */
  readonly gatePingMs: number;
  readonly stopBoundMs: number;
  readonly driftBound: number;
  readonly removalMarginMs: number;
  readonly arbitrationMs: number;
  /** As configured; undefined: by cluster size. */
  readonly fixedStableAfterMs: number | undefined;
  readonly fixedHandOverTimeoutMs: number | undefined;
}

/**
 * Default stableAfter by the number of members that are not removed: more members take longer to agree on what they see.
 * When `handOverTimeoutMs` is configured, stableAfter never grows past what the first inequality leaves room for.
 */
export const stableAfterTable: readonly (readonly [upToMembers: number, stableAfterMs: number])[] = [
  [5, 3_000],
  [10, 4_000],
  [20, 5_000],
  [50, 6_500],
  [100, 8_000],
  [Infinity, 10_000],
];

/** A view that keeps changing is decided by the unstable rule after this many times stableAfter. */
export const unstableFactor = 1.75;

const family = 'ClusterOptions';
const marginReserveMs = 100;
const defaultHandOverTimeoutMs = 10_000;

const optionRules: Rules<TimingOptions> = {
  heartbeatMs: rules.durationMs(10),
  unreachableAfterMs: rules.durationMs(20),
  stableAfterMs: rules.durationMs(10),
  handOverTimeoutMs: rules.durationMs(1),
  gateWindowMs: rules.durationMs(40),
  stopBoundMs: rules.durationMs(1),
  driftBound: rules.number(0, 0.1),
  removalMarginMs: rules.durationMs(0),
  arbitrationMs: rules.durationMs(0),
};

/** @throws OptionsError naming the field, or the inequality and its numbers. */
export function resolveTiming(options: TimingOptions = {}): Timing {
  checkOptions(family, options, optionRules);
  const { heartbeatMs = 500, unreachableAfterMs = Math.max(2_000, 2 * heartbeatMs) } = options;
  if (unreachableAfterMs < 2 * heartbeatMs) {
    const rule = `must be at least two heartbeats (2 · ${heartbeatMs} ms)`;
    throw new OptionsError(family, 'unreachableAfterMs', unreachableAfterMs, rule);
  }
  const { gateWindowMs = 1_500, stopBoundMs = 1_000, driftBound = 2e-4 } = options;
  const smallestMargin = Math.ceil(round((gateWindowMs + stopBoundMs) * (1 + 2 * driftBound)));
  const { removalMarginMs = smallestMargin + marginReserveMs } = options;
  const timing: Timing = Object.freeze({
    heartbeatMs,
    unreachableAfterMs,
    detectionMs: unreachableAfterMs,
    gateWindowMs,
    gatePingMs: Math.max(10, Math.floor(gateWindowMs / 4)),
    stopBoundMs,
    driftBound,
    removalMarginMs,
    arbitrationMs: options.arbitrationMs ?? 0,
    fixedStableAfterMs: options.stableAfterMs,
    fixedHandOverTimeoutMs: options.handOverTimeoutMs,
  });
  checkMargin(timing);
  if (options.handOverTimeoutMs !== undefined) {
    checkHandOverTimeout(timing, family, 'handOverTimeoutMs', options.handOverTimeoutMs);
  }
  return timing;
}

/** For a cluster of `size` members, those that are not removed, down ones included. */
export function stableAfterMs(timing: Timing, size: number): number {
  if (timing.fixedStableAfterMs !== undefined) return timing.fixedStableAfterMs;
  const bySize = defaultStableAfterMs(size);
  if (timing.fixedHandOverTimeoutMs === undefined) return bySize;
  const { fixedHandOverTimeoutMs, detectionMs, arbitrationMs, removalMarginMs } = timing;
  const room = fixedHandOverTimeoutMs - detectionMs - arbitrationMs - removalMarginMs - 1;
  return Math.min(bySize, Math.floor(room / unstableFactor));
}

/** Longest time from the first unreachable member until the strategy, its arbiter, or the unstable rule has decided. */
export function decisionMs(timing: Timing, size: number): number {
  return unstableFactor * stableAfterMs(timing, size) + timing.arbitrationMs;
}

/** Longest time from a crash until the crashed member is removed, once everybody has seen it as down. */
export function removalMs(timing: Timing, size: number): number {
  return timing.detectionMs + decisionMs(timing, size) + timing.removalMarginMs;
}

/** A crash of one member across machines: detection + stableAfter + M; 7.6 s by default with up to 5 members. */
export function crashFailoverMs(timing: Timing, size: number): number {
  return timing.detectionMs + stableAfterMs(timing, size) + timing.removalMarginMs;
}

/** The wait for a silent peer; a singleton that sets none of its own uses this. */
export function handOverTimeoutMs(timing: Timing, size: number): number {
  if (timing.fixedHandOverTimeoutMs !== undefined) return timing.fixedHandOverTimeoutMs;
  const needed = Math.ceil((removalMs(timing, size) + marginReserveMs) / 500) * 500;
  return Math.max(defaultHandOverTimeoutMs, needed);
}

/**
 * Refuses a hand-over timeout, the cluster's or one singleton's own, that breaks the first inequality in a cluster of
 * `size` members (default: the smallest).
 * @throws OptionsError
 */
export function checkHandOverTimeout(timing: Timing, ofFamily: string, field: string, value: number, size = 1): void {
  const stableAfter = timing.fixedStableAfterMs ??
    (timing.fixedHandOverTimeoutMs === value ? defaultStableAfterMs(size) : stableAfterMs(timing, size));
  const { detectionMs, arbitrationMs, removalMarginMs } = timing;
  const needed = round(detectionMs + unstableFactor * stableAfter + arbitrationMs + removalMarginMs);
  if (value > needed) return;
  const [more, moreMs] = arbitrationMs === 0 ? ['', ''] : [' + arbitration', ` + ${arbitrationMs}`];
  const rule = `must keep handOverTimeout > detection + 1.75 · stableAfter${more} + M, but ` +
    `${value} > ${detectionMs} + 1.75 · ${stableAfter}${moreMs} + ${removalMarginMs} = ${needed} (ms) is false`;
  throw new OptionsError(ofFamily, field, value, rule);
}

function checkMargin(timing: Timing): void {
  const { removalMarginMs, gateWindowMs, stopBoundMs, driftBound } = timing;
  const needed = round((gateWindowMs + stopBoundMs) * (1 + 2 * driftBound));
  if (removalMarginMs >= needed) return;
  const rule = 'must keep M ≥ (G + stopBound) · (1 + 2 · drift), but ' +
    `${removalMarginMs} ≥ (${gateWindowMs} + ${stopBoundMs}) · (1 + 2 · ${driftBound}) = ${needed} (ms) is false`;
  throw new OptionsError(family, 'removalMarginMs', removalMarginMs, rule);
}

/** What `/cluster/seed` prints, and people read. */
export function describeTiming(timing: Timing, size: number): Readonly<Record<string, number>> {
  return {
    heartbeatMs: timing.heartbeatMs,
    detectionMs: timing.detectionMs,
    stableAfterMs: stableAfterMs(timing, size),
    decisionMs: decisionMs(timing, size),
    gateWindowMs: timing.gateWindowMs,
    stopBoundMs: timing.stopBoundMs,
    driftBound: timing.driftBound,
    removalMarginMs: timing.removalMarginMs,
    handOverTimeoutMs: handOverTimeoutMs(timing, size),
    crashFailoverMs: crashFailoverMs(timing, size),
  };
}

function defaultStableAfterMs(size: number): number {
  for (const [upToMembers, ms] of stableAfterTable) if (size <= upToMembers) return ms;
  return 10_000;
}

/** To a thousandth, so that 2 500 · 1.0004 is 2 501 and not a hair more. */
function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
