import { assert, assertEquals, assertExists, assertLessOrEqual, assertStringIncludes } from '@std/assert';
import { describe, test } from 'node:test';
import { profileNames } from '../../src/testkit/profiles.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { shrink } from '../../src/testkit/shrink.ts';
import { drawPlan, simulate, type SimulationResult } from '../../src/testkit/simulate.ts';
import type { Program } from '../../src/testkit/program.ts';
import { SimulationError } from '../../src/testkit/sim_world.ts';
import { toyProgram } from './toy_program.ts';

async function firstFailure(rule: string): Promise<SimulationResult> {
  for (let seed = 1; seed < 40; seed++) {
    const result = await simulate({ seed, program: toyProgram, profile: 'partition', until: 60_000 });
    if (result.failure?.rule === rule) return result;
  }
  throw new Error(`no seed broke ${rule}`);
}

describe('simulate', () => {
  test('equal seeds give equal hashes, other seeds other ones', async () => {
    const run = (seed: number) => simulate({ seed, program: toyProgram, profile: 'links', until: 20_000 });
    const first = await run(7);
    const second = await run(7);
    const other = await run(8);
    assertEquals(second.hash, first.hash);
    assertEquals(second.steps, first.steps);
    assert(other.hash !== first.hash);
  });

  test('without faults the toy protocol settles on one host', async () => {
    const result = await simulate({ seed: 3, program: toyProgram, profile: 'calm', nodes: 4 });
    assertEquals(result.failure, undefined);
    assertExists(result.settledAfterMs);
  });

  test('a rule that is found broken by the last checks fails the run', async () => {
    const program: Program = {
      name: 'late',
      create: (context) => {
        const run = toyProgram.create(context);
        return new Proxy(run, {
          get: (target, key) => {
            if (key === 'finish') {
              return () => context.world.fail(new SimulationError('late', 'the books do not balance'));
            }
            const value = Reflect.get(target, key) as unknown;
            return typeof value === 'function' ? value.bind(target) : value;
          },
        });
      },
    };
    const { failure } = await simulate({ seed: 3, program, profile: 'calm', nodes: 4 });
    assertEquals([failure?.rule, failure?.message], ['late', 'late: the books do not balance']);
  });

  test('the planted bug is found, shrunk to one cut and replayed exactly', async () => {
    const failing = await firstFailure('S1');
    const shrunk = await shrink(failing, toyProgram);
    assertLessOrEqual(shrunk.result.plan.faults.length, 2);
    assertEquals(shrunk.result.plan.faults.some((fault) => fault.kind === 'cut'), true);
    const again = await simulate({ seed: failing.plan.seed, program: toyProgram, profile: 'partition', until: 60_000 });
    assertEquals(again.hash, failing.hash);
    assertEquals(again.failure, failing.failure);
  });

  test('the report names seed, rule, faults and the last events per node', async () => {
    const failing = await firstFailure('S1');
    const report = formatReport(failing);
    assertStringIncludes(report, `seed ${failing.plan.seed}`);
    assertStringIncludes(report, 'S1: ');
    assertStringIncludes(report, ' cut ');
    assertStringIncludes(report, 'last events of n1');
  });

  test("the report says how to run it again, with the length of its fault phase where that is not the profile's", async () => {
    const failing = await firstFailure('S1');
    const replay = `--seed ${failing.plan.seed} --profile partition --program toy`;
    const { profile } = failing.plan;
    const own = { ...failing, plan: { ...failing.plan, faultsEnd: profile.settleMs + profile.faultMs } };
    const other = { ...failing, plan: { ...failing.plan, faultsEnd: profile.settleMs + 20_500 } };
    assertStringIncludes(formatReport(own), `${replay}\n`);
    assertStringIncludes(formatReport(other), `${replay} --seconds 20.5\n`);
  });

  test('every profile draws the same plan twice', () => {
    for (const profile of profileNames()) {
      const first = drawPlan({ seed: 11, program: toyProgram, profile });
      const second = drawPlan({ seed: 11, program: toyProgram, profile });
      assertEquals(JSON.stringify(first), JSON.stringify(second), profile);
      assertEquals(first.faults.length > 0, profile !== 'calm', profile);
    }
  });
});
