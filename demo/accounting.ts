/**
 * What the target saw, counted. Pure. Only from what arrived: the scheduler's own word is used for nothing but the ticks it
 * says it skipped.
 */
import type { ReceivedCall } from './receiver.ts';

export interface Tally {
  /** Points of the jobs' grids from their first to their last call. */
  readonly due: number;
  readonly delivered: number;
  /** Ticks nobody ran that the scheduler reports as skipped. */
  readonly skipped: number;
  /** Run numbers that never arrived, and ticks nobody ran and nobody accounts for. */
  readonly lost: number;
  /** Calls that repeat a run number or a due time. */
  readonly doubled: number;
}

/**
 * Counts the calls of one chain, that is of instances that followed each other by planned moves (after a crash the run
 * numbers begin anew: another chain). `skipped` is the scheduler's count over the chain.
 */
export function tally(calls: readonly ReceivedCall[], everyMs: number, skipped: number): Tally {
  let [due, delivered, doubled, runsMissing] = [0, 0, 0, 0];
  for (const ofJob of groupBy(calls, (call) => call.id).values()) {
    const runs = new Set(ofJob.map((call) => call.run));
    const dues = new Set(ofJob.map((call) => call.dueAt));
    due += Math.round((max([...dues]) - min([...dues])) / everyMs) + 1;
    delivered += Math.min(runs.size, dues.size);
    doubled += ofJob.length - Math.min(runs.size, dues.size);
    // Runs count from 1, so a chain that begins later has lost its first ones.
    runsMissing += max([...runs]) - runs.size;
  }
  const unexplained = Math.max(due - delivered - skipped, 0);
  return { due, delivered, skipped, lost: Math.max(runsMissing, unexplained), doubled };
}

export interface Hosting {
  readonly host: string;
  readonly epoch: number;
  readonly calls: readonly ReceivedCall[];
  /** From the last call of the hosting before to the first of this one; undefined for the first. */
  readonly gapMs: number | undefined;
  /** Calls of it that arrived after a later one had begun to call. */
  readonly stale: number;
}

/** The instances that called, by epoch. */
export function hostings(calls: readonly ReceivedCall[]): readonly Hosting[] {
  const byEpoch = [...groupBy(calls, (call) => call.epoch).entries()].sort(([a], [b]) => a - b);
  return byEpoch.map(([epoch, ofEpoch], index) => {
    const before = byEpoch[index - 1]?.[1];
    const after = byEpoch[index + 1]?.[1];
    return {
      host: ofEpoch[0]!.host,
      epoch,
      calls: ofEpoch,
      gapMs: before && ofEpoch[0]!.arrivedAt - before.at(-1)!.arrivedAt,
      stale: after === undefined ? 0 : ofEpoch.filter((call) => call.arrivedAt > after[0]!.arrivedAt).length,
    };
  });
}

function groupBy<K>(calls: readonly ReceivedCall[], keyOf: (call: ReceivedCall) => K): Map<K, ReceivedCall[]> {
  const groups = new Map<K, ReceivedCall[]>();
  for (const call of calls) {
    const key = keyOf(call);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [call]);
    else group.push(call);
  }
  return groups;
}

function max(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

function min(values: readonly number[]): number {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}
