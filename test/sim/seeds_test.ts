/**
 * Many seeds through the simulator, in processes beside each other: fixed ones of every profile, so that a change that breaks
 * a rule is seen, and fresh ones, which are printed. `SIM_SEEDS`: fixed seeds of each profile, of the whole thing, of
 * membership alone, of spawning, of the whole thing with leases, where nothing excuses two, of callers from outside, and of
 * the whole thing with the gossip of large clusters (default `20,80,2,500,1,2`, more than 3 000, of which one in five runs its
 * profile's whole fault phase); `SIM_FRESH_SECONDS`: how long fresh ones run (default 60, 0 for none).
 * `npm run sim -- --seed N` runs and explains a single one.
 */
import { assertEquals, fail } from '@std/assert';
import process from 'node:process';
import { describe, test } from 'node:test';
import { seedGroups } from './fixed_seeds.ts';
import type { SimJob } from './sim_job.ts';
import { type SimOutcome, SimPool } from './sim_pool.ts';
import { parallel } from './sim_process.ts';

const [singletons = 0, membership = 0, spawn = 0, lease = 0, callers = 0, large = 0] =
  (process.env['SIM_SEEDS'] ?? '20,80,2,500,1,2').split(',').map(Number);
const freshSeconds = Number(process.env['SIM_FRESH_SECONDS'] ?? 60);

const groups = seedGroups({ singletons, membership, spawn, lease, callers, 'singletons-large': large });
const pool = new SimPool();

function check(job: SimJob, { answer, output }: SimOutcome): void {
  if (answer === undefined || answer.failed !== undefined) fail(`\n${job.program}: ${output}`);
  assertEquals(answer.runs, job.to - job.from + 1);
}

describe('fixed seeds', () => {
  /** All are asked for at once; each test waits for its own. */
  let outcomes: ReadonlyMap<SimJob, Promise<SimOutcome>> | undefined;
  for (const { program, profile, seeds, jobs } of groups) {
    test(`R144, S1–S5: ${program}, ${profile}, ${seeds} seeds`, async () => {
      outcomes ??= new Map(groups.flatMap((group) => group.jobs.map((job) => [job, pool.run(job)])));
      for (const job of jobs) check(job, await outcomes.get(job)!);
    });
  }
});

describe('fresh seeds', () => {
  test(`${freshSeconds} seconds of them`, { skip: freshSeconds === 0 }, async () => {
    const base = Math.floor(Math.random() * 9e8);
    const chunk = 4;
    const programs = ['singletons', 'membership', 'singletons', 'spawn', 'callers'];
    const seeds = new Map(programs.map((program) => [program, 0]));
    const endsAt = performance.now() + freshSeconds * 1_000;
    let turn = 0;
    const work = async (): Promise<void> => {
      while (performance.now() < endsAt) {
        const program = programs[turn++ % programs.length]!;
        const from = base + seeds.get(program)!;
        seeds.set(program, seeds.get(program)! + chunk);
        const job = { program, from, to: from + chunk - 1 };
        check(job, await pool.run(job));
      }
    };
    try {
      await Promise.all(Array.from({ length: parallel }, work));
    } finally {
      for (const [program, count] of seeds) {
        if (count === 0) continue;
        console.log(`fresh: --program ${program} --seeds ${base}..${base + count - 1} (${count} runs)`);
      }
    }
  });
});
