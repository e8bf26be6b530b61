/** Compares two runs of the benchmarks. Machines differ and are noisy, so what has a limit is compared by its ratio to it. */
import { costs, nameOf, type Row, short } from './measure.ts';

export interface RuntimeRows {
  readonly runtime: string;
  readonly rows: readonly Row[];
}

/** A change smaller than this is noise. */
const tolerance = 0.2;

interface Figure {
  readonly value: number;
  readonly unit: string;
  readonly less: boolean;
}

/** A peer that has become slower is no loss: of its rows counts how many times better ours are. */
function figureOf({ value, unit, limit, peer, ours }: Row): Figure | undefined {
  if (peer !== undefined) return ours === undefined ? undefined : { value: ours, unit: '× the peer', less: false };
  const less = costs.has(unit);
  return limit === undefined ? { value, unit, less } : { value: value / limit.value, unit: `× ${limit.what}`, less };
}

/** How much worse `now` is, as a share: 0.25 is a quarter slower, or a quarter larger. Negative: better. */
function decay(before: Figure, now: Figure): number {
  return now.less ? now.value / before.value - 1 : 1 - now.value / before.value;
}

export interface Comparison {
  /** How many rows could be compared. */
  readonly compared: number;
  /** One line for each that has become worse by a fifth or more. */
  readonly worse: readonly string[];
  /** Rows that were not measured before, or against something else. */
  readonly unknown: readonly string[];
}

/** Compares what `now` has; what only `before` has was not asked for. */
export function compare(before: readonly RuntimeRows[], now: readonly RuntimeRows[]): Comparison {
  const worse: string[] = [];
  const unknown: string[] = [];
  let compared = 0;
  for (const { runtime, rows } of now) {
    const known = before.find((one) => one.runtime === runtime)?.rows ?? [];
    for (const row of rows) {
      // The percentage: a difference of two rows that are both here, and of either sign.
      if (row.context === true || row.unit === '%') continue;
      const name = `${runtime}: ${nameOf(row)}`;
      const old = known.find((one) => nameOf(one) === nameOf(row));
      const [was, is] = [old && figureOf(old), figureOf(row)];
      if (was === undefined || is === undefined || was.unit !== is.unit) {
        unknown.push(name);
        continue;
      }
      compared += 1;
      const share = decay(was, is);
      if (share < tolerance) continue;
      const figures = `${short(was.value)} → ${short(is.value)} ${is.unit}`;
      worse.push(`${name}: ${figures} (${(share * 100).toFixed(0)} % worse)`);
    }
  }
  return { compared, worse, unknown };
}

/** All rows of `now`, and those of `before` that `now` has not; runtimes and rows stay where they were. */
export function merged(before: readonly RuntimeRows[], now: readonly RuntimeRows[]): RuntimeRows[] {
  const both = (old: readonly Row[], fresh: readonly Row[]): Row[] => {
    const rows = new Map([...old, ...fresh].map((row) => [nameOf(row), row]));
    return [...rows.values()];
  };
  const runtimes = new Set([...before, ...now].map(({ runtime }) => runtime));
  const of = (table: readonly RuntimeRows[], name: string): readonly Row[] =>
    table.find(({ runtime }) => runtime === name)?.rows ?? [];
  return [...runtimes].map((runtime) => ({ runtime, rows: both(of(before, runtime), of(now, runtime)) }));
}
