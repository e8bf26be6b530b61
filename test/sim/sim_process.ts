/** Runs `singlet sim` in processes of their own, as many at a time as there are processors. */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Outcome, run } from '../../scripts/testing/run.ts';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));
const bin = (path: string) => `${root}node_modules/${path}`;
const node = [bin('node24/bin/node'), bin('node24-linux-arm64/bin/node')].find((path) => existsSync(path)) ?? 'node';

export type SimRuntime = 'bun' | 'deno' | 'node';

const commands: Readonly<Record<SimRuntime, readonly string[]>> = {
  bun: [bin('.bin/bun')],
  deno: [bin('.bin/deno'), 'run', '-A', '--no-check', '--node-modules-dir=manual'],
  node: [node],
};

/** The runtime that takes the least processor time for many seeds. */
export const workerCommand: readonly string[] = commands.node;

export const parallel: number = Math.min(8, availableParallelism());

let running = 0;
const waiting: (() => void)[] = [];

/** First asked, first run. */
export async function runSim(runtime: SimRuntime, args: readonly string[], timeoutMs: number): Promise<Outcome> {
  if (running < parallel) running += 1;
  else await new Promise<void>((resolve) => void waiting.push(resolve));
  try {
    return await run([...commands[runtime], 'cli/singlet.ts', 'sim', ...args], { timeoutMs, echo: false });
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
