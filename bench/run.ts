/**
 * All benchmarks on each runtime, as one table:  npm run bench -- [--runtime bun,deno,node] [--only local,remote,moves,start]
 * Compare ratios, not machines: each row stands beside a limit measured in the same run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runtimeCommand, type RuntimeName } from '../demo/runtime_commands.ts';
import { installPackage } from './package.ts';
import { median, now, percentile, type Row, short } from './measure.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    runtime: { type: 'string', default: 'bun,deno,node' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean' },
  },
});
const only = values.only === '' ? [] : values.only.split(',');

function start(runtime: string, script: string, args: readonly string[], line: (text: string) => void): ChildProcess {
  const { file, args: before } = runtimeCommand(runtime as RuntimeName, true);
  const child = spawn(file, [...before, script, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface({ input: child.stdout! }).on('line', line);
  return child;
}

const exit = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()));

/** Starts a process and waits for the line that begins with `tag`. */
function startUntil(
  runtime: string,
  script: string,
  args: readonly string[],
  tag: string,
): Promise<[ChildProcess, string[]]> {
  return new Promise((resolve) => {
    const child = start(runtime, script, args, (text) => {
      if (text.startsWith(`@${tag} `)) resolve([child, text.split(' ').slice(1)]);
    });
  });
}

async function rowsOf(runtime: string, script: string, args: readonly string[] = []): Promise<Row[]> {
  const rows: Row[] = [];
  const child = start(runtime, script, args, (text) => {
    if (text.startsWith('@row ')) rows.push(JSON.parse(text.slice(5)));
  });
  await exit(child);
  return rows;
}

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

/** Runs nothing but the runtime itself. */
async function emptyStart(runtime: string): Promise<number> {
  const { file, args } = runtimeCommand(runtime as RuntimeName, true);
  const began = now();
  await exit(spawn(file, [...args, `${root}bench/empty.ts`], { cwd: root, stdio: 'ignore' }));
  return now() - began;
}

async function startUp(runtime: string): Promise<Row[]> {
  const installed = installPackage(root);
  try {
    const empty: number[] = [];
    for (let round = 0; round < 5; round += 1) empty.push(await emptyStart(runtime));
    const limit = { what: 'the runtime alone', value: median(empty) };
    const rows = [medianRow('process of the runtime alone, start to end', 'ms', empty)];
    for (const [what, script] of [['installed package', installed.program], ['node.ts', 'node.ts']] as const) {
      const { ready, memory } = await starts(runtime, script);
      rows.push({ ...medianRow(`process start to /ready, ${what}`, 'ms', ready), limit });
      rows.push(medianRow(`memory of a node at rest, ${what}`, 'MiB', memory));
    }
    return rows;
  } finally {
    installed.remove();
  }
}

async function starts(runtime: string, script: string): Promise<{ ready: number[]; memory: number[] }> {
  const ready: number[] = [];
  const memory: number[] = [];
  // The first start warms what runtimes keep on disk.
  for (let round = 0; round < 6; round += 1) {
    const began = now();
    const [child, url] = await new Promise<[ChildProcess, string]>((resolve) => {
      const process = start(runtime, script, [], (text) => {
        const found = /http:\/\/\S+/.exec(text)?.[0];
        if (found) resolve([process, found]);
      });
    });
    while (!(await fetch(`${url}ready`)).ok) await new Promise((resolve) => setTimeout(resolve, 1));
    const took = now() - began;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    child.kill('SIGTERM');
    await exit(child);
    if (round === 0) continue;
    ready.push(took);
    memory.push(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024);
  }
  return { ready, memory };
}

function medianRow(what: string, unit: string, values: number[]): Row {
  return { what, unit, value: median(values), spread: [Math.min(...values), Math.max(...values)] };
}

const parts: Readonly<Record<string, (runtime: string) => Promise<Row[]>>> = {
  local: (runtime) => rowsOf(runtime, 'bench/local.ts'),
  remote,
  moves,
  start: startUp,
};

const table: { runtime: string; rows: Row[] }[] = [];
console.log(`load before: ${loadavg().map((load) => load.toFixed(2)).join(' ')}`);
for (const runtime of values.runtime.split(',')) {
  const rows: Row[] = [];
  for (const [name, part] of Object.entries(parts)) {
    if (only.length === 0 || only.includes(name)) rows.push(...await part(runtime));
  }
  table.push({ runtime, rows });
  console.log(`\n${runtime}\n| what | median | spread | ratio |\n| --- | --- | --- | --- |`);
  for (const { what, value, unit, spread, limit } of rows) {
    const ratio = limit ? `${(value / limit.value).toPrecision(3)} × ${limit.what}` : '';
    console.log(`| ${what} | ${short(value)} ${unit} | ${short(spread[0])} … ${short(spread[1])} | ${ratio} |`);
  }
}
if (values.json) console.log(JSON.stringify(table));
process.exit(0);
