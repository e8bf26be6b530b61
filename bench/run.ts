/**
 * All benchmarks on each runtime, as one table:
 *
 *     npm run bench -- [--runtime bun,deno,node] [--only local,heap,remote,moves,start,steps,persistence] [--json FILE] [--plots FOLDER]
 *     npm run bench:check -- [the same]   compares with docs/performance.json and reports what has become a fifth worse
 *
 * `--peers FOLDER` measures other libraries too, from a folder that has them installed: with `local` other actors (`peers.ts`),
 * with `moves` elections by redlock and etcd (`elections.ts`).
 * `--json FILE` keeps the rows that FILE has and this run has not: a file can be made in several runs.
 * `--without soon,batching` turns fast paths off (`src/fast_paths.ts`), to see what they are worth.
 * `--processor-time`, with `--only local`: seconds on the processor instead of the clock's, for a machine that has other work.
 * Compare ratios, not machines: each row stands beside a limit measured in the same run.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import process from 'node:process';
import { compare, merged, type RuntimeRows } from './compare.ts';
import { electionRows, moveRows } from './failover.ts';
import { nameOf, type Row, short } from './measure.ts';
import { besideOurs, ratioText, recordedRows } from './peer_ratios.ts';
import { plots } from './plot.ts';
import { extra, failures, root, rowsOf, startUntil } from './processes.ts';
import { startRows } from './starting.ts';
import { readOptions } from '../scripts/testing/options.ts';

async function remote(runtime: string): Promise<Row[]> {
  const [host, [address, port]] = await startUntil(runtime, 'bench/remote.ts', ['host'], 'host');
  const rows = await rowsOf(runtime, 'bench/remote.ts', ['sender', address!, port!]);
  host.kill('SIGKILL');
  return rows;
}

/** Bun collects when asked; the others must be started so that they do. */
const collecting: Readonly<Record<string, readonly string[]>> = {
  deno: ['--v8-flags=--expose-gc'],
  node: ['--expose-gc'],
};

/** What peers need to be loaded from a folder of their own. */
const ofPeers: Readonly<Record<string, readonly string[]>> = { deno: ['--allow-read', '--allow-env'] };

