/** A whole cluster of real processes on three runtimes goes down, and nothing is handed from node to node. */
import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import {
  deadlineMs,
  exitOf,
  json,
  post,
  request,
  type RuntimeName,
  scene,
  sleep,
  type TestNode,
  until,
} from './cluster_process.ts';

const token = 'e2e-operations-token';
const bearer = { authorization: `Bearer ${token}` };

interface Report {
  readonly name: string;
  readonly host: string | null;
  readonly active: boolean;
  readonly problem: string | null;
}

async function scheduler(node: TestNode): Promise<Report> {
  const { singletons } = await json<{ singletons: Report[] }>(await request(node, '/cluster/singletons'));
  return singletons.find(({ name }) => name === 'job-scheduler')!;
}

const hostedAt = (nodes: readonly TestNode[], host: string | null) =>
  until(`hosted at ${host}`, deadlineMs, async () => {
    const reports = await Promise.all(nodes.map(scheduler));
    return reports.every((report) => report.host === host) ? true : undefined;
  });

describe('a full shutdown', () => {
  const orders: readonly (readonly RuntimeName[])[] = [
    ['bun', 'deno', 'node'],
    ['node', 'bun', 'deno'],
    ['deno', 'node', 'bun'],
  ];
  for (const kinds of orders) {
    test(
      `P21, P22, P23: the host (${kinds[0]}) leaves first, nobody takes over, the others follow and end with 0`,
      scene(async (s) => {
        const nodes = await s.cluster(kinds, ['--token', token]);
        const [first, second, third] = nodes as [TestNode, TestNode, TestNode];
        await hostedAt(nodes, first.line.address);
        const prepared = await post(second, '/cluster/prepare-shutdown', {}, bearer);
        assertEquals(prepared.status, 200);
        assertEquals((await json<{ prepared: string[] }>(prepared)).prepared.length, 3);
        first.process.signal('SIGTERM');
        assertEquals((await exitOf(first.process)).code, 0);
        await hostedAt([second, third], null);
        await sleep(1_500);
        for (const node of [second, third]) {
          const { host, active, problem } = await scheduler(node);
          assertEquals([host, active, problem], [null, false, 'the whole cluster is about to be shut down']);
        }
        for (const node of [third, second]) {
          node.process.signal('SIGTERM');
          assertEquals((await exitOf(node.process)).code, 0);
        }
      }),
    );
  }

  test(
    'called off, another node takes over at once; a node that comes during it hosts',
    scene(async (s) => {
      const nodes = await s.cluster(['node', 'deno'], ['--token', token]);
      const [first, second] = nodes as [TestNode, TestNode];
      await hostedAt(nodes, first.line.address);
      assertEquals((await post(first, '/cluster/prepare-shutdown', {}, bearer)).status, 200);
      first.process.signal('SIGTERM');
      await exitOf(first.process);
      assertEquals(await json(await post(second, '/cluster/cancel-shutdown', {}, bearer)), { cancelled: true });
      await hostedAt([second], second.line.address);
      assertEquals((await post(second, '/cluster/prepare-shutdown', {}, bearer)).status, 200);
      const third = await s.startReady('bun', ['--seeds', second.line.address, '--token', token]);
      await hostedAt([second, third], third.line.address);
    }),
  );
});
