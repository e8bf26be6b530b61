/**
 * The narrated demonstration: four nodes on three runtimes, one job scheduler, its host leaving, then dying, then a node
 * joining. Run it with `npm run demo`. Ends by itself; exit code 0 only if every promise held.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isReady, type JobSpec, postJob, skippedTicks, until } from './demo/jobs_client.ts';
import { killAllNodes, type NodeLine, NodeProcess } from './demo/node_process.ts';
import { hostings } from './demo/accounting.ts';
import { Receiver } from './demo/receiver.ts';
import { report } from './demo/report.ts';
import type { RuntimeName } from './demo/runtime_commands.ts';

const jobs = 50;
const everyMs = 200;
const phaseMs = 4_000;
const deadlineMs = 20_000;

interface Running {
  readonly label: string;
  readonly process: NodeProcess;
  readonly line: NodeLine;
}

interface Caller {
  readonly address: string;
  readonly epoch: number;
}

const startedAt = performance.now();
const labels = new Map<string, string>();

function say(text: string): void {
  console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s  ${text}`);
}

async function startNode(letter: string, runtime: RuntimeName, seeds: readonly Running[]): Promise<Running> {
  const flags = ['--name', 'demo', '--log-level', 'error'];
  if (seeds.length > 0) flags.push('--seeds', seeds.map((seed) => seed.line.address).join(','));
  const process = new NodeProcess({ runtime, flags });
  const line = await within(process.line, `node ${letter} (${runtime}) starts`);
  await until(`node ${letter} (${runtime}) is ready`, deadlineMs, async () => await isReady(line.url) || undefined);
  const label = `${letter} (${line.runtime})`;
  labels.set(line.address, label);
  say(`Node ${label} is up at ${line.url}`);
  return { label, process, line };
}

async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  const timeout = new AbortController();
  const late = sleep(deadlineMs, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`${what}: not within ${deadlineMs} ms`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    timeout.abort();
  }
}

/** The jobs begin a few milliseconds apart, so that the target is called all the time and a gap can be seen. */
async function postAll(url: string, target: string): Promise<void> {
  const begin = performance.now();
  for (let index = 0; index < jobs; index++) {
    const wait = begin + index * (everyMs / jobs) - performance.now();
    if (wait > 0) await sleep(wait);
    await postJob(url, jobSpec(index, target), deadlineMs);
  }
}

function jobSpec(index: number, url: string): JobSpec {
  return { id: `job-${String(index + 1).padStart(2, '0')}`, everyMs, url };
}

/** The node that makes the calls, once a call of another epoch than `notEpoch` has arrived. */
async function callerAfter(receiver: Receiver, notEpoch: number): Promise<Caller> {
  const call = await until('the next host calls', deadlineMs, () => {
    const latest = receiver.calls.at(-1);
    return latest !== undefined && latest.epoch !== notEpoch ? latest : undefined;
  });
  return { address: call.host, epoch: call.epoch };
}

function takeOut(nodes: Running[], address: string): Running {
  const index = nodes.findIndex((candidate) => candidate.line.address === address);
  if (index < 0) throw new Error(`a call came from ${address}, which is none of the nodes`);
  return nodes.splice(index, 1)[0]!;
}

