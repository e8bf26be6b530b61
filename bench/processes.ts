/** Processes that a benchmark starts, and the rows they print. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { runtimeCommand, type RuntimeName } from '../demo/runtime_commands.ts';
import type { Row } from './measure.ts';

export const root: string = fileURLToPath(new URL('..', import.meta.url));

/** What every program gets behind its own arguments. */
export const extra: { arguments: readonly string[] } = { arguments: [] };

/** What has failed in this run; each has said why. */
export const failures: string[] = [];

/** `flags` go to the runtime itself. */
export function start(
  runtime: string,
  script: string,
  args: readonly string[],
  line: (text: string) => void,
  flags: readonly string[] = [],
): ChildProcess {
  const { file, args: before } = runtimeCommand(runtime as RuntimeName, true);
  const child = spawn(file, [...before, ...flags, script, ...args, ...extra.arguments], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: child.stdout! }).on('line', line);
  return child;
}

export const exit = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => child.once('exit', () => resolve()));

/** Starts a process and waits for the line that begins with `tag`. Rejects when it ends before. */
export function startUntil(
  runtime: string,
  script: string,
  args: readonly string[],
  tag: string,
  line: (text: string) => void = () => {},
  flags: readonly string[] = [],
): Promise<[ChildProcess, string[]]> {
  return new Promise((resolve, reject) => {
    const child = start(runtime, script, args, (text) => {
      line(text);
      if (text.startsWith(`@${tag} `)) resolve([child, text.split(' ').slice(1)]);
    }, flags);
    child.once('exit', (code) => reject(new Error(`${script} ${args[0]} on ${runtime} ended with ${code}`)));
  });
}

/** Starts a node and waits for the address it prints. */
export function startNode(runtime: string, script: string, args: readonly string[]): Promise<[ChildProcess, URL]> {
  return new Promise((resolve) => {
    const child = start(runtime, script, args, (text) => {
      const url = /http:\/\/\S+/.exec(text)?.[0];
      if (url) resolve([child, new URL(url)]);
    });
  });
}

/** Runs a benchmark to its end. One that fails (a count that does not match) keeps the rows it has printed before. */
export async function rowsOf(
  runtime: string,
  script: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<Row[]> {
  const rows: Row[] = [];
  const child = start(runtime, script, args, (text) => {
    if (text.startsWith('@row ')) rows.push(JSON.parse(text.slice(5)));
  }, flags);
  // Not before its output has been read.
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0) failures.push(`${script} on ${runtime} ended with ${code} after ${rows.length} rows`);
  return rows;
}

/** Resident memory of a process, in MiB. */
export function residentMiB(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

const ticksPerSecond = 100;

/** Processor time that a process has used so far, in seconds. */
export function processorSeconds(child: ChildProcess): number {
  // Behind the name, which may hold blanks: field 14 and 15 of the line.
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
