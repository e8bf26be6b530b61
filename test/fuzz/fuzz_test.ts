/** A slice of `npm run fuzz`: the same targets, a few seconds of them. */
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { fuzz } from './run.ts';
import { targets } from './targets.ts';

test('S7, FB-101: inputs made by grammars neither crash nor hang anything', { timeout: 60_000 }, async () => {
  const { broken, counts, inputs } = await fuzz({ seed: 1, inputs: 100_000, withinMs: 5_000 });
  assertEquals(broken, []);
  assert(inputs >= 1_000, String(inputs));
  assertEquals([...counts.keys()].sort(), targets.map(({ name }) => name).sort());
});