/** Posts the jobs, then lets the host leave, the next one die, and a fresh node join. */
async function story(receiver: Receiver): Promise<boolean> {
  const target = receiver.url('/hook');
  say(`A receiver listens at ${target}: the jobs' target. It writes down every call.`);
  const nodes: Running[] = [];
  for (const [letter, runtime] of [['A', 'bun'], ['B', 'deno'], ['C', 'node'], ['D', 'bun']] as const) {
    nodes.push(await startNode(letter, runtime, nodes));
  }

  say(
    `Posting ${jobs} jobs, each every ${everyMs} ms, to node ${
      nodes[3]!.label
    }. One scheduler in the cluster takes them.`,
  );
  await postAll(nodes[3]!.line.url, target);
  const first = await callerAfter(receiver, 0);
  say(`Every call comes from node ${labels.get(first.address)}, the oldest (epoch ${first.epoch}).`);
  await sleep(phaseMs);

  const skipped = [await skippedTicks(nodes[0]!.line.url)];
  const second = await hostLeaves(receiver, nodes, first);
  await sleep(phaseMs);
  skipped.push(await skippedTicks(nodes[0]!.line.url));
  const [third, crashGapMs] = await hostDies(receiver, nodes, second);
  await sleep(phaseMs);

  const joiner = await startNode('E', 'deno', nodes);
  nodes.push(joiner);
  await sleep(phaseMs / 2);
  const epochAfterJoin = receiver.calls.at(-1)!.epoch;
  say(
    epochAfterJoin === third.epoch
      ? `Node ${joiner.label} has joined and nothing moved: calls still come from ${labels.get(third.address)}.`
      : `Node ${joiner.label} has joined and the scheduler moved, which it must not.`,
  );
  skipped.push(await skippedTicks(joiner.line.url));
  const calls = [...receiver.calls];
  const unclean = await endAll(nodes);
  const { lines, broken } = report({
    calls,
    everyMs,
    ends: ['SIGTERM', 'SIGKILL'],
    nameOf: (address) => labels.get(address) ?? address,
    skipped,
    crashGapMs,
    epochBeforeJoin: third.epoch,
    epochAfterJoin,
  });
  return verdict(lines, unclean === 0 ? broken : [...broken, `a clean end: ${unclean} nodes ended with an error`]);
}

async function hostLeaves(receiver: Receiver, nodes: Running[], host: Caller): Promise<Caller> {
  const leaver = takeOut(nodes, host.address);
  say(`SIGTERM to the host, ${leaver.label}: it stops the scheduler, hands its table over and leaves.`);
  leaver.process.signal('SIGTERM');
  const next = await callerAfter(receiver, host.epoch);
  const gapMs = hostings(receiver.calls).at(-1)?.gapMs ?? 0;
  say(
    `Node ${labels.get(next.address)} calls now (epoch ${next.epoch}), ${
      gapMs.toFixed(0)
    } ms after the last call of the old host.`,
  );
  say(`Run numbers go on. (A call comes every ${everyMs / jobs} ms anyway.)`);
  const exit = await within(leaver.process.exited, 'the leaver exits');
  if (exit.code !== 0) {
    throw new Error(`the leaver ended with ${exit.signal ?? exit.code}:\n${leaver.process.output()}`);
  }
  return next;
}

async function hostDies(receiver: Receiver, nodes: Running[], host: Caller): Promise<[next: Caller, gapMs: number]> {
  const victim = takeOut(nodes, host.address);
  const { url } = nodes.at(-1)!.line;
  say(`SIGKILL to the host, ${victim.label}: no good-bye. Its table dies with it; the jobs are posted again.`);
  const killedAt = performance.now();
  victim.process.signal('SIGKILL');
  await postJob(url, jobSpec(0, receiver.url('/hook')), deadlineMs);
  const gapMs = performance.now() - killedAt;
  await postAll(url, receiver.url('/hook'));
  const next = await callerAfter(receiver, host.epoch);
  say(
    `Node ${labels.get(next.address)} had the next scheduler ${
      gapMs.toFixed(0)
    } ms after the SIGKILL (epoch ${next.epoch}).`,
  );
  return [next, gapMs];
}

/** Returns how many nodes did not end well. */
async function endAll(nodes: readonly Running[]): Promise<number> {
  say('SIGTERM to all nodes.');
  for (const node of nodes) node.process.signal('SIGTERM');
  const exits = await within(Promise.all(nodes.map((node) => node.process.exited)), 'all nodes exit');
  return exits.filter((exit) => exit.code !== 0).length;
}

function verdict(lines: readonly string[], broken: readonly string[]): boolean {
  console.log(['', ...lines, ''].join('\n'));
  if (broken.length === 0) {
    console.log('Every promise held: one scheduler at a time, no run lost or doubled, short gaps, no move on a join.');
  }
  for (const promise of broken) console.log(`BROKEN  ${promise}`);
  return broken.length === 0;
}

async function main(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      killAllNodes();
      process.exit(130);
    });
  }
  console.log('One job scheduler in a cluster of four nodes on Bun, Deno and Node.\n');
  let held = false;
  try {
    held = await story(await Receiver.start());
  } catch (error) {
    console.log(`\nThe demonstration failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    killAllNodes();
  }
  process.exit(held ? 0 : 1);
}

await main();
