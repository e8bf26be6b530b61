import { describe, test } from 'node:test';
import { assertEquals, assertGreater, assertLess, assertMatch } from '@std/assert';
import { hostings, tally } from '../../demo/accounting.ts';
import { type JobSpec, postJob, skippedTicks } from '../../demo/jobs_client.ts';
import {
  deadlineMs,
  exitOf,
  json,
  type ReceivedCall,
  type Receiver,
  request,
  type RuntimeName,
  type Scene,
  scene,
  sleep,
  type TestNode,
  until,
} from './cluster_process.ts';

const everyMs = 200;
const jobs = 20;

function specs(receiver: Receiver): readonly JobSpec[] {
  return Array.from({ length: jobs }, (_, index) => ({ id: `job${index}`, everyMs, url: receiver.url('/hook') }));
}

/** Posts the jobs a few milliseconds apart, so that the target is called all the time. */
async function postAll(node: TestNode, receiver: Receiver): Promise<void> {
  for (const spec of specs(receiver)) {
    await postJob(node.line.url, spec, deadlineMs);
    await sleep(everyMs / jobs);
  }
}

/** Waits until the instance after `epoch` has made `count` calls. */
function callsAfter(receiver: Receiver, epoch: number, count: number): Promise<readonly ReceivedCall[]> {
  return until(`${count} calls after epoch ${epoch}`, deadlineMs, () => {
    const calls = receiver.calls.filter((call) => call.epoch > epoch);
    return calls.length >= count ? calls : undefined;
  });
}

async function clusterAtWork(
  s: Scene,
  kinds: readonly RuntimeName[],
): Promise<{ nodes: TestNode[]; receiver: Receiver; epoch: number }> {
  const receiver = await s.receiver();
  const nodes = await s.cluster(kinds);
  await postAll(nodes.at(-1)!, receiver);
  const [first] = await callsAfter(receiver, 0, 5 * jobs);
  assertEquals(first!.host, nodes[0]!.line.address);
  return { nodes, receiver, epoch: first!.epoch };
}

/** Nothing lost, nothing doubled, no call of a host after its successor's first. */
async function assertWhole(receiver: Receiver, witness: TestNode): Promise<void> {
  const skipped = await skippedTicks(witness.line.url);
  const calls = [...receiver.calls];
  const sum = tally(calls, everyMs, skipped);
  assertEquals([sum.lost, sum.doubled], [0, 0], JSON.stringify(sum));
  for (const hosting of hostings(calls)) assertEquals(hosting.stale, 0);
}

describe('a planned move', () => {
  const orders: readonly (readonly RuntimeName[])[] = [
    ['bun', 'deno', 'node'],
    ['node', 'bun', 'deno'],
    ['deno', 'node', 'bun'],
  ];
  for (const kinds of orders) {
    test(
      `SIGTERM to each host in turn: no run lost or doubled (${kinds.join(', ')})`,
      scene(async (s) => {
        const { nodes, receiver, epoch } = await clusterAtWork(s, kinds);
        let last = epoch;
        for (const [index, node] of nodes.slice(0, 2).entries()) {
          node.process.signal('SIGTERM');
          const [next] = await callsAfter(receiver, last, 5 * jobs);
          assertEquals(next!.host, nodes[index + 1]!.line.address);
          assertEquals((await exitOf(node.process)).code, 0, node.process.output());
          last = next!.epoch;
        }
        const skipped = await skippedTicks(nodes[2]!.line.url);
        const calls = [...receiver.calls];
        const sum = tally(calls, everyMs, skipped);
        assertEquals([sum.lost, sum.doubled], [0, 0], JSON.stringify(sum));
        const all = hostings(calls);
        assertEquals(all.length, 3);
        for (const hosting of all) {
          assertEquals(hosting.stale, 0);
          assertLess(hosting.gapMs ?? 0, 3_000);
        }
        console.log(
          `# gaps of planned moves: ${all.slice(1).map(({ gapMs }) => `${gapMs!.toFixed(1)} ms`).join(', ')}`,
        );
      }),
    );
  }

  test(
    'R144: the two oldest leave at once: no run lost or doubled, one host after the other',
    scene(async (s) => {
      const { nodes, receiver, epoch } = await clusterAtWork(s, ['bun', 'node', 'deno', 'bun']);
      for (const node of nodes.slice(0, 2)) node.process.signal('SIGTERM');
      const exits = await Promise.all(nodes.slice(0, 2).map((node) => exitOf(node.process)));
      assertEquals(exits.map((exit) => exit.code), [0, 0]);
      const after = receiver.calls.length;
      await until(
        'calls by a node that stays',
        deadlineMs,
        () => receiver.calls.length >= after + 3 * jobs || undefined,
      );
      assertGreater(receiver.calls.at(-1)!.epoch, epoch);
      assertEquals(receiver.calls.at(-1)!.host, nodes[2]!.line.address);
      await assertWhole(receiver, nodes[3]!);
    }),
  );

  test(
    'R144: a rolling restart of all nodes: no run lost or doubled',
    scene(async (s) => {
      const { nodes, receiver } = await clusterAtWork(s, ['deno', 'bun', 'node']);
      for (let index = 0; index < nodes.length; index++) {
        const old = nodes[index]!;
        old.process.signal('SIGTERM');
        assertEquals((await exitOf(old.process)).code, 0, old.process.output());
        const port = old.line.address.split(':')[1]!;
        const seeds = nodes.filter((node) => node !== old).map((node) => node.line.address).join(',');
        nodes[index] = await s.startReady(old.process.runtime, ['--port', port, '--seeds', seeds]);
        const seen = receiver.calls.length;
        await until('more calls', deadlineMs, () => receiver.calls.length >= seen + 2 * jobs || undefined);
      }
      assertEquals(hostings(receiver.calls).length, 4);
      await assertWhole(receiver, nodes[0]!);
    }),
  );

  test(
    'a call that is in flight when its host leaves is neither lost nor made again',
    scene(async (s) => {
      const receiver = await s.receiver();
      const nodes = await s.cluster(['node', 'bun']);
      const spec: JobSpec = { id: 'slow', everyMs: 1_000, url: receiver.url('/slow/600') };
      await postJob(nodes[0]!.line.url, spec, deadlineMs);
      const [first] = await callsAfter(receiver, 0, 2);
      nodes[0]!.process.signal('SIGTERM');
      await callsAfter(receiver, first!.epoch, 2);
      assertEquals(receiver.calls.map((call) => call.run), receiver.calls.map((_, index) => index + 1));
      const sum = tally(receiver.calls, 1_000, await skippedTicks(nodes[1]!.line.url));
      assertEquals([sum.lost, sum.doubled], [0, 0]);
      const job = await (await fetch(new URL('/jobs/slow', nodes[1]!.line.url))).json() as { failures: number };
      assertEquals(job.failures, 0);
    }),
  );

  test(
    'a join moves nothing',
    scene(async (s) => {
      const { nodes, receiver, epoch } = await clusterAtWork(s, ['node', 'bun']);
      const seeds = nodes.map((node) => node.line.address).join(',');
      await s.startReady('deno', ['--seeds', seeds]);
      const seen = receiver.calls.length;
      await until('calls after the join', deadlineMs, () => receiver.calls.length >= seen + 5 * jobs || undefined);
      assertEquals(new Set(receiver.calls.map((call) => call.epoch)), new Set([epoch]));
    }),
  );
});

