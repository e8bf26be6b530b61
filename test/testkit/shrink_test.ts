import { assertEquals, assertRejects } from '@std/assert';
import { describe, test } from 'node:test';
import type { Fault } from '../../src/testkit/fault.ts';
import type { Program } from '../../src/testkit/program.ts';
import { shrink } from '../../src/testkit/shrink.ts';
import { simulate } from '../../src/testkit/simulate.ts';
import { SimulationError } from '../../src/testkit/sim_world.ts';

/** Fails when all of the given calls have come. */
function failsOn(...needed: string[]): Program {
  return {
    name: 'calls',
    create: ({ world }) => {
      const seen = new Set<string>();
      return {
        boot: () => {},
        leave: () => Promise.resolve(),
        call: (_process, _action, argument) => {
          seen.add(argument);
          if (needed.every((one) => seen.has(one))) world.fail(new SimulationError('planted', 'all came'));
        },
        unsettled: () => undefined,
      };
    },
  };
}

const calls = Array.from({ length: 24 }, (_, i): Fault => (
  { kind: 'call', at: 11_000 + i * 100, node: 'n1', action: 'x', argument: String(i) }
));

describe('shrink', () => {
  test('finds the smallest list that still breaks the rule', async () => {
    const program = failsOn('3', '17', '18');
    const failing = await simulate({ seed: 1, program, profile: 'calm', nodes: 2, faults: calls, until: 5_000 });
    const { result } = await shrink(failing, program);
    assertEquals(result.plan.faults.map((fault) => 'argument' in fault ? fault.argument : ''), ['3', '17', '18']);
    assertEquals(result.failure?.rule, 'planted');
  });

  test('finds that no fault is needed', async () => {
    const program = failsOn('99');
    const broken: Program = {
      name: 'broken',
      create: (context) => ({ ...program.create(context), unsettled: () => 'never' }),
    };
    const failing = await simulate({
      seed: 1,
      program: broken,
      profile: 'calm',
      nodes: 1,
      faults: calls,
      until: 5_000,
    });
    assertEquals(failing.failure?.rule, 'S2');
    const { result, runs } = await shrink(failing, broken);
    assertEquals([result.plan.faults.length, runs], [0, 1]);
  });

  test('refuses a run that passed', async () => {
    const program = failsOn('99');
    const passing = await simulate({ seed: 1, program, profile: 'calm', nodes: 1 });
    await assertRejects(() => shrink(passing, program), RangeError);
  });
});