/** Each recovery in a process of its own, so that its memory is its own. */
async function persistence(runtime: string): Promise<Row[]> {
  const script = 'bench/persistence.ts';
  const flags = runtime === 'deno' ? ['--allow-read', '--allow-write', '--allow-sys', '--allow-env'] : [];
  const directory = mkdtempSync(`${tmpdir()}/singlet-history-`);
  try {
    const rows = await rowsOf(runtime, script, [], flags);
    for (const mode of ['fill', 'recover', 'recover-snapshot']) {
      rows.push(...await rowsOf(runtime, script, [mode, `${directory}/stores`], flags));
    }
    return rows;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const parts: Readonly<Record<string, (runtime: string) => Promise<Row[]>>> = {
  local: (runtime) => rowsOf(runtime, 'bench/local.ts'),
  heap: (runtime) => rowsOf(runtime, 'bench/heap.ts', [], collecting[runtime]),
  remote,
  moves: moveRows,
  start: startRows,
  steps: (runtime) => rowsOf(runtime, 'bench/steps.ts'),
  persistence,
};

/** Of the parts that are measured: peers are compared with ours of the same run. */
async function peerRows(
  runtime: string,
  { only, processorTime }: Choice,
  folder: string,
  ours: Row[],
): Promise<Row[]> {
  const rows: Row[] = [];
  if (only.includes('local')) rows.push(...await rowsOf(runtime, 'bench/peers.ts', [folder], ofPeers[runtime]));
  if (only.includes('moves')) rows.push(...await electionRows(runtime, folder));
  // Those were measured by the clock.
  return processorTime ? rows : [...rows, ...recordedRows(runtime, [...ours, ...rows])];
}

const runtimes = ['bun', 'deno', 'node'];

interface Choice {
  readonly runtimes: readonly string[];
  readonly only: readonly string[];
  readonly json: string | undefined;
  readonly plots: string | undefined;
  readonly check: boolean;
  readonly peers: string | undefined;
  readonly without: string | undefined;
  readonly processorTime: boolean;
}

function readChoice(): Choice {
  const values = readOptions('bench', {
    runtime: { type: 'string', default: runtimes.join(',') },
    only: { type: 'string', default: Object.keys(parts).join(',') },
    json: { type: 'string' },
    plots: { type: 'string' },
    check: { type: 'boolean', default: false },
    peers: { type: 'string' },
    without: { type: 'string' },
    'processor-time': { type: 'boolean', default: false },
  });
  const among = (option: string, text: string, allowed: readonly string[]): string[] => {
    const items = text.split(',');
    const wrong = items.find((item) => !allowed.includes(item));
    if (wrong !== undefined) throw new RangeError(`--${option} ${wrong}: expected some of ${allowed.join(', ')}`);
    return items;
  };
  return {
    runtimes: among('runtime', values.runtime, runtimes),
    only: among('only', values.only, Object.keys(parts)),
    json: values.json,
    plots: values.plots,
    check: values.check,
    peers: values.peers,
    without: values.without,
    processorTime: values['processor-time'],
  };
}

function print({ runtime, rows }: RuntimeRows): void {
  console.log(`\n${runtime}\n| what | median | spread | ratio |\n| --- | --- | --- | --- |`);
  for (const row of rows) {
    const { value, unit, spread } = row;
    const figures = `${short(value)} ${unit} | ${short(spread[0])} … ${short(spread[1])}`;
    console.log(`| ${nameOf(row)} | ${figures} | ${ratioText(row)} |`);
  }
}

const readTable = (file: string): readonly RuntimeRows[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { table: RuntimeRows[] }).table;

const reference = 'docs/performance.json';

function readReference(): readonly RuntimeRows[] {
  try {
    return readTable(`${root}${reference}`);
  } catch (error) {
    throw new RangeError(
      `nothing to compare with: ${reference}: ${error instanceof Error ? error.message : error}; ` +
        `npm run bench -- --json ${reference} makes it`,
    );
  }
}

/** True when nothing has become worse. */
function report(committed: readonly RuntimeRows[], table: readonly RuntimeRows[]): boolean {
  const { compared, worse, unknown } = compare(committed, table);
  if (unknown.length > 0) console.log(`\nnot in ${reference}, or against another limit there; not compared:`);
  for (const name of unknown) console.log(`  ${name}`);
  console.log(`\n${compared} rows compared with ${reference}, ${worse.length} worse by a fifth or more`);
  for (const line of worse) console.log(`  ${line}`);
  return compared > 0 && worse.length === 0;
}

async function main(): Promise<void> {
  const choice = readChoice();
  if (choice.peers !== undefined && !existsSync(`${choice.peers}/node_modules`)) {
    throw new RangeError(`--peers ${choice.peers}: expected a folder with node_modules`);
  }
  extra.arguments = [
    ...(choice.without === undefined ? [] : [`without=${choice.without}`]),
    ...(choice.processorTime ? ['processor-time'] : []),
  ];
  if (choice.processorTime && choice.only.some((part) => part !== 'local')) {
    throw new RangeError('--processor-time: for --only local, which is within one process');
  }
  const load = loadavg().map((value) => value.toFixed(2)).join(' ');
  console.log(`load before: ${load}`);
  const committed = choice.check ? readReference() : undefined;
  const table: RuntimeRows[] = [];
  for (const runtime of choice.runtimes) {
    const rows: Row[] = [];
    for (const name of choice.only) rows.push(...await parts[name]!(runtime));
    if (choice.peers !== undefined) rows.push(...await peerRows(runtime, choice, choice.peers, rows));
    table.push({ runtime, rows: besideOurs(rows) });
    print(table.at(-1)!);
  }
  if (choice.json !== undefined) {
    const kept = existsSync(choice.json) ? readTable(choice.json) : [];
    writeFileSync(choice.json, `${JSON.stringify({ load, table: merged(kept, table) }, null, 1)}\n`);
  }
  if (choice.plots !== undefined) {
    mkdirSync(choice.plots, { recursive: true });
    for (const { name, svg } of plots(table)) writeFileSync(`${choice.plots}/${name}.svg`, svg);
  }
  for (const failure of failures) console.error(failure);
  const fine = committed === undefined || report(committed, table);
  process.exitCode = fine && failures.length === 0 ? 0 : 1;
}

try {
  await main();
  process.exit();
} catch (error) {
  console.error(error instanceof RangeError || error instanceof TypeError ? error.message : error);
  process.exit(2);
}
