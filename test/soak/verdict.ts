/** What was told against what was handled: per sender, over every instance there was. Pure. */
import type { SenderReport } from './load.ts';

export interface Account {
  readonly sender: number;
  readonly told: number;
  readonly acknowledged: number;
  /** Dead letters but those of unknown outcome. */
  readonly deadLettered: number;
  readonly outcomeUnknown: number;
  readonly buffered: number;
  /** Different numbers handled. */
  readonly handled: number;
  /** Neither handled nor reported to anyone. */
  readonly lost: number;
  /** Handled again. */
  readonly doubled: number;
  /** Handled after a higher number. */
  readonly reordered: number;
  /** Told less acknowledged, dead letters and buffered: 0. */
  readonly unaccounted: number;
}

/** The journals of all instances in the order of their epochs, each a list of pairs: sender, number. */
export function accounts(reports: readonly SenderReport[], journals: readonly Uint32Array[]): Account[] {
  const handled = new Map(reports.map(({ sender, numbered }) => [sender, new Handled(numbered)]));
  for (const journal of journals) {
    for (let at = 0; at + 1 < journal.length; at += 2) handled.get(journal[at]!)?.note(journal[at + 1]!);
  }
  return reports.map((report) => accountOf(report, handled.get(report.sender)!));
}

class Handled {
  readonly seen: Uint8Array;
  count = 0;
  doubled = 0;
  reordered = 0;
  #last = 0;

  constructor(numbered: number) {
    this.seen = new Uint8Array(numbered + 1);
  }

  note(n: number): void {
    if (this.seen[n] === 1) {
      this.doubled += 1;
      return;
    }
    this.seen[n] = 1;
    this.count += 1;
    if (n < this.#last) this.reordered += 1;
    this.#last = Math.max(this.#last, n);
  }
}

function accountOf({ sender, numbered, counters, dead }: SenderReport, handled: Handled): Account {
  const { told, acknowledged, deadLettered, outcomeUnknown, buffered } = counters;
  const reported = new Uint8Array(numbered + 1);
  for (const { from, to } of dead) reported.fill(1, from, to + 1);
  let lost = 0;
  for (let n = 1; n <= numbered; n += 1) if (handled.seen[n] === 0 && reported[n] === 0) lost += 1;
  return {
    sender,
    told,
    acknowledged,
    deadLettered,
    outcomeUnknown,
    buffered,
    handled: handled.count,
    lost: Math.max(0, lost - buffered),
    doubled: handled.doubled,
    reordered: handled.reordered,
    unaccounted: Math.abs(told - acknowledged - deadLettered - outcomeUnknown - buffered) + Math.abs(told - numbered),
  };
}

/** What is wrong with these accounts; `dead`: whether dead letters of unknown outcome may be among them. */
export function brokenAccounts(all: readonly Account[], dead: 'none' | 'outcome-unknown'): string[] {
  const broken: string[] = [];
  for (const account of all) {
    const { sender, told, acknowledged, handled, outcomeUnknown } = account;
    const check = (count: number, text: string): void => {
      if (count !== 0) broken.push(`sender ${sender}: ${count} ${text}`);
    };
    check(account.lost, 'lost');
    check(account.doubled, 'doubled');
    check(account.reordered, 'reordered');
    check(account.unaccounted, 'unaccounted for');
    check(account.buffered, 'still buffered at the end');
    check(account.deadLettered, 'dead letters for which there was no reason');
    if (dead === 'none') check(outcomeUnknown, 'of unknown outcome although nothing crashed');
    if (told === 0) broken.push(`sender ${sender}: told nothing`);
    // What is acknowledged was handled; what was handled is acknowledged or of unknown outcome.
    if (handled < acknowledged || handled > acknowledged + outcomeUnknown) {
      broken.push(`sender ${sender}: ${handled} handled, ${acknowledged} acknowledged, ${outcomeUnknown} unknown`);
    }
  }
  return broken;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Columns of equal width, the first to the left, with a line under the head. */
export function table(rows: readonly (readonly (string | number)[])[]): string[] {
  const texts = rows.map((row) => row.map(String));
  const widths = texts[0]!.map((_, column) => Math.max(...texts.map((row) => row[column]!.length)));
  const lines = texts.map((row) =>
    row.map((cell, column) => column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)).join('  ')
  );
  return [lines[0]!, '-'.repeat(lines[0]!.length), ...lines.slice(1)];
}
