/** The demonstration's closing table and verdict. Pure. */
import { type Hosting, hostings, type Tally, tally } from './accounting.ts';
import type { ReceivedCall } from './receiver.ts';

export interface Facts {
  readonly calls: readonly ReceivedCall[];
  readonly everyMs: number;
  /** What a host was told to do: the n-th ended the n-th hosting. */
  readonly ends: readonly ('SIGTERM' | 'SIGKILL')[];
  /** How a host is called in the table. */
  readonly nameOf: (address: string) => string;
  /** Ticks the scheduler said it had skipped, read shortly before the n-th hosting ended. It counts from 0 after a crash. */
  readonly skipped: readonly number[];
  /** From SIGKILL to the next scheduler's first answer. */
  readonly crashGapMs: number;
  readonly epochBeforeJoin: number;
  readonly epochAfterJoin: number;
}

export interface Report {
  readonly lines: readonly string[];
  readonly broken: readonly string[];
}

interface Row extends Tally {
  readonly hosting: Hosting;
  readonly gapMs: number | undefined;
  readonly end: 'SIGTERM' | 'SIGKILL' | undefined;
  readonly begin: 'SIGTERM' | 'SIGKILL' | undefined;
}

const plannedGapBoundMs = 1_000;
const crashGapBoundMs = 3_000;

export function report(facts: Facts): Report {
  const rows = rowsOf(facts);
  const shown = rows.map((row) => [
    facts.nameOf(row.hosting.host),
    String(row.hosting.epoch),
    row.end ?? 'the end',
    row.gapMs === undefined ? '-' : `${row.gapMs.toFixed(0)} ms`,
    ...[row.due, row.delivered, row.skipped, row.lost, row.doubled].map(String),
  ]);
  const head = ['host', 'epoch', 'until', 'gap before', 'runs due', 'delivered', 'skipped', 'lost', 'doubled'];
  return { lines: table([head, ...shown]), broken: brokenPromises(facts, rows) };
}

/** Each hosting with its share of the chain it belongs to: what was counted up to its end, less what was before it. */
function rowsOf(facts: Facts): readonly Row[] {
  const rows: Row[] = [];
  let chain: ReceivedCall[] = [];
  let before: Tally = { due: 0, delivered: 0, skipped: 0, lost: 0, doubled: 0 };
  for (const [index, hosting] of hostings(facts.calls).entries()) {
    const begin = facts.ends[index - 1];
    if (begin === 'SIGKILL') {
      chain = [];
      before = { due: 0, delivered: 0, skipped: 0, lost: 0, doubled: 0 };
    }
    chain = [...chain, ...hosting.calls];
    const now = tally(chain, facts.everyMs, facts.skipped[index] ?? 0);
    rows.push({
      hosting,
      begin,
      end: facts.ends[index],
      gapMs: begin === 'SIGKILL' ? facts.crashGapMs : hosting.gapMs,
      due: now.due - before.due,
      delivered: now.delivered - before.delivered,
      skipped: now.skipped - before.skipped,
      lost: now.lost - before.lost,
      doubled: now.doubled - before.doubled,
    });
    before = now;
  }
  return rows;
}

function brokenPromises(facts: Facts, rows: readonly Row[]): readonly string[] {
  const broken: string[] = [];
  const promise = (kept: boolean, text: string) => void (kept || broken.push(text));
  promise(rows.length === facts.ends.length + 1, `${facts.ends.length + 1} hosts in turn: there were ${rows.length}`);
  for (const { hosting, begin, gapMs = 0, lost, doubled } of rows) {
    const { epoch, stale } = hosting;
    promise(stale === 0, `never two: ${stale} calls of epoch ${epoch} came after its successor's first`);
    promise(lost === 0, `no run lost: ${lost} were in epoch ${epoch}`);
    promise(doubled === 0, `no run doubled: ${doubled} were in epoch ${epoch}`);
    const bound = begin === 'SIGKILL' ? crashGapBoundMs : plannedGapBoundMs;
    const what = begin === 'SIGKILL' ? 'crash' : 'planned move';
    promise(gapMs <= bound, `gap of a ${what} up to ${bound} ms: it was ${gapMs.toFixed(0)} ms`);
  }
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
