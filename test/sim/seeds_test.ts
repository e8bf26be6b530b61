/**
 * Many seeds through the simulator, in processes beside each other: fixed ones of every profile, so that a change that breaks
 * a rule is seen, and fresh ones, which are printed. `SIM_SEEDS`: fixed seeds of each profile, of the whole thing, of
 * membership alone and of spawning, of the whole thing with leases, where nothing excuses two, of callers from outside, and of
 * the whole thing with the gossip of large clusters (default `25,40,2,250,1,1`, about 1 750; `40,60,4,500,1,4` are 3 100);
 * `SIM_FRESH_SECONDS`: how long fresh ones run (default 30, 0 for none).
 * `npm run sim -- --seed N` runs and explains a single one.
 */
import { assertEquals, fail } from '@std/assert';
import process from 'node:process';
import { describe, test } from 'node:test';
import { profileNames } from '../../src/testkit/profiles.ts';
import { parallel, runSim } from './sim_process.ts';

const programs = ['singletons', 'membership', 'spawn', 'callers', 'singletons-large'] as const;
const counts = (process.env['SIM_SEEDS'] ?? '25,40,2,250,1,1').split(',').map(Number);
const freshSeconds = Number(process.env['SIM_FRESH_SECONDS'] ?? 30);

/** All slices are asked for at once; each test waits for its own. */
const slices = programs.flatMap((program) =>
  profileNames().flatMap((profile) => slicesOf(program, profile, countOf(program, profile)))
);

/** Membership alone has no leases, and is the same in their profiles as in `mixed`. */
function countOf(program: string, profile: string): number {
  const [whole = 0, membership = 0, spawn = 0, leased = 0, callers = 0, large = 0] = counts;
  if (program === 'singletons-large') return large;
  if (program === 'spawn') return spawn;
  if (program === 'membership') return profile.startsWith('lease') ? 0 : membership;
  // What leases add is between hosts and their backends, and has its seeds with members as senders.
  if (program === 'callers') return profile.startsWith('lease') ? 0 : callers;
  return profile === 'lease' ? leased : whole;
}

/** Few enough seeds that none of them takes minutes. */
function slicesOf(program: string, profile: string, count: number) {
  const size = 40;
  return Array.from({ length: Math.ceil(count / size) }, (_, index) => {
    const [from, to] = [index * size + 1, Math.min(count, (index + 1) * size)];
    return { program, profile, from, to };
  });
}

describe('fixed seeds', () => {
  let outcomes: readonly ReturnType<typeof runSim>[] | undefined;
  for (const [index, { program, profile, from, to }] of slices.entries()) {
    test(`R144, S1–S5: ${program}, ${profile}, seeds ${from} to ${to}`, async () => {
      outcomes ??= slices.map((slice) =>
        runSim('bun', [
          '--program',
          slice.program,
          '--profile',
          slice.profile,
          '--seeds',
          `${slice.from}..${slice.to}`,
          '--first-failure',
        ], 400_000)
      );
      const { exitCode, output } = await outcomes[index]!;
      if (exitCode !== 0) fail(`\n${output}`);
      assertEquals(output.match(/(\d+) runs, 0 failed/)?.[1], String(to - from + 1), output);
    });
  }
});

describe('fresh seeds', () => {
  test(`${freshSeconds} seconds of them`, { skip: freshSeconds === 0 }, async () => {
    const first = Math.floor(Math.random() * 2 ** 40);
    const minutes = String(freshSeconds / 60);
    const runs = Array.from({ length: parallel }, (_, job) =>
      runSim('bun', [
        '--minutes',
        minutes,
        '--first',
        String(first + job * 2 ** 30),
        '--program',
        ['singletons', 'spawn', 'membership', 'singletons-large'][job % 4]!,
      ], freshSeconds * 2_000 + 60_000));
    for (const { exitCode, output } of await Promise.all(runs)) {
      console.log(`fresh ${/seeds \d+\.\.\d+.*$/m.exec(output)?.[0] ?? output}`);
      if (exitCode !== 0) fail(`\n${output}`);
    }
  });
});
