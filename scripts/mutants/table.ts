/** What the mutation check found, as the table of docs/testing.md. */
import { rules } from './list.ts';
import type { Mutant } from './mutant.ts';

export interface Finding {
  readonly name: string;
  /** The invariant that broke. */
  readonly found: string;
  readonly profile: string;
  readonly seed: number;
  /** Runs up to and with the one that failed. */
  readonly needed: number;
}

const begin = '<!-- mutants: written by npm run mutants -- --write -->';
const end = '<!-- end of mutants -->';

export function tableOf(mutants: readonly Mutant[], findings: ReadonlyMap<string, Finding>): string {
  const rows = mutants.map(({ name, rule, what }) => {
    const finding = findings.get(name);
    const place = `${rules[rule] ?? rule}`;
    if (finding === undefined) return `| \`${name}\` | ${place} | ${what} | not found | | |`;
    const { found, profile, seed, needed } = finding;
    return `| \`${name}\` | ${place} | ${what} | ${found} | \`${profile}\`, ${seed} | ${needed} |`;
  });
  return [
    '| Fault | Rule | What is wrong | Found by | Profile, seed | Runs |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** @throws Error when the page has no place for the table. */
export function withTable(page: string, table: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`docs/testing.md: the lines ${begin} and ${end} are missing`);
  return `${page.slice(0, from + begin.length)}\n\n${table}\n\n${page.slice(to)}`;
}
