import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLess, assertMatch } from '@std/assert';
import { hostings, tally } from '../../demo/accounting.ts';
import { postJob, skippedTicks } from '../../demo/jobs_client.ts';
import {
  deadlineMs,
  exitOf,
  json,
  post,
  type ReceivedCall,
  request,
  type RuntimeName,
  type Scene,
  scene,
  sleep,
  until,
} from './cluster_process.ts';
import { assertGoesOn, callsAfter, everyMs, idsOf, jobs, postAll, slowCall, specs } from './durable_jobs_scene.ts';

/** A test with a directory of its own, whose parent is there. */
function journalScene(run: (s: Scene, directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const parent = await mkdtemp(`${tmpdir()}/singlet-jobs-`);
    try {
      await scene((s) => run(s, `${parent}/jobs`))();
    } finally {
      await rm(parent, { recursive: true, force: true });
    }
  };
}

describe('jobs in a journal', () => {
  const orders: readonly (readonly RuntimeName[])[] = [
    ['bun', 'node', 'deno'],
    ['node', 'deno', 'bun'],
    ['deno', 'bun', 'node'],
  ];
  for (const kinds of orders) {
    test(
      `SIGKILL of two hosts in a row: the next has the jobs, run numbers go on, only runs in flight come twice (${kinds})`,
      journalScene(async (s, directory) => {
        const receiver = await s.receiver();
        const nodes = await s.cluster(kinds, ['--journal', directory]);
        await postAll(nodes[2]!, receiver);
        let [{ epoch }] = await callsAfter(receiver, 0, 5 * jobs) as [ReceivedCall];
        for (const [index, host] of nodes.slice(0, 2).entries()) {
          const last = await slowCall(receiver);
          const killedAt = performance.now();
          host.process.signal('SIGKILL');
          const calls = await callsAfter(receiver, epoch, 5 * jobs);
          assertEquals(calls[0]!.host, nodes[index + 1]!.line.address);
          const gapMs = calls[0]!.arrivedAt - killedAt;
          // Where Deno is, the lock's process cannot be asked, and it is stale after four seconds without a sign of life.
          assertLess(gapMs, kinds.slice(index, index + 2).includes('deno') ? 9_000 : 3_000);
          console.log(`# SIGKILL, ${kinds.slice(index, index + 2).join(' to ')}: calls after ${gapMs.toFixed(0)} ms`);
          const again = await until('the slow run again', deadlineMs, () => {
            return receiver.calls.find((call) => call.epoch > epoch && call.id === 'slow');
          });
          assertEquals([again.run, again.dueAt], [last.run, last.dueAt]);
          epoch = calls[0]!.epoch;
        }
        assert(assertGoesOn(receiver.calls).includes('slow'));
        assertEquals(await idsOf(nodes[2]!), specs(receiver).map((spec) => spec.id).sort());
      }),
    );

    test(
      `SIGTERM to each host in turn: no run lost or doubled (${kinds})`,
      journalScene(async (s, directory) => {
        const receiver = await s.receiver();
        const nodes = await s.cluster(kinds, ['--journal', directory]);
        await postAll(nodes[2]!, receiver);
        let [{ epoch }] = await callsAfter(receiver, 0, 5 * jobs) as [ReceivedCall];
        for (const [index, host] of nodes.slice(0, 2).entries()) {
          host.process.signal('SIGTERM');
          const [next] = await callsAfter(receiver, epoch, 5 * jobs);
          assertEquals(next!.host, nodes[index + 1]!.line.address);
          assertEquals((await exitOf(host.process)).code, 0);
          epoch = next!.epoch;
        }
        const skipped = await skippedTicks(nodes[2]!.line.url);
        const calls = receiver.calls.filter((call) => call.id !== 'slow');
        const sum = tally(calls, everyMs, skipped);
        assertEquals([sum.lost, sum.doubled], [0, 0], JSON.stringify(sum));
        assertEquals(assertGoesOn(receiver.calls), []);
        for (const hosting of hostings(receiver.calls).slice(1)) assertLess(hosting.gapMs ?? 0, 4_000);
      }),
    );

    test(
      `the whole cluster ends and starts again on the same directory: the jobs are there (${kinds})`,
      journalScene(async (s, directory) => {
        const receiver = await s.receiver();
        const flags = ['--journal', directory];
        const first = await s.cluster(kinds.slice(0, 2), flags);
        await postAll(first[1]!, receiver);
        await callsAfter(receiver, 0, 5 * jobs);
        assertEquals((await request(first[0]!, '/jobs/job3', { method: 'DELETE' })).status, 204);
        for (const node of first) node.process.signal('SIGTERM');
        await Promise.all(first.map((node) => exitOf(node.process)));
        const seen = receiver.calls.length;
        await sleep(300);
        assertEquals(receiver.calls.length, seen);
        const epoch = receiver.calls.at(-1)!.epoch;
        const second = await s.startReady(kinds[2]!, flags);
        await callsAfter(receiver, epoch, 3 * jobs);
        assertEquals(assertGoesOn(receiver.calls), []);

        // Now without a good-bye.
        second.process.signal('SIGKILL');
        await exitOf(second.process);
        const last = receiver.calls.at(-1)!.epoch;
        const third = await s.startReady(kinds[0]!, flags);
        await callsAfter(receiver, last, 3 * jobs);
        assertGoesOn(receiver.calls);
        assertEquals(await idsOf(third), specs(receiver).map((spec) => spec.id).filter((id) => id !== 'job3').sort());
      }),
    );
  }

  for (const runtime of ['bun', 'deno', 'node'] as const) {
    test(
      `a directory that cannot be used: one clear line, 503 with the reason, and it heals by itself (${runtime})`,
      journalScene(async (s, directory) => {
        const receiver = await s.receiver();
        const node = await s.startReady(runtime, ['--journal', `${directory}/below`]);
        const job = { id: 'tick', everyMs, url: receiver.url('/hook') };
        const response = await post(node, '/jobs', job);
        const { error } = await json<{ error: { code: string; message: string } }>(response);
        assertEquals([response.status, error.code], [503, 'not-stored']);
        assertMatch(error.message, /no such file or directory/);
        const lines = node.process.stderr.filter((line) => line.includes('cannot be stored'));
        assertEquals(lines.length, 1);
        assertMatch(lines[0]!, /cannot make .*jobs\/below: there is no such file or directory/);
        await mkdir(directory);
        await postJob(node.line.url, job, deadlineMs);
        await callsAfter(receiver, 0, 3);
      }),
    );
  }

  test(
    'a directory that is removed under its host: the log says what is lost, and the jobs are written again',
    journalScene(async (s, directory) => {
      const flags = ['--journal', directory];
      const node = await s.startReady('deno', flags);
      for (const id of ['a', 'b']) {
        await postJob(node.line.url, { id, everyMs: 3_600_000, url: 'http://127.0.0.1:9/' }, deadlineMs);
      }
      await rm(directory, { recursive: true });
      await postJob(node.line.url, { id: 'c', everyMs: 3_600_000, url: 'http://127.0.0.1:9/' }, deadlineMs);
      assertEquals(node.process.stderr.filter((line) => line.includes('the store has lost 2 jobs')).length, 1);
      node.process.signal('SIGKILL');
      await exitOf(node.process);
      const next = await s.startReady('node', flags);
      await until('the jobs', deadlineMs, async () => (await request(next, '/jobs')).status === 200 || undefined);
      assertEquals(await idsOf(next), ['a', 'b', 'c']);
    }),
  );

  test(
    'a directory that another cluster uses: one clear line that names its process, and it waits for its turn',
    journalScene(async (s, directory) => {
      const receiver = await s.receiver();
      const flags = ['--journal', directory];
      const first = await s.startReady('node', flags);
      await postJob(first.line.url, { id: 'tick', everyMs, url: receiver.url('/hook') }, deadlineMs);
      const second = await s.startReady('bun', flags);
      await until('a line', deadlineMs, () => {
        return second.process.stderr.find((line) => line.includes(`in use by process ${first.process.pid}`));
      });
      first.process.signal('SIGTERM');
      await exitOf(first.process);
      const calls = await until('its calls', deadlineMs, () => {
        const own = receiver.calls.filter((call) => call.host === second.line.address);
        return own.length >= 3 ? own : undefined;
      });
      assertGreater(calls[0]!.run, 1);
      assertEquals(assertGoesOn(receiver.calls), []);
    }),
  );

  test(
    'many runs keep the directory small',
    journalScene(async (s, directory) => {
      const receiver = await s.receiver();
      const node = await s.startReady('bun', ['--journal', directory]);
      for (let index = 0; index < 100; index++) {
        const url = receiver.url(`/hook?${'x'.repeat(500)}`);
        assertEquals((await post(node, '/jobs', { id: `job${index}`, everyMs: 20, url })).status, 201);
      }
      await callsAfter(receiver, 0, 15_000);
      // The node goes on writing: what is being renamed or removed meanwhile is looked at again.
      const bytes = await until('two snapshots in the directory', deadlineMs, async () => {
        const names = await readdir(directory, { recursive: true });
        const files = await Promise.all(names.map((name) => stat(`${directory}/${name}`)));
        if (names.filter((name) => name.endsWith('.snap')).length !== 2) return undefined;
        return files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
      });
      assertLess(bytes, 4 * 1024 * 1024);
    }),
  );
});
