/** How fast the simulator is: whole nodes on a virtual clock, their rules checked after every step. */
import process from 'node:process';
import { programNamed, programNames } from '../src/testkit/programs.ts';
import { simulate } from '../src/testkit/simulate.ts';
import { check, emit, now, repeat } from './measure.ts';

const seeds = 20;
const program = programNamed(programNames()[0]!);

emit(
  await repeat('simulated steps, rules checked after each', 'steps/s', 5, async () => {
    let steps = 0;
    let passed = 0;
    const began = now();
    for (let seed = 1; seed <= seeds; seed += 1) {
      const result = await simulate({ seed, program });
      steps += result.steps;
      if (result.failure === undefined) passed += 1;
    }
    check(passed, seeds, 'simulated runs that keep all rules');
    return steps / (now() - began) * 1_000;
  }),
);
process.exit(0);
