/** Reads how many tests a runner ran from what it printed. Pure. */
import { stripVTControlCharacters } from 'node:util';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export type RuntimeName = 'bun' | 'deno' | 'node';

export const noCounts: Counts = { passed: 0, failed: 0, skipped: 0 };

export function addCounts(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** The form every part and the whole run end with. */
export function describeCounts(counts: Counts): string {
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
}

const readers: Record<RuntimeName, (output: string) => Counts | undefined> = {
  bun: readBun,
  deno: readDeno,
  node: readNode,
};

/**
 * The counts of one run. A runner that printed no summary, ran nothing, or ended with an error it does not count as a
 * failed test, counts as one failure.
 */
export function readCounts(runtime: RuntimeName, output: string, exitCode: number): Counts {
  const counts = readers[runtime](stripVTControlCharacters(output));
  if (counts === undefined) return { ...noCounts, failed: 1 };
  const ran = counts.passed + counts.failed + counts.skipped;
  if (ran === 0 || (exitCode !== 0 && counts.failed === 0)) return { ...counts, failed: counts.failed + 1 };
  return counts;
}

function lastNumber(output: string, pattern: RegExp): number | undefined {
  const found = [...output.matchAll(pattern)].at(-1);
  return found === undefined ? undefined : Number(found[1]);
}

function readBun(output: string): Counts | undefined {
  const passed = lastNumber(output, /^\s*(\d+) pass$/gm);
  if (passed === undefined) return undefined;
  return {
    passed,
    failed: (lastNumber(output, /^\s*(\d+) fail$/gm) ?? 0) + (lastNumber(output, /^\s*(\d+) errors?$/gm) ?? 0),
    skipped: (lastNumber(output, /^\s*(\d+) skip$/gm) ?? 0) + (lastNumber(output, /^\s*(\d+) todo$/gm) ?? 0),
  };
}

/** Deno counts a `describe` as a test and what is in it as steps. */
function readDeno(output: string): Counts | undefined {
  const summary = [...output.matchAll(/^(?:ok|FAILED) \| (.*)$/gm)].at(-1)?.[1];
  if (summary === undefined) return undefined;
  const read = (word: string) => {
    const found = new RegExp(`(\\d+) ${word}(?: \\((\\d+) steps?\\))?`).exec(summary);
    return Number(found?.[1] ?? 0) + Number(found?.[2] ?? 0);
  };
  return { passed: read('passed'), failed: read('failed'), skipped: read('ignored') };
}

function readNode(output: string): Counts | undefined {
  const read = (word: string) => lastNumber(output, new RegExp(`^(?:ℹ|#) ${word} (\\d+)$`, 'gm'));
  const passed = read('pass');
  if (passed === undefined) return undefined;
  return {
    passed,
    failed: (read('fail') ?? 0) + (read('cancelled') ?? 0),
    skipped: (read('skipped') ?? 0) + (read('todo') ?? 0),
  };
}

/** Why tests were skipped, as Node's reporter prints it: reason → how many tests gave it. */
export function readSkipReasons(output: string): ReadonlyMap<string, number> {
  const reasons = new Map<string, number>();
  for (const [, reason] of output.matchAll(/^\s*﹣ .* \([\d.]+ms\) # (.+)$/gm)) {
    if (reason !== undefined && reason !== 'SKIP') reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return reasons;
}
