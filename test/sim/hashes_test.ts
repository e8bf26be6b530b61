/** One seed is one run, on every runtime: the hashes of everything that happened are compared line by line. */
import { assertEquals } from '@std/assert';
import { existsSync } from 'node:fs';
import process from 'node:process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '../../scripts/testing/run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const bin = (path: string) => `${root}node_modules/${path}`;
const node = [bin('node24/bin/node'), bin('node24-linux-arm64/bin/node')].find((path) => existsSync(path)) ?? 'node';

const runtimes: Readonly<Record<string, readonly string[]>> = {
  bun: [bin('.bin/bun'), 'scripts/sim.ts'],
  deno: [bin('.bin/deno'), 'run', '-A', '--no-check', '--node-modules-dir=manual', 'scripts/sim.ts'],
  node: [node, 'scripts/sim.ts'],
};

const [first, last] = (process.env['SIM_HASHES'] ?? '1..60').split('..').map(Number);

async function hashes(runtime: string, program: string): Promise<string[]> {
  const command = [
    ...(runtimes[runtime] ?? []),
    '--seeds',
    `${first}..${last}`,
    '--program',
    program,
    '--seconds',
    '20',
    '--hashes',
  ];
  const { output } = await run(command, { timeoutMs: 110_000, echo: false });
  return output.split('\n').filter((line) => /^\d+ \S+ [0-9a-f]{16} /.test(line));
}

describe('trace hashes', () => {
  for (const program of ['singletons', 'membership']) {
    let expected: Promise<string[]> | undefined;
    for (const runtime of ['node', 'deno']) {
      test(`S6: ${program} run alike on Bun and ${runtime}`, async () => {
        expected ??= hashes('bun', program);
        assertEquals((await expected).length, Number(last) - Number(first) + 1);
        assertEquals(await hashes(runtime, program), await expected);
      });
    }
  }
});
