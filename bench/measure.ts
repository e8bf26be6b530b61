/** Timing and printing shared by all benchmarks. */

import process from 'node:process';
import { type FastPath, fastPaths } from '../src/fast_paths.ts';

export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** Smallest and largest of the runs. */
  readonly spread: readonly [number, number];
  /** What the value is compared with, measured in the same run. */
  readonly limit?: { readonly what: string; readonly value: number };
  /** Tells what the machine does at most, or stands behind a ratio in another row: never taken for a change of ours. */
  readonly context?: boolean;
  /** The library that this is a row of; absent: ours. */
  readonly peer?: string;
  /** Of a peer's row: how many times better ours of the same name is, in the same run. */
  readonly ours?: number;
  /** The same of figures from another machine, each divided by the limit of its own machine first. */
  readonly oursByLimit?: number;
}

/** Units in which less is better. */
export const costs: ReadonlySet<string> = new Set(['ms', 'µs', 'MiB', 'B', '% of a core', '×']);

export const nameOf = ({ peer, what }: Row): string => peer === undefined ? what : `${peer}: ${what}`;

/** `without=batching,soon`: these fast paths are off in this process. */
const without = process.argv.find((word) => word.startsWith('without='))?.slice('without='.length);
for (const path of without?.split(',') ?? []) {
  if (!(path in fastPaths)) throw new RangeError(`--without ${path}: there are ${Object.keys(fastPaths).join(', ')}`);
  fastPaths[path as FastPath] = false;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Milliseconds: of the clock, or of this process on the processor, all its threads together. */
export const now: () => number = process.argv.includes('processor-time') ? processorMs : () => performance.now();

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Runs `once` a few times after a warm-up and keeps the median of what it returns. */
export async function repeat(
  what: string,
  unit: string,
  runs: number,
  once: () => Promise<number>,
  limit?: Row['limit'],
): Promise<Row> {
  await once();
  const values: number[] = [];
  for (let run = 0; run < runs; run += 1) values.push(await once());
  const row = { what, unit, value: median(values), spread: [Math.min(...values), Math.max(...values)] as const };
  return limit ? { ...row, limit } : row;
}

export function emit(row: Row): void {
  console.log(`@row ${JSON.stringify(row)}`);
}

/** A short number: 12.3 M, 456 k, 7.89. */
export function short(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (value >= 1e3) return `${(value / 1e3).toPrecision(3)} k`;
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function check(counted: number, expected: number, what: string): void {
  if (counted !== expected) throw new Error(`${what}: ${counted} messages were handled, ${expected} were sent; no row`);
}

export function medianRow(what: string, unit: string, values: readonly number[]): Row {
  return { what, unit, value: median(values), spread: [Math.min(...values), Math.max(...values)] };
}
