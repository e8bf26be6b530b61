/**
 * What membership costs in clusters of different sizes, in the simulator: real nodes and codec, simulated links.
 *
 *     npm run scale                                3, 10, 100 and 1 000 members (some minutes)
 *     npm run scale -- --sizes 3,10,30,100         fewer
 *
 * Options: --leave-up-to N (default 100: larger clusters are measured at rest and with one change only; with 1 000 the
 * leaves take minutes more, and 4.4 GB), --json FILE (adds the rows to those of the file), --plots FOLDER (writes SVG). Bytes and frames are
 * counted in virtual time: they are the same on every machine.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { type ScaleRow, scaleRow } from './scale/measure.ts';
import { scalePlots, scaleTable } from './scale/report.ts';
import { readOptions } from './testing/options.ts';

function readChoice() {
  const values = readOptions('scale', {
    sizes: { type: 'string', default: '3,10,100,1000' },
    'leave-up-to': { type: 'string', default: '100' },
    json: { type: 'string' },
    plots: { type: 'string' },
  });
  const sizes = values.sizes.split(',').map(Number);
  if (!sizes.every((size) => Number.isInteger(size) && size >= 3)) {
    console.error(`--sizes ${values.sizes}: expected numbers of at least 3`);
    process.exit(2);
  }
  return { sizes, leaveUpTo: Number(values['leave-up-to']), json: values.json, plots: values.plots };
}

const { sizes, leaveUpTo, json, plots } = readChoice();
const rows = new Map<number, ScaleRow>();
if (json !== undefined && existsSync(json)) {
  for (const row of JSON.parse(readFileSync(json, 'utf8')) as ScaleRow[]) rows.set(row.members, row);
}
for (const size of sizes) {
  rows.set(size, await scaleRow(size, size <= leaveUpTo));
  console.error(`${size} members measured`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify([...rows.values()], null, 1)}\n`);
}
const sorted = [...rows.values()].sort((a, b) => a.members - b.members);
console.log(scaleTable(sorted));
if (plots !== undefined) {
  for (const { name, svg } of scalePlots(sorted)) writeFileSync(join(plots, `${name}.svg`), svg);
}
process.exit(0);
