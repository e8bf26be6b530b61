/**
 * `npm run fuzz`: inputs made by grammars, by the million, against everything that reads bytes, text or values of others.
 *
 *     npm run fuzz -- --inputs 10000000                 all targets, in turn by their shares
 *     npm run fuzz -- --only gossip,frames --seed 7     some targets
 *     npm run fuzz -- --seed 7 --from 81234 --inputs 1  one input again
 *     npm run fuzz -- --seed 7 --from 2000000 --inputs 1000000   the third million: a long run in slices
 *
 * Runs on the runtime it is started with (`bun scripts/fuzz.ts`, `node --expose-gc scripts/fuzz.ts`, `deno run -A …`). Exit code
 * 0: no input crashed anything, took longer than a second, or left memory behind; 1: one did; 2: bad usage.
 */
import process from 'node:process';
import { fuzz } from '../test/fuzz/run.ts';
import { targets } from '../test/fuzz/targets.ts';
import { readOptions } from './testing/options.ts';

/** Bytes of heap per million inputs that count as growth: far above the noise of a collector, far below a leak. */
const maxSlope = 4 * 2 ** 20;

const values = readOptions('fuzz', {
  inputs: { type: 'string', default: '1000000' },
  seed: { type: 'string' },
  from: { type: 'string', default: '0' },
  only: { type: 'string' },
});
const numberOf = (name: string, text: string): number => {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  console.error(`--${name} ${text}: expected a whole number`);
  return process.exit(2);
};
const only = values.only?.split(',');
const unknown = only?.find((name) => !targets.some((target) => target.name === name));
if (unknown !== undefined) {
  console.error(`--only ${unknown}: expected some of ${targets.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', values.seed);
const inputs = numberOf('inputs', values.inputs);
console.log(`seed ${seed}, ${inputs} inputs`);
const report = await fuzz({
  seed,
  inputs,
  from: numberOf('from', values.from),
  ...(only === undefined ? {} : { only }),
  say: (text) => console.log(text),
});
for (const [name, count] of report.counts) console.log(`${name.padEnd(20)} ${count}`);
console.log(`slowest ${report.slowestMs.toFixed(1)} ms (${report.slowest})`);
const slope = report.heapSlope / 1024;
console.log(`heap ${(report.heapBytes / 2 ** 20).toFixed(1)} MiB, slope ${slope.toFixed(0)} KiB per million inputs`);
const grew = report.inputs >= 2_000_000 && report.heapSlope > maxSlope;
if (grew) console.log('BROKEN  the heap grows');
console.log(`${report.inputs} inputs, ${report.broken.length} broken`);
process.exit(grew || report.broken.length > 0 ? 1 : 0);
