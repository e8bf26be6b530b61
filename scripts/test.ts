/**
 * `npm test`: everything that must hold, in parts. The last line is always `N passed, N failed, N skipped`.
 *
 *     npm test -- --only unit,tidy --runtime bun,node --path test/actor --verbose
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { addCounts, type Counts, describeCounts, noCounts, readCounts, readSkipReasons } from './testing/counts.ts';
import type { RuntimeName } from './testing/counts.ts';
import { listFiles, root } from './testing/files.ts';
import { type Choice, listParts, type Part, partNames } from './testing/parts.ts';
import { run } from './testing/run.ts';

interface Result {
  readonly part: Part;
  readonly counts: Counts;
  readonly seconds: number;
}

function readChoice(): Choice & { verbose: boolean } {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      runtime: { type: 'string', default: '' },
      path: { type: 'string', default: '' },
      verbose: { type: 'boolean', default: false },
    },
  });
  const split = (text: string, allowed: readonly string[], option: string) => {
    const items = text.split(',').filter((item) => item !== '');
    const wrong = items.find((item) => !allowed.includes(item));
    if (wrong !== undefined) throw new Error(`--${option} ${wrong}: expected one of ${allowed.join(', ')}`);
    return items;
  };
  return {
    only: split(values.only, partNames, 'only'),
    runtimes: split(values.runtime, ['bun', 'deno', 'node'], 'runtime') as RuntimeName[],
    path: values.path,
    verbose: values.verbose,
  };
}

function missingPrograms(): string[] {
  return ['bun', 'deno', 'tsc'].filter((name) => !existsSync(`${root}/node_modules/.bin/${name}`));
}

async function runPart(part: Part, verbose: boolean, reasons: Map<string, number>): Promise<Result> {
  if (part.skip !== undefined) {
    reasons.set(part.skip, (reasons.get(part.skip) ?? 0) + 1);
    return { part, counts: { ...noCounts, skipped: 1 }, seconds: 0 };
  }
  const outcome = await run(part.command, { timeoutMs: part.timeoutMs, echo: verbose });
  const counts = part.runtime === undefined
    ? { ...noCounts, [outcome.exitCode === 0 ? 'passed' : 'failed']: 1 }
    : readCounts(part.runtime, outcome.output, outcome.exitCode);
  if (counts.failed > 0 && !verbose) console.log(outcome.output.trimEnd());
  if (counts.failed > 0 && counts.passed + counts.skipped === 0 && part.runtime !== undefined) {
    console.log(`${part.title}: the runner ran no test, or broke off before its summary (exit ${outcome.exitCode}).`);
  }
  if (part.runtime === 'node') {
    for (const [reason, count] of readSkipReasons(outcome.output)) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + count);
    }
  }
  return { part, counts, seconds: outcome.seconds };
}

/** Most runners use one core, and wait now and then. */
const atOnce = Math.min(3, availableParallelism() + 1);

/** Parts in a row that may run beside each other; every other one is a group of its own. */
function groupsOf(parts: readonly Part[]): Part[][] {
  const groups: Part[][] = [];
  for (const part of parts) {
    const last = groups.at(-1);
    if (part.together && last?.[0]?.together === true) last.push(part);
    else groups.push([part]);
  }
  return groups;
}

function printResult(result: Result): void {
  const mark = result.counts.failed > 0 ? 'FAIL' : 'ok  ';
  console.log(
    `${mark} ${result.part.title.padEnd(36)} ${describeCounts(result.counts)} (${result.seconds.toFixed(1)} s)`,
  );
}

async function main(): Promise<number> {
  const choice = readChoice();
  const missing = missingPrograms();
  if (missing.length > 0) throw new Error(`${missing.join(', ')} not in node_modules: run \`npm i\` first`);
  const parts = listParts(
    { bin: (name) => `${root}/node_modules/.bin/${name}`, node: process.execPath, files: listFiles() },
    choice,
  );
  const reasons = new Map<string, number>();
  const results: Result[] = [];
  for (const group of groupsOf(parts)) {
    const waiting = [...group];
    const work = async (): Promise<void> => {
      for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
        const result = await runPart(part, choice.verbose, reasons);
        results.push(result);
        printResult(result);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }
  const failed = results.filter((result) => result.counts.failed > 0);
  if (failed.length > 0) {
    console.log('\nFailed parts:');
    failed.forEach(printResult);
  }
  if (reasons.size > 0) {
    console.log('\nSkipped, because:');
    for (const [reason, count] of reasons) console.log(`  ${reason} (${count})`);
  }
  const total = results.map((result) => result.counts).reduce(addCounts, noCounts);
  console.log(`\n${describeCounts(total)}`);
  return total.failed > 0 || total.passed === 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  console.log(`\n${describeCounts({ passed: 0, failed: 1, skipped: 0 })}`);
  process.exitCode = 1;
}
