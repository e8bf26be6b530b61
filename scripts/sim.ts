/**
 * The simulator at the command line:
 *
 *     npm run sim -- --seed 42                       one run, with its report
 *     npm run sim -- --seeds 1..1000                 many runs; a failing one is shrunk and reported
 *     npm run sim -- --minutes 10 --first 5000       seeds from there on until the time is up
 *     npm run sim -- --seeds 1..60 --hashes          one line per run: to compare runtimes
 *
 * Options: --profile NAME (default: the profiles take turns), --program NAME, --nodes N, --seconds S (length of the fault
 * phase), --faults 0,3 (only these of the drawn faults), --first-failure (no more runs after one that failed), --no-shrink,
 * --verbose (every event). Exit code 0: all passed; 1: a rule was broken; 2: bad usage.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { profileNamed, profileNames } from '../src/testkit/profiles.ts';
import type { Program } from '../src/testkit/program.ts';
import { programNamed, programNames } from '../src/testkit/programs.ts';
import { formatReport } from '../src/testkit/report.ts';
import { shrink } from '../src/testkit/shrink.ts';
import { simulate, type SimulationResult } from '../src/testkit/simulate.ts';
import { formatEntry } from '../src/testkit/trace.ts';

interface Choice {
  readonly first: number;
  readonly last: number;
  readonly minutes: number | undefined;
  readonly profile: string | undefined;
  readonly program: Program;
  readonly nodes: number | undefined;
  readonly until: number | undefined;
  readonly keep: readonly number[] | undefined;
  readonly hashes: boolean;
  readonly firstFailure: boolean;
  readonly shrink: boolean;
  readonly verbose: boolean;
}

class UsageError extends Error {}

function readChoice(): Choice {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      minutes: { type: 'string' },
      first: { type: 'string', default: '1' },
      profile: { type: 'string' },
      program: { type: 'string', default: programNames()[0] ?? '' },
      nodes: { type: 'string' },
      seconds: { type: 'string' },
      faults: { type: 'string' },
      hashes: { type: 'boolean', default: false },
      'first-failure': { type: 'boolean', default: false },
      'no-shrink': { type: 'boolean', default: false },
      verbose: { type: 'boolean', default: false },
    },
  });
  const minutes = numberOf('minutes', values.minutes);
  const [first, last] = readSeeds(values.seed, values.seeds, minutes, numberOf('first', values.first) ?? 1);
  const seconds = numberOf('seconds', values.seconds);
  if (values.profile !== undefined) profileNamed(values.profile);
  return {
    first,
    last,
    minutes,
    profile: values.profile,
    program: programNamed(values.program),
    nodes: numberOf('nodes', values.nodes),
    until: seconds === undefined ? undefined : seconds * 1_000,
    keep: readFaults(values.faults),
    hashes: values.hashes,
    firstFailure: values['first-failure'],
    shrink: !values['no-shrink'],
    verbose: values.verbose,
  };
}

function readSeeds(
  seed: string | undefined,
  seeds: string | undefined,
  minutes: number | undefined,
  first: number,
): [number, number] {
  if (seed !== undefined) {
    const only = numberOf('seed', seed) ?? 1;
    return [only, only];
  }
  if (seeds !== undefined) {
    const range = /^(\d+)\.\.(\d+)$/.exec(seeds);
    if (range === null || Number(range[1]) > Number(range[2])) throw new UsageError(`--seeds ${seeds}: expected A..B`);
    return [Number(range[1]), Number(range[2])];
  }
  return minutes === undefined ? [1, profileNames().length] : [first, Number.MAX_SAFE_INTEGER];
}

function readFaults(text: string | undefined): number[] | undefined {
  if (text === undefined) return undefined;
  return text === 'none' ? [] : text.split(',').map((part) => numberOf('faults', part) ?? 0);
}

function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!(value >= 0) || text.trim() === '') throw new UsageError(`--${option} ${text}: expected a number of at least 0`);
  return value;
}

/** Without a choice, the profiles take turns with the seed. */
function profileOf(choice: Choice, seed: number): string {
  const names = profileNames();
  return choice.profile ?? names[seed % names.length] ?? 'mixed';
}

async function runOne(choice: Choice, seed: number): Promise<SimulationResult> {
  const result = await simulate({
    seed,
    program: choice.program,
    profile: profileOf(choice, seed),
    ...(choice.nodes === undefined ? {} : { nodes: choice.nodes }),
    ...(choice.until === undefined ? {} : { until: choice.until }),
    ...(choice.keep === undefined ? {} : { keep: choice.keep }),
    ...(choice.verbose ? { onTrace: (entry) => console.log(formatEntry(entry)) } : {}),
  });
  if (choice.hashes) {
    console.log(`${seed} ${result.plan.profile.name} ${result.hash} ${result.failure?.rule ?? 'ok'}`);
  } else if (result.failure !== undefined) {
    await reportFailure(choice, result);
  } else if (choice.first === choice.last) {
    console.log(formatReport(result));
    console.log(`  settled ${Math.round(result.settledAfterMs ?? NaN)} ms after the last fault`);
    for (const [name, value] of Object.entries(result.statistics)) console.log(`  ${name}: ${value}`);
  }
  return result;
}

async function reportFailure(choice: Choice, result: SimulationResult): Promise<void> {
  if (!choice.shrink) {
    console.log(formatReport(result));
    return;
  }
  const shrunk = await shrink(result, choice.program);
  console.log(formatReport(shrunk.result));
  console.log(`  (shrunk from ${result.plan.faults.length} faults in ${shrunk.runs} runs)\n`);
}

async function main(): Promise<number> {
  const choice = readChoice();
  const started = performance.now();
  const failed: number[] = [];
  let runs = 0;
  let steps = 0;
  let worst = 0;
  for (let seed = choice.first; seed <= choice.last; seed++) {
    if (choice.minutes !== undefined && performance.now() - started > choice.minutes * 60_000) break;
    const result = await runOne(choice, seed);
    runs++;
    steps += result.steps;
    worst = Math.max(worst, result.settledAfterMs ?? 0);
    if (result.failure !== undefined) failed.push(seed);
    if (choice.firstFailure && failed.length > 0) break;
  }
  if (!choice.hashes) {
    const seconds = (performance.now() - started) / 1_000;
    const range = `seeds ${choice.first}..${choice.first + runs - 1} of ${choice.program.name}`;
    console.log(
      `${range}: ${runs} runs, ${failed.length} failed${failed.length > 0 ? ` (seeds ${failed.join(', ')})` : ''}; ` +
        `${Math.round(steps / seconds)} steps/s, slowest to settle ${Math.round(worst)} ms, ${seconds.toFixed(1)} s`,
    );
  }
  return failed.length > 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof UsageError || error instanceof RangeError ? error.message : error);
  process.exitCode = 2;
}
