/** Four nodes with a room that callers tell, what happens to them, and the account at the end. */
import { assert, assertEquals } from '@std/assert';
import type { LoadReport } from './caller_load.ts';
import { type NodeProcess, request, type Scene, type TestNode, until } from './cluster_process.ts';

export const callerToken = 'a-token-of-the-callers';
const operators = { authorization: 'Bearer a-token-of-operators' };

export async function startHosts(s: Scene): Promise<TestNode[]> {
  s.program = 'test/e2e/caller_host.ts';
  return await s.cluster(['bun', 'deno', 'node', 'bun'], ['--caller-token', callerToken]);
}

export async function hostOf(nodes: readonly TestNode[]): Promise<string> {
  return await until('the room has a host', 40_000, async () => {
    const node = nodes.find(({ process }) => process.exit === undefined)!;
    const { host } = await (await request(node, '/cluster/singletons/room')).json() as { host: string | null };
    return host ?? undefined;
  });
}

/** A planned move, then the death of the host, then that of a node that callers are connected to and that is not the host. */
export async function disturb(nodes: readonly TestNode[], gateways: () => Promise<readonly string[]>): Promise<void> {
  const first = await hostOf(nodes);
  await move(nodes, first);
  const second = await newHost(nodes, first);
  await pause(700);
  at(nodes, second).process.signal('SIGKILL');
  const third = await newHost(nodes, second);
  await pause(700);
  const gateway = await until('somebody is connected to a node', 20_000, async () => {
    const urls = await gateways();
    const used = nodes.filter(({ process, line }) =>
      process.exit === undefined && urls.some((url) => url.includes(line.address))
    );
    return used.find(({ line }) => line.address !== third) ?? used[0];
  });
  if (gateway.line.address === third) {
    await move(nodes, third);
    await newHost(nodes, third);
  }
  gateway.process.signal('SIGKILL');
}

function at(nodes: readonly TestNode[], address: string): TestNode {
  return nodes.find(({ line }) => line.address === address)!;
}

async function move(nodes: readonly TestNode[], from: string): Promise<void> {
  const node = nodes.find(({ process, line }) => process.exit === undefined && line.address !== from)!;
  const moved = await request(node, '/cluster/singletons/room/move', { method: 'POST', headers: operators });
  assertEquals(moved.status, 200, await moved.text());
}

async function newHost(nodes: readonly TestNode[], before: string): Promise<string> {
  return await until(`the room is not on ${before} any more`, 40_000, async () => {
    const host = await hostOf(nodes.filter(({ process }) => process.exit === undefined));
    return host === before ? undefined : host;
  });
}

/** No message may be unaccounted for, or handled twice, or out of order. */
export function assertAccounted(report: LoadReport, nodes: readonly TestNode[], count: number): void {
  const { from, ledger, dead } = report;
  // What one process printed is in order; of several, those that began to handle earlier come first.
  const runs = nodes.map(({ process }) => handledBy(process, from)).filter((run) => run.length > 0);
  const handled = runs.sort((a, b) => a[0]! - b[0]!).flat();
  const context = JSON.stringify({ from, ledger, dead, handled: handled.length });
  assertEquals(ledger.told, ledger.acknowledged + ledger.outcomeUnknown, context);
  assertEquals(ledger.buffered, 0, context);
  assertEquals(ledger.deadLettered, 0, context);
  assertEquals(dead.length, ledger.outcomeUnknown, context);
  assertEquals(new Set(handled).size, handled.length, `handled twice: ${context}`);
  const unknown = new Set(dead.map(([n]) => n));
  const lost = Array.from({ length: count }, (_, at) => at + 1).filter((n) => !handled.includes(n) && !unknown.has(n));
  assertEquals(lost, [], context);
  for (const run of runs) assertEquals(run, [...run].sort((a, b) => a - b), context);
  // The question where it runs is one message more, or several.
  assert(ledger.told > count, context);
}

function handledBy(process: NodeProcess, from: string): number[] {
  const prefix = `handled ${from} `;
  return process.stdout.filter((line) => line.startsWith(prefix)).map((line) => Number(line.slice(prefix.length)));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
