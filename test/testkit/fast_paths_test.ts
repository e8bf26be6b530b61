/** What is done for speed breaks no rule when it is off, and what it leaves unchanged on the wire changes no trace. */
import { after, describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { type FastPath, fastPaths } from '../../src/fast_paths.ts';
import { programNamed } from '../../src/testkit/programs.ts';
import { simulate, type SimulationResult } from '../../src/testkit/simulate.ts';

const all = Object.keys(fastPaths) as FastPath[];
/** With these off other frames travel, or at other times: the same seed is another run. */
const otherRun: ReadonlySet<FastPath> = new Set([
  'batching',
  'jointFrames',
  'shortSenders',
  'deltas',
  'pulse',
  'plain',
]);

const runs = [
  { program: 'singletons', profile: 'mixed', seed: 3, nodes: 5 },
  { program: 'spawn', profile: 'churn', seed: 2, nodes: 4 },
  // So many that what changed travels alone.
  { program: 'membership', profile: 'partition', seed: 5, nodes: 14 },
] as const;

async function run(): Promise<SimulationResult[]> {
  const results: SimulationResult[] = [];
  for (const { program, profile, seed, nodes } of runs) {
    results.push(await simulate({ seed, program: programNamed(program), profile, nodes, until: 4_000 }));
  }
  return results;
}

describe('fast paths in the simulator', () => {
  after(() => all.forEach((path) => fastPaths[path] = true));
  let expected: SimulationResult[];

  test('all on', async () => {
    expected = await run();
    assertEquals(expected.map(({ failure }) => failure), runs.map(() => undefined));
  });

  // Each by itself on one runtime; on the others, which run the same code, all at once.
  const alone = 'Bun' in globalThis || 'Deno' in globalThis ? [] : all.map((path) => [path]);
  for (const off of [...alone, all]) {
    test(`without ${off.join(', ')}`, async () => {
      off.forEach((path) => fastPaths[path] = false);
      try {
        const seen = await run();
        assertEquals(seen.map(({ failure }) => failure), runs.map(() => undefined));
        const same = seen.every(({ hash }, n) => hash === expected[n]!.hash);
        assertEquals(same, !off.some((path) => otherRun.has(path)));
      } finally {
        off.forEach((path) => fastPaths[path] = true);
      }
    });
  }
});
