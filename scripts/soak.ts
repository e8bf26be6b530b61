/**
 * `npm run soak`: real processes on mixed runtimes, under load, for as long as it takes.
 *
 *     npm run soak -- --what moves --rounds 1000     planned moves: 0 lost, 0 doubled, 0 reordered
 *     npm run soak -- --what kills --rounds 50       SIGKILLs of the host: every message accounted, 0 doubled
 *     npm run soak -- --what churn --rounds 200      leaves, kills and joins: never two, says a registry outside
 *     npm run soak -- --what journal-kills --rounds 1500   SIGKILLs of writers of a file journal: what was acknowledged is there
 *     npm run soak -- --what load --minutes 10 --runtime bun       one node, 1000 idle connections, 50000 messages/s: 0 lost,
 *                                                              memory flat (its slope is printed)
 *
 * Options: --what a,b (default: the first three), --rounds N (default 1000, 50, 200 and 1500), --rate N (messages a second, all senders
 * together), --runtime mix|bun|deno|node, --seed N, --minutes N and --connections N (load, default 10
 * and 1000), --gap MS (bound on the 99th percentile of the gaps of planned moves,
 * default 250), --verbose (everything that is done and seen). Exit code 0: every promise held; 1: one was broken; 2: bad usage.
 */
import process from 'node:process';
import type { RuntimeName } from '../demo/runtime_commands.ts';
import { flood } from '../test/soak/flood.ts';
import { journalKills } from '../test/soak/journal_kills.ts';
import { soak, type TestName, tests } from '../test/soak/rounds.ts';
import { readOptions } from './testing/options.ts';

const defaults: Readonly<Record<TestName, { readonly rounds: number; readonly rate: number }>> = {
  moves: { rounds: 1_000, rate: 12_000 },
  kills: { rounds: 50, rate: 12_000 },
  churn: { rounds: 200, rate: 1_500 },
};
const journalTest = 'journal-kills';
const journalRounds = 1_500;
const loadTest = 'load';
const loadRate = 50_000;
const allRuntimes: readonly RuntimeName[] = ['bun', 'deno', 'node'];

class UsageError extends Error {}

function readChoice() {
  const values = readOptions('soak', {
    what: { type: 'string', default: tests.join(',') },
    rounds: { type: 'string' },
    rate: { type: 'string' },
    runtime: { type: 'string', default: 'mix' },
    seed: { type: 'string' },
    gap: { type: 'string', default: '250' },
    verbose: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' },
    connections: { type: 'string', default: '1000' },
  });
  const what = values.what.split(',').map((name) => {
    const test = [...tests, journalTest, loadTest].find((candidate) => candidate === name);
    if (test === undefined) {
      throw new UsageError(`--what ${name}: expected one of ${[...tests, journalTest, loadTest].join(', ')}`);
    }
    return test as TestName | typeof journalTest | typeof loadTest;
  });
  const only = allRuntimes.filter((name) => name === values.runtime);
  if (only.length === 0 && values.runtime !== 'mix') {
    throw new UsageError(`--runtime ${values.runtime}: expected mix, ${allRuntimes.join(', ')}`);
  }
  return {
    what,
    runtimes: only.length === 0 ? allRuntimes : [only[0]!, only[0]!, only[0]!],
    rounds: numberOf('rounds', values.rounds),
    rate: numberOf('rate', values.rate),
    seed: numberOf('seed', values.seed) ?? Math.floor(Math.random() * 2 ** 31),
    gapMs: numberOf('gap', values.gap)!,
    minutes: positive('minutes', values.minutes),
    connections: numberOf('connections', values.connections)!,
    verbose: values.verbose,
  };
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`--${option} ${text}: expected a number above 0`);
  return value;
}

/** How many promises were broken. */
async function load(
  options: { runtimes: readonly RuntimeName[]; rate: number; minutes: number; connections: number },
): Promise<number> {
  let broken = 0;
  for (const runtime of new Set(options.runtimes)) {
    console.log(`${loadTest}: ${runtime}, ${options.connections} connections, ${options.rate} messages/s`);
    const result = await flood({ ...options, runtime, say: (text) => console.log(`  ${text}`) });
    console.log(['', ...result.lines, ''].join('\n'));
    for (const text of result.broken) console.log(`BROKEN  ${text}`);
    broken += result.broken.length;
  }
  return broken;
}

function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!(value >= 1)) throw new UsageError(`--${option} ${text}: expected a number of at least 1`);
  return value;
}

/** How many promises were broken. */
async function journals(options: { rounds: number; runtimes: readonly RuntimeName[]; seed: number }): Promise<number> {
  console.log(`${journalTest}: ${options.rounds} kills, seed ${options.seed}`);
  const { kills, acknowledged, early, broken } = await journalKills({
    ...options,
    say: (text) => console.log(`  ${text}`),
  });
  const by = Object.entries(kills).map(([runtime, count]) => `${runtime} ${count}`).join(', ');
  console.log(`\nkills: ${by}; ${early} before the first acknowledgement; ${acknowledged} appends acknowledged\n`);
  for (const text of broken) console.log(`BROKEN  ${text}`);
  return broken.length;
}

async function main(): Promise<number> {
  const { what, runtimes, rounds, rate, seed, gapMs, verbose, minutes, connections } = readChoice();
  let broken = 0;
  for (const test of what) {
    if (test === loadTest) {
      broken += await load({ runtimes, rate: rate ?? loadRate, minutes, connections });
      continue;
    }
    if (test === journalTest) {
      broken += await journals({ rounds: rounds ?? journalRounds, runtimes: [...new Set(runtimes)], seed });
      continue;
    }
    const chosen = { rounds: rounds ?? defaults[test].rounds, rate: rate ?? defaults[test].rate };
    console.log(`${test}: ${chosen.rounds} rounds, ${chosen.rate} messages/s, seed ${seed}`);
    try {
      const say = (text: string) => console.log(`  ${text}`);
      const trace = (text: string) => console.log(`  ${(performance.now() / 1_000).toFixed(3)} ${text}`);
      const warmUpMs = 3_000;
      const result = await soak(test, {
        warmUpMs,
        ...chosen,
        seed,
        runtimes,
        gapMs,
        say,
        ...(verbose ? { trace } : {}),
      });
      console.log(['', ...result.lines, ''].join('\n'));
      for (const text of result.broken) console.log(`BROKEN  ${text}`);
      broken += result.broken.length;
    } catch (error) {
      console.log(`BROKEN  ${error instanceof Error ? error.message : error}`);
      broken += 1;
    }
  }
  console.log(broken === 0 ? 'Every promise held.' : `${broken} promises broken.`);
  return broken === 0 ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  process.exit(2);
}
