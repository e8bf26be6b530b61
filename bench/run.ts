/**
 * All benchmarks on each runtime, as one table:
 *
 *     npm run bench -- [--runtime bun,deno,node] [--only local,heap,remote,moves,start,steps,persistence] [--json FILE] [--plots FOLDER]
 *     npm run bench:check -- [the same]   compares with docs/performance.json and reports what has become a fifth worse
 *
 * `--peers FOLDER` measures other libraries too, from a folder that has them installed (see `peers.ts`).
 * `--without soon,batching` turns fast paths off (`src/fast_paths.ts`), to see what they are worth.
 * Compare ratios, not machines: each row stands beside a limit measured in the same run.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import process from 'node:process';
import { compare, type RuntimeRows } from './compare.ts';
import { median, percentile, type Row, short } from './measure.ts';
import { plots } from './plot.ts';
import { extra, root, rowsOf, start, startUntil } from './processes.ts';
import { startRows } from './starting.ts';
import { readOptions } from '../scripts/testing/options.ts';

async function remote(runtime: string): Promise<Row[]> {
  const [host, [address, port]] = await startUntil(runtime, 'bench/remote.ts', ['host'], 'host');
  const rows = await rowsOf(runtime, 'bench/remote.ts', ['sender', address!, port!]);
  host.kill('SIGKILL');
  return rows;
}

async function moves(runtime: string): Promise<Row[]> {
  const gaps: Record<'SIGTERM' | 'SIGKILL', number[]> = { SIGTERM: [], SIGKILL: [] };
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (let round = 0; round < 7; round += 1) {
      const [first, [address]] = await startUntil(runtime, 'bench/moves.ts', ['node'], 'node');
      const [second] = await startUntil(runtime, 'bench/moves.ts', ['node', address!], 'node');
      const gap = await new Promise<number>((resolve) => {
        const sender = start(runtime, 'bench/moves.ts', ['sender', address!], (text) => {
          if (text.startsWith('@node')) setTimeout(() => first.kill(signal), 1_500);
          if (!text.startsWith('@gap')) return;
          sender.kill('SIGKILL');
          resolve(Number(text.split(' ')[1]));
        });
      });
      gaps[signal].push(gap);
      second.kill('SIGKILL');
    }
  }
  const row = (what: string, values: number[]): Row => ({
    what,
    unit: 'ms',
    value: median(values),
    spread: [Math.min(...values), percentile(values, 0.99)],
  });
  return [
    row('planned move, gap at 1 000 msg/s', gaps.SIGTERM),
    row('kill -9 of the host, gap at 1 000 msg/s', gaps.SIGKILL),
  ];
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
  moves,
  start: startRows,
  steps: (runtime) => rowsOf(runtime, 'bench/steps.ts'),
  persistence,
};

const runtimes = ['bun', 'deno', 'node'];

interface Choice {
  readonly runtimes: readonly string[];
  readonly only: readonly string[];
  readonly json: string | undefined;
  readonly plots: string | undefined;
  readonly check: boolean;
  readonly peers: string | undefined;
  readonly without: string | undefined;
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
  };
}

function print({ runtime, rows }: RuntimeRows): void {
  console.log(`\n${runtime}\n| what | median | spread | ratio |\n| --- | --- | --- | --- |`);
  for (const { what, value, unit, spread, limit } of rows) {
    const ratio = limit ? `${(value / limit.value).toPrecision(3)} × ${limit.what}` : '';
    console.log(`| ${what} | ${short(value)} ${unit} | ${short(spread[0])} … ${short(spread[1])} | ${ratio} |`);
  }
}

async function main(): Promise<void> {
  const choice = readChoice();
  if (choice.without !== undefined) extra.arguments = [`without=${choice.without}`];
  const load = loadavg().map((value) => value.toFixed(2)).join(' ');
  console.log(`load before: ${load}`);
  const table: RuntimeRows[] = [];
  for (const runtime of choice.runtimes) {
    const rows: Row[] = [];
    for (const name of choice.only) rows.push(...await parts[name]!(runtime));
    if (choice.peers !== undefined) {
      rows.push(...await rowsOf(runtime, 'bench/peers.ts', [choice.peers], ofPeers[runtime]));
    }
    table.push({ runtime, rows });
    print(table.at(-1)!);
  }
  if (choice.json !== undefined) writeFileSync(choice.json, `${JSON.stringify({ load, table }, null, 1)}\n`);
  if (choice.plots !== undefined) {
    mkdirSync(choice.plots, { recursive: true });
    for (const { name, svg } of plots(table)) writeFileSync(`${choice.plots}/${name}.svg`, svg);
  }
  if (!choice.check) return;
  const committed = JSON.parse(readFileSync(`${root}docs/performance.json`, 'utf8')) as { table: RuntimeRows[] };
  const worse = compare(committed.table, table);
  console.log(worse.length === 0 ? '\nnothing has become a fifth worse' : `\nworse by a fifth or more:`);
  for (const line of worse) console.log(`  ${line}`);
  process.exitCode = worse.length === 0 ? 0 : 1;
}

try {
  await main();
  process.exit();
} catch (error) {
  console.error(error instanceof RangeError || error instanceof TypeError ? error.message : error);
  process.exit(2);
}
