/**
 * The mutation check: does the simulator find deliberate faults? Each patch is applied to a copy of the sources, in which
 * seeds run until an invariant breaks.
 *
 *     npm run mutants                               all of them (half an hour or more)
 *     npm run mutants -- --only gate,lease          those whose name contains one of these
 *     npm run mutants -- --rule 9 --seeds 500
 *     npm run mutants -- --write                    the table goes into docs/testing.md
 *
 * Options: --seeds N (default 2000 for each), --jobs N (default: processors), --results FILE (keeps what was found, and goes on
 * from there), --write. Exit code 0: every fault was found; 1: one survived; 2: bad usage.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { mutants } from './mutants/list.ts';
import { type Mutant, mutated } from './mutants/mutant.ts';
import { type Finding, tableOf, withTable } from './mutants/table.ts';
import { root } from './testing/files.ts';
import { run } from './testing/run.ts';
import { readOptions } from './testing/options.ts';

interface Choice {
  readonly chosen: readonly Mutant[];
  readonly seeds: number;
  readonly jobs: number;
  readonly results: string | undefined;
  readonly write: boolean;
}

function readChoice(): Choice {
  const values = readOptions('mutants', {
    only: { type: 'string', default: '' },
    rule: { type: 'string' },
    seeds: { type: 'string', default: '2000' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    results: { type: 'string' },
    write: { type: 'boolean', default: false },
  });
  const count = (option: string, text: string): number => {
    if (!/^[1-9]\d*$/.test(text)) throw new RangeError(`--${option} ${text}: expected a number of at least 1`);
    return Number(text);
  };
  const parts = values.only.split(',');
  const rule = values.rule === undefined ? undefined : count('rule', values.rule);
  const chosen = mutants.filter((mutant) =>
    (rule === undefined || mutant.rule === rule) && parts.some((part) => mutant.name.includes(part))
  );
  if (chosen.length === 0) throw new RangeError('no mutant has such a name and rule');
  const { results, write } = values;
  return { chosen, seeds: count('seeds', values.seeds), jobs: count('jobs', values.jobs), results, write };
}

/** The sources with one fault in them, in a directory of their own. */
function planted(mutant: Mutant): string {
  const copy = mkdtempSync(join(tmpdir(), 'singlet-mutant-'));
  for (const part of ['src', 'adapters', 'cli', 'package.json']) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  writeFileSync(join(copy, mutant.file), mutated(mutant, readFileSync(join(root, mutant.file), 'utf8')));
  return copy;
}

/** Runs seeds until one fails; undefined when none of them does. */
async function search(mutant: Mutant, seeds: number): Promise<Finding | undefined> {
  const copy = planted(mutant);
  try {
    const each = mutant.profiles === undefined ? [undefined] : mutant.profiles;
    let before = 0;
    for (const profile of each) {
      const share = Math.floor(seeds / each.length);
      const command = [join(root, 'node_modules/.bin/bun'), join(copy, 'cli/singlet.ts'), 'sim'];
      command.push('--seeds', `1..${share}`, '--hashes', '--first-failure');
      if (mutant.program !== undefined) command.push('--program', mutant.program);
      if (profile !== undefined) command.push('--profile', profile);
      const { output, exitCode } = await run(command, { timeoutMs: 3_600_000, echo: false });
      const lines = output.split('\n').filter((line) => /^\d+ \S+ [0-9a-f]{16} /.test(line));
      const failed = lines.find((line) => !line.endsWith(' ok'));
      if (failed !== undefined) {
        const [seed = '', in_ = '', , found = ''] = failed.split(' ');
        return { name: mutant.name, found, profile: in_, seed: Number(seed), needed: before + lines.length };
      }
      if (exitCode !== 0) throw new Error(`mutant ${mutant.name} does not run:\n${output.slice(-2_000)}`);
      before += lines.length;
    }
    return undefined;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function readResults(file: string | undefined): Map<string, Finding> {
  if (file === undefined || !existsSync(file)) return new Map();
  const known = JSON.parse(readFileSync(file, 'utf8')) as Finding[];
  return new Map(known.map((finding) => [finding.name, finding]));
}

async function main(): Promise<number> {
  const choice = readChoice();
  const findings = readResults(choice.results);
  const waiting = choice.chosen.filter((mutant) => !findings.has(mutant.name));
  const survivors: string[] = [];
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const started = performance.now();
      const finding = await search(mutant, choice.seeds);
      const seconds = ((performance.now() - started) / 1_000).toFixed(0);
      const result = finding === undefined
        ? 'SURVIVES'
        : `${finding.found} in ${finding.profile}, seed ${finding.seed} (${finding.needed} runs)`;
      console.log(`${mutant.name.padEnd(36)} rule ${String(mutant.rule).padEnd(2)} ${result}, ${seconds} s`);
      if (finding === undefined) survivors.push(mutant.name);
      else findings.set(mutant.name, finding);
      if (choice.results !== undefined) writeFileSync(choice.results, JSON.stringify([...findings.values()], null, 1));
    }
  };
  await Promise.all(Array.from({ length: choice.jobs }, work));
  if (choice.write) {
    const page = join(root, 'docs/testing.md');
    writeFileSync(page, withTable(readFileSync(page, 'utf8'), tableOf(mutants, findings)));
  }
  console.log(`${choice.chosen.length - survivors.length} found, ${survivors.length} survive ${survivors.join(', ')}`);
  return survivors.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
