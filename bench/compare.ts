/** Compares two runs of the benchmarks. Machines differ and are noisy, so what has a limit is compared by its ratio to it. */
import { type Row, short } from './measure.ts';

export interface RuntimeRows {
  readonly runtime: string;
  readonly rows: readonly Row[];
}

/** A change smaller than this is noise. */
const tolerance = 0.2;

/** Units in which less is better. */
const costs: ReadonlySet<string> = new Set(['ms', 'µs', 'MiB', 'B', '% of a core']);

const figureOf = ({ value, limit }: Row): number => limit === undefined ? value : value / limit.value;

/** How much worse `now` is, as a share: 0.25 is a quarter slower, or a quarter larger. Negative: better. */
export function decay(before: Row, now: Row): number {
  const [was, is] = [figureOf(before), figureOf(now)];
  // A share that something costs: by percentage points.
  if (now.unit === '%') return (is - was) / 100;
  return costs.has(now.unit) ? is / was - 1 : 1 - is / was;
}

/** One line for each row that has become worse by a fifth or more. Rows that only one of the runs has are left out. */
export function compare(before: readonly RuntimeRows[], now: readonly RuntimeRows[]): string[] {
  const lines: string[] = [];
  for (const { runtime, rows } of now) {
    const known = before.find((one) => one.runtime === runtime)?.rows ?? [];
    for (const row of rows) {
      const old = known.find(({ what }) => what === row.what);
      // A difference of two rows that are both here, and of either sign.
      if (row.unit === '%') continue;
      if (old === undefined || (old.limit === undefined) !== (row.limit === undefined)) continue;
      const worse = decay(old, row);
      if (worse < tolerance) continue;
      const figures = `${short(figureOf(old))} → ${short(figureOf(row))} ${
        row.limit ? `× ${row.limit.what}` : row.unit
      }`;
      lines.push(`${runtime}: ${row.what}: ${figures} (${(worse * 100).toFixed(0)} % worse)`);
    }
  }
  return lines;
}
