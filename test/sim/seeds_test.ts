/**
 * Many seeds through the simulator. `SIM_SEEDS` chooses: a number (how many) or a range `A..B`; default 1 to 1000 for the
 * whole thing, 1 to 300 for membership alone. `npm run sim -- --seed N` runs and explains a single one.
 */
import { fail } from '@std/assert';
import process from 'node:process';
import { describe, test } from 'node:test';
import { profileNames } from '../../src/testkit/profiles.ts';
import type { Program } from '../../src/testkit/program.ts';
import { programNamed } from '../../src/testkit/programs.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { shrink } from '../../src/testkit/shrink.ts';
import { simulate } from '../../src/testkit/simulate.ts';

function chosenSeeds(text: string): [first: number, last: number] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range !== null) return [Number(range[1]), Number(range[2])];
  if (/^[1-9]\d*$/.test(text)) return [1, Number(text)];
  throw new RangeError(`SIM_SEEDS = ${text}: must be a number or a range such as 1..60`);
}

const defaults: Readonly<Record<string, string>> = { singletons: '1000', membership: '300' };
/** Seeds of one test, so that none of them takes minutes. */
const chunk = 36;

for (const [name, count] of Object.entries(defaults)) {
  const program = programNamed(name);
  const [first, last] = chosenSeeds(process.env['SIM_SEEDS'] ?? count);
  const seeds = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  describe(`${name}, seeds ${first} to ${last}`, () => {
    for (const [turn, profile] of profileNames().entries()) {
      const mine = seeds.filter((seed) => seed % profileNames().length === turn);
      for (let start = 0; start < mine.length; start += chunk) {
        const part = mine.slice(start, start + chunk);
        test(`R144, S1–S5: ${profile}, ${part.length} seeds from ${part[0]}`, () => runAll(program, profile, part));
      }
    }
  });
}

async function runAll(program: Program, profile: string, seeds: readonly number[]): Promise<void> {
  for (const seed of seeds) {
    const result = await simulate({ seed, program, profile });
    if (result.failure === undefined) continue;
    const shrunk = await shrink(result, program, 60);
    fail(`\n${formatReport(shrunk.result)}`);
  }
}
