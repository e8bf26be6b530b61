/** How long a node takes to start, and what it needs while it does nothing. */
import { spawn } from 'node:child_process';
import { runtimeCommand, type RuntimeName } from '../demo/runtime_commands.ts';
import { installPackage } from './package.ts';
import { median, medianRow, now, type Row } from './measure.ts';
import { exit, processorSeconds, residentMiB, root, startNode } from './processes.ts';

const rounds = 5;
/**
 * Milliseconds for a cluster to come to rest, and then of rest. What runs a few times a second gets compiled during the first
 * minutes, on threads of the engine's own.
 */
const settleMs = 120_000;
const restMs = 60_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs nothing but the runtime itself. */
async function emptyStart(runtime: string, script: string): Promise<number> {
  const { file, args } = runtimeCommand(runtime as RuntimeName, true);
  const began = now();
  await exit(spawn(file, [...args, script], { cwd: root, stdio: 'ignore' }));
  return now() - began;
}

export async function startRows(runtime: string): Promise<Row[]> {
  const installed = installPackage(root);
  try {
    const rows: Row[] = [];
    const programs = [
      ['installed package', installed.program, 'JavaScript', installed.empty],
      ['node.ts', 'node.ts', 'TypeScript', `${root}bench/empty.ts`],
    ] as const;
    for (const [what, script, language, nothing] of programs) {
      const empty: number[] = [];
      // Apart for each: Node loads what strips types for TypeScript alone.
      for (let round = 0; round < rounds; round += 1) empty.push(await emptyStart(runtime, nothing));
      const limit = { what: 'the runtime alone', value: median(empty) };
      rows.push({ ...medianRow(`the runtime alone, empty ${language}, start to end`, 'ms', empty), context: true });
      const { ready, memory } = await starts(runtime, script);
      rows.push({ ...medianRow(`process start to /ready, ${what}`, 'ms', ready), limit });
      rows.push(medianRow(`memory of a node at rest, ${what}`, 'MiB', memory));
    }
    return [...rows, await atRest(runtime)];
  } finally {
    installed.remove();
  }
}

async function starts(runtime: string, script: string): Promise<{ ready: number[]; memory: number[] }> {
  const ready: number[] = [];
  const memory: number[] = [];
  // The first start warms what runtimes keep on disk.
  for (let round = 0; round <= rounds; round += 1) {
    const began = now();
    const [child, url] = await startNode(runtime, script, []);
    while (!(await fetch(`${url}ready`)).ok) await pause(1);
    const took = now() - began;
    await pause(1_000);
    const resident = residentMiB(child);
    child.kill('SIGTERM');
    await exit(child);
    if (round === 0) continue;
    ready.push(took);
    memory.push(resident);
  }
  return { ready, memory };
}

/** The share of one core that each of three nodes takes while nobody asks them for anything. */
async function atRest(runtime: string): Promise<Row> {
  const [first, url] = await startNode(runtime, 'node.ts', []);
  const others = await Promise.all([1, 2].map(() => startNode(runtime, 'node.ts', ['--seeds', url.host])));
  const nodes = [first, ...others.map(([child]) => child)];
  await pause(settleMs);
  const before = nodes.map(processorSeconds);
  await pause(restMs);
  const shares = nodes.map((node, n) => (processorSeconds(node) - before[n]!) / (restMs / 1_000) * 100);
  await Promise.all(nodes.map((node) => {
    node.kill('SIGKILL');
    return exit(node);
  }));
  return medianRow('processor time at rest, each of 3 nodes', '% of a core', shares);
}
