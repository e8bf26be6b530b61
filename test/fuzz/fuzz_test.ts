/** A slice of `npm run fuzz`: the same targets, a few seconds of them. */
import { test } from 'node:test';
import { assert, assertEquals, assertMatch, assertStringIncludes } from '@std/assert';
import { fuzz } from './run.ts';
import { targets } from './targets.ts';

test('S7, FB-101: inputs made by grammars neither crash nor hang anything', { timeout: 180_000 }, async () => {
  const { broken, counts, inputs } = await fuzz({ seed: 1, inputs: 100_000, withinMs: 5_000 });
  assertEquals(broken, []);
  assert(inputs >= 1_000, String(inputs));
  assertEquals([...counts.keys()].sort(), targets.map(({ name }) => name).sort());
});

test('an input that breaks something is told before the next one runs, with the command that runs it again', async () => {
  const told: string[] = [];
  const toldBefore: number[] = [];
  const sound = { name: 'sound', share: 1, run: () => void toldBefore.push(told.length) };
  const fragile = {
    name: 'fragile one',
    share: 1,
    run: () => {
      throw new Error('it broke');
    },
  };
  const options = {
    seed: 7,
    inputs: 3,
    from: 100,
    only: ['sound', 'fragile one'],
    say: (text: string) => void told.push(text),
  };
  const { broken, inputs } = await fuzz(options, [sound, fragile]);
  assertEquals([inputs, broken.length, told.length], [3, 1, 1]);
  assertEquals(toldBefore, [0, 1]);
  assertMatch(told[0]!, /BROKEN {2}fragile one, seed 7, input 101: Error: it broke/);
  assertStringIncludes(told[0]!, "again: npm run fuzz -- --seed 7 --only 'sound,fragile one' --from 101 --inputs 1");
});
