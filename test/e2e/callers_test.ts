/** Callers from outside on three runtimes, against real nodes of three runtimes that move, die and are replaced. */
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { LoadReport } from './caller_load.ts';
import {
  type NodeProcess,
  request,
  runtimes,
  type Scene,
  scene,
  type TestNode,
  until,
  withDeadline,
} from './cluster_process.ts';

const token = 'a-token-of-the-callers';
const operators = { authorization: 'Bearer a-token-of-operators' };

export async function startHosts(s: Scene): Promise<TestNode[]> {
  s.program = 'test/e2e/caller_host.ts';
  return await s.cluster(['bun', 'deno', 'node', 'bun'], ['--caller-token', token]);
}

export async function hostOf(nodes: readonly TestNode[]): Promise<string> {
  return await until('the room has a host', 40_000, async () => {
    const node = nodes.find(({ process }) => process.exit === undefined)!;
    const { host } = await (await request(node, '/cluster/singletons/room')).json() as { host: string | null };
    return host ?? undefined;
  });
}

/** A planned move, then the death of the host, then that of a node that callers are connected to and that is not the host. */
export async function disturb(nodes: readonly TestNode[], gateways: () => readonly string[]): Promise<void> {
  const first = await hostOf(nodes);
  const mover = nodes.find(({ line }) => line.address !== first)!;
  const moved = await request(mover, '/cluster/singletons/room/move', { method: 'POST', headers: operators });
  assertEquals(moved.status, 200, await moved.text());
  const second = await until('the room has moved', 40_000, async () => {
    const host = await hostOf(nodes);
    return host === first ? undefined : host;
  });
  await pause(700);
  nodes.find(({ line }) => line.address === second)!.process.signal('SIGKILL');
  const third = await until('the room has a new host', 40_000, async () => {
    const alive = nodes.filter(({ process }) => process.exit === undefined);
    const host = await hostOf(alive);
    return host === second ? undefined : host;
  });
  await pause(700);
  const gateway = await until(
    'somebody is connected to a node that is not the host',
    20_000,
    () =>
      nodes.find(({ process, line }) =>
        process.exit === undefined && line.address !== third && gateways().some((url) => url.includes(line.address))
      ),
  );
  gateway.process.signal('SIGKILL');
}

/** No message may be unaccounted for, or handled twice, or out of order. */
export function assertAccounted(report: LoadReport, nodes: readonly TestNode[], count: number): void {
  const { from, ledger, dead } = report;
  // What one process printed is in order; of several, those that began to handle earlier come first.
  const runs = nodes.map(({ process }) => handledBy(process, from)).filter((run) => run.length > 0);
  const handled = runs.sort((a, b) => a[0]! - b[0]!).flat();
  const context = JSON.stringify({ from, ledger, dead, handled: handled.length });
  assertEquals(ledger.told, ledger.acknowledged + ledger.deadLettered, context);
  assertEquals(ledger.buffered, 0, context);
  assertEquals(ledger.deadLettered, ledger.outcomeUnknown, context);
  assertEquals(dead.length, ledger.deadLettered, context);
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

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

test(
  'S3, R149: callers on three runtimes, through a planned move and the death of the host and of a gateway',
  scene(async (s) => {
    const nodes = await startHosts(s);
    const urls = nodes.map(({ line }) => line.address);
    s.program = 'test/e2e/caller_client.ts';
    const count = 400;
    const callers = runtimes.map((runtime) =>
      s.spawn(runtime, [JSON.stringify({ from: runtime, urls, token, count, everyMs: 20 })])
    );
    const gateways = () =>
      callers.filter(({ exit }) => exit === undefined)
        .map(({ stdout }) => stdout.findLast((line) => line.startsWith('connected '))?.slice('connected '.length) ?? '')
        .filter((url) => url !== '');
    await until('all are connected', 40_000, () => gateways().length === 3);
    await disturb(nodes, gateways);
    let reconnects = 0;
    for (const caller of callers) {
      await withDeadline(caller.exited, () => `${caller.runtime} caller ends\n${caller.output()}`, 90_000);
      const line = caller.stdout.at(-1) ?? '';
      assert(line.startsWith('report '), caller.output());
      const report = JSON.parse(line.slice('report '.length)) as LoadReport;
      assertAccounted(report, nodes, count);
      reconnects += report.reconnects;
    }
    assert(reconnects > 0, 'somebody was connected to a node that died');
  }),
);
