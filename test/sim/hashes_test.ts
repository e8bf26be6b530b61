/** One seed is one run, on every runtime: the hashes of everything that happened are compared line by line. */
import { assertEquals } from '@std/assert';
import process from 'node:process';
import { describe, test } from 'node:test';
import { runSim, type SimRuntime } from './sim_process.ts';

const [first, last] = (process.env['SIM_HASHES'] ?? '1..60').split('..').map(Number);

/** Last seeds per program; spawning shares most of its code with the rest. */
const lasts: Readonly<Record<string, number>> = {
  singletons: Number(last),
  spawn: Math.min(Number(last), Number(first) + 14),
  membership: Number(last),
};

async function hashes(runtime: SimRuntime, program: string): Promise<string[]> {
  const args = ['--seeds', `${first}..${lasts[program]}`, '--program', program, '--seconds', '20', '--hashes'];
  const { output } = await runSim(runtime, args, 110_000);
  return output.split('\n').filter((line) => /^\d+ \S+ [0-9a-f]{16} /.test(line));
}

describe('trace hashes', () => {
  for (const program of Object.keys(lasts)) {
    let all: Record<SimRuntime, Promise<string[]>> | undefined;
    for (const runtime of ['node', 'deno'] as const) {
      test(`S6: ${program} run alike on Bun and ${runtime}`, async () => {
        all ??= { bun: hashes('bun', program), node: hashes('node', program), deno: hashes('deno', program) };
        const expected = await all.bun;
        assertEquals(expected.length, lasts[program]! - Number(first) + 1);
        assertEquals(await all[runtime], expected);
      });
    }
  }
});
