/**
 * A process that runs simulations for as long as it is told to. Each line on its standard input is a `SimJob`; it prints
 * whatever there is to say about it, and then a line of `done` and a `SimAnswer`. One process for many seeds: what a runtime
 * learns about the code in the first hundred runs is worth a third of the time of the others.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';
import { profileNames } from '../../src/testkit/profiles.ts';
import { programNamed } from '../../src/testkit/programs.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { shrink } from '../../src/testkit/shrink.ts';
import { simulate } from '../../src/testkit/simulate.ts';
import { done, type SimAnswer, type SimJob } from './sim_job.ts';

async function work({ program, profile, from, to, faultMs }: SimJob): Promise<SimAnswer> {
  const chosen = programNamed(program);
  const profiles = profileNames();
  const started = performance.now();
  let steps = 0;
  for (let seed = from; seed <= to; seed++) {
    const result = await simulate({
      seed,
      program: chosen,
      profile: profile ?? profiles[seed % profiles.length] ?? 'mixed',
      ...(faultMs === undefined ? {} : { until: faultMs }),
    });
    steps += result.steps;
    if (result.failure === undefined) continue;
    const shrunk = await shrink(result, chosen);
    console.log(formatReport(shrunk.result));
    return { runs: seed - from + 1, failed: seed, steps, ms: performance.now() - started };
  }
  return { runs: to - from + 1, steps, ms: performance.now() - started };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(`${done}${JSON.stringify(await work(JSON.parse(line) as SimJob))}`);
}
