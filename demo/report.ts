/** The demonstration's closing table and verdict. Pure. */
import { type Hosting, hostings, tally } from './accounting.ts';
import type { ReceivedCall } from './receiver.ts';

export interface Facts {
  readonly calls: readonly ReceivedCall[];
  readonly everyMs: number;
  /** What a host was told to do: the n-th ended the n-th hosting. */
  readonly ends: readonly ('SIGTERM' | 'SIGKILL')[];
  /** How a host is called in the table. */
  readonly nameOf: (address: string) => string;
  /** The scheduler's own count of skipped ticks: before the crash, after it. */
  readonly skipped: readonly [number, number];
  /** From SIGKILL to the next scheduler's first answer. */
  readonly crashGapMs: number;
  readonly epochBeforeJoin: number;
  readonly epochAfterJoin: number;
}

export interface Report {
  readonly lines: readonly string[];
  readonly broken: readonly string[];
}

const plannedGapBoundMs = 1_000;
const crashGapBoundMs = 3_000;

export function report(facts: Facts): Report {
  const all = hostings(facts.calls);
  const crash = facts.ends.indexOf('SIGKILL');
  const chains = [all.slice(0, crash + 1), all.slice(crash + 1)] as const;
  const tallies = chains.map((chain, index) =>
    tally(chain.flatMap((hosting) => hosting.calls), facts.everyMs, facts.skipped[index]!)
  );
  const rows = [
    ['host', 'epoch', 'ended by', 'gap before', 'calls'],
    ...all.map((hosting, index) => [
      facts.nameOf(hosting.host),
      String(hosting.epoch),
      facts.ends[index] ?? 'end of the demonstration',
      gapOf(facts, hosting, index),
      String(hosting.calls.length),
    ]),
  ];
  const sums = [
    ['runs', 'due', 'delivered', 'skipped', 'lost', 'doubled'],
    ...tallies.map((sum, index) => [
      index === 0 ? 'up to the SIGKILL' : 'after it',
      ...[sum.due, sum.delivered, sum.skipped, sum.lost, sum.doubled].map(String),
    ]),
  ];
  return { lines: [...table(rows), '', ...table(sums)], broken: brokenPromises(facts, all, tallies) };
}

function gapOf(facts: Facts, hosting: Hosting, index: number): string {
  if (index === 0 || hosting.gapMs === undefined) return '-';
  return facts.ends[index - 1] === 'SIGKILL' ? `${facts.crashGapMs.toFixed(0)} ms` : `${hosting.gapMs.toFixed(0)} ms`;
}

function brokenPromises(
  facts: Facts,
  all: readonly Hosting[],
  tallies: readonly { readonly lost: number; readonly doubled: number }[],
): readonly string[] {
  const broken: string[] = [];
  const promise = (kept: boolean, text: string) => void (kept || broken.push(text));
  promise(all.length === facts.ends.length + 1, `${facts.ends.length + 1} hosts in turn: there were ${all.length}`);
  for (const [index, hosting] of all.entries()) {
    promise(
      hosting.stale === 0,
      `never two: ${hosting.stale} calls of epoch ${hosting.epoch} came after its successor's first`,
    );
    if (facts.ends[index - 1] !== 'SIGTERM') continue;
    const gapMs = hosting.gapMs ?? Infinity;
    promise(
      gapMs <= plannedGapBoundMs,
      `gap of a planned move up to ${plannedGapBoundMs} ms: it was ${gapMs.toFixed(0)} ms`,
    );
  }
  for (const { lost, doubled } of tallies) {
    promise(lost === 0, `no run lost: ${lost} were`);
    promise(doubled === 0, `no run doubled: ${doubled} were`);
  }
  promise(
    facts.crashGapMs <= crashGapBoundMs,
    `gap of a crash up to ${crashGapBoundMs} ms: it was ${facts.crashGapMs.toFixed(0)} ms`,
  );
  promise(facts.epochBeforeJoin === facts.epochAfterJoin, 'a join moves nothing: the epoch changed');
  return broken;
}

/** Columns of equal width, the first to the left, with a line under the head. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    '  ' +
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)).join('   ');
  const [head, ...body] = rows.map(line);
  return [head!, '  ' + '-'.repeat(head!.length - 2), ...body];
}