describe('a crash of the host', () => {
  const groups: readonly (readonly RuntimeName[])[] = [
    ['bun', 'deno', 'node'],
    ['node', 'bun', 'deno'],
    ['deno', 'node', 'bun'],
    ['bun', 'node'],
    ['node', 'deno'],
    ['deno', 'bun'],
  ];
  for (const kinds of groups) {
    test(
      `SIGKILL: the next oldest hosts within 3 s and starts fresh (${kinds.join(', ')})`,
      scene(async (s) => {
        const { nodes, receiver, epoch } = await clusterAtWork(s, kinds);
        const killedAt = performance.now();
        nodes[0]!.process.signal('SIGKILL');
        const survivor = nodes.at(-1)!;
        await postJob(survivor.line.url, specs(receiver)[0]!, deadlineMs);
        const gapMs = performance.now() - killedAt;
        await postAll(survivor, receiver);
        const calls = await callsAfter(receiver, epoch, 3 * jobs);
        assertEquals(calls[0]!.host, nodes[1]!.line.address);
        assertEquals(Math.min(...calls.map((call) => call.run)), 1);
        assertEquals(tally(calls, everyMs, await skippedTicks(survivor.line.url)).lost, 0);
        assertLess(gapMs, 3_000);
        console.log(`# SIGKILL with ${kinds.length} nodes: next scheduler answered after ${gapMs.toFixed(0)} ms`);
      }),
    );
  }
});

describe('a host that sleeps', () => {
  for (const kinds of [['node', 'bun', 'deno'], ['bun', 'deno', 'node'], ['deno', 'bun', 'node']] as const) {
    test(
      `R145: stopped for longer than every timeout, then woken: it calls nobody any more and comes back as a new member (${
        kinds[0]
      })`,
      scene(async (s) => {
        const receiver = await s.receiver();
        const nodes = await s.cluster(kinds);
        const [host, other] = nodes as [TestNode, TestNode, TestNode];
        const spec: JobSpec = { id: 'tick', everyMs: 500, url: receiver.url('/hook') };
        await postJob(other.line.url, spec, deadlineMs);
        const [first] = await callsAfter(receiver, 0, 3);
        assertEquals(first!.host, host.line.address);
        // Right after a call the host is idle: what it does on waking it has not begun before.
        await sleep(100);
        host.process.signal('SIGSTOP');
        await postJob(other.line.url, spec, 60_000);
        const calls = await callsAfter(receiver, first!.epoch, 3);
        assertEquals(calls[0]!.host, other.line.address);
        const wokenAt = performance.now();
        host.process.signal('SIGCONT');
        // It was put out meanwhile: it stops its scheduler and comes back as a new member.
        const uid = host.line.uid;
        await until('the woken node is a new member', deadlineMs, async () => {
          const { members } = await json<{ members: { address: string; uid: string; status: string }[] }>(
            await request(other, '/cluster/members'),
          );
          const back = members.some((one) =>
            one.address === host.line.address && one.uid !== uid && one.status === 'up'
          );
          return back || undefined;
        });
        assertMatch(host.process.stderr.join('\n'), /joins again as a new member/);
        await callsAfter(receiver, first!.epoch, calls.length + 4);
        const begun = calls[0]!.arrivedAt;
        assertEquals(receiver.calls.filter((call) => call.epoch === first!.epoch && call.arrivedAt > begun), []);
        assertGreater(wokenAt, begun);
      }),
    );
  }
});
