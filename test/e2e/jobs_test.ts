import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertGreaterOrEqual, assertLess } from '@std/assert';
import { tally } from '../../demo/accounting.ts';
import { json, post, request, scene, type TestNode, until } from './cluster_process.ts';

interface JobView {
  readonly id: string;
  readonly runs: number;
  readonly failures: number;
  readonly skipped: number;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly nextDue: string | null;
}

async function jobOf(node: TestNode, id: string): Promise<JobView> {
  return await json<JobView>(await request(node, `/jobs/${id}`));
}

describe('jobs', () => {
  test(
    'any node reaches the one scheduler: post, list, show, delete',
    scene(async (s) => {
      const receiver = await s.receiver();
      const [bun, deno, node] = await s.cluster(['bun', 'deno', 'node']) as [TestNode, TestNode, TestNode];
      const url = receiver.url('/hook');
      for (const [index, from] of [bun, deno, node].entries()) {
        const response = await post(from, '/jobs', { id: `job${index}`, everyMs: 100, url });
        assertEquals(response.status, 201, await response.text());
      }
      await until('ten runs of each', 30_000, () => {
        const runs = (id: string) => receiver.calls.filter((call) => call.id === id).length;
        return ['job0', 'job1', 'job2'].every((id) => runs(id) >= 10) || undefined;
      });
      for (const call of receiver.calls) {
        assertEquals([call.host, call.epoch], [bun.line.address, receiver.calls[0]!.epoch]);
      }
      assertGreater(receiver.calls[0]!.epoch, 0);
      for (const from of [bun, deno, node]) {
        const { jobs, total } = await json<{ jobs: JobView[]; total: number }>(await request(from, '/jobs'));
        assertEquals([jobs.map((job) => job.id).join(), total], ['job0,job1,job2', 3]);
        const job = await jobOf(from, 'job1');
        assertGreaterOrEqual(job.runs, 10);
        assertEquals([job.failures, job.lastStatus], [0, 204]);
        assert(job.nextDue !== null && Number.isFinite(Date.parse(job.nextDue)));
      }
      const skipped = (await jobOf(node, 'job0')).skipped;
      const sum = tally(receiver.calls.filter((call) => call.id === 'job0'), 100, skipped);
      assertEquals([sum.lost, sum.doubled], [0, 0]);

      assertEquals((await request(deno, '/jobs/job1', { method: 'DELETE' })).status, 204);
      assertEquals((await request(node, '/jobs/job1')).status, 404);
      assertEquals((await request(bun, '/jobs/job1', { method: 'DELETE' })).status, 404);
    }),
  );

  test(
    'posting an id again replaces its schedule and keeps its run count; a single run runs once',
    scene(async (s) => {
      const receiver = await s.receiver();
      const [node] = await s.cluster(['node']) as [TestNode];
      await post(node, '/jobs', { id: 'tick', everyMs: 50, url: receiver.url('/a') });
      await until('three runs', 30_000, () => receiver.calls.length >= 3 || undefined);
      assertEquals((await post(node, '/jobs', { id: 'tick', everyMs: 60, url: receiver.url('/b') })).status, 201);
      const first = await until(
        'a run of the new schedule',
        30_000,
        () => receiver.calls.find((call) => call.path === '/b'),
      );
      const before = receiver.calls.filter((call) => call.path === '/a');
      assertEquals(first.run, before.at(-1)!.run + 1);

      const at = new Date(Date.now() + 300).toISOString();
      assertEquals((await post(node, '/jobs', { id: 'once', at, url: receiver.url('/once') })).status, 201);
      const once = await until('the single run', 30_000, () => receiver.calls.find((call) => call.id === 'once'));
      assertEquals([once.run, new Date(once.dueAt).toISOString()], [1, at]);
      const shown = await until('its result', 30_000, async () => {
        const job = await jobOf(node, 'once');
        return job.lastStatus === null ? undefined : job;
      });
      assertEquals([shown.runs, shown.nextDue], [1, null]);
    }),
  );

  for (const runtime of ['bun', 'deno', 'node'] as const) {
    test(
      `fifty jobs every 200 ms beside slow, dead and failing targets: none is delayed or lost (${runtime})`,
      scene(async (s) => {
        const receiver = await s.receiver();
        const [node] = await s.cluster([runtime]) as [TestNode];
        const bad = [
          receiver.url('/hang'),
          receiver.url('/slow/700'),
          receiver.url('/status/500'),
          'http://127.0.0.1:1/',
        ];
        for (let index = 0; index < 80; index++) {
          await post(node, '/jobs', { id: `bad${index}`, everyMs: 100, url: bad[index % bad.length] });
        }
        for (let index = 0; index < 50; index++) {
          await post(node, '/jobs', { id: `good${index}`, everyMs: 200, url: receiver.url('/hook') });
        }
        await until('twenty runs of each good job', 40_000, () => {
          const good = receiver.calls.filter((call) => call.path === '/hook');
          return good.length >= 50 * 20 || undefined;
        });
        const { jobs } = await json<{ jobs: JobView[] }>(await request(node, '/jobs'));
        const good = jobs.filter((job) => job.id.startsWith('good'));
        const sum = tally(
          receiver.calls.filter((call) => call.path === '/hook'),
          200,
          good.reduce((skips, job) => skips + job.skipped, 0),
        );
        assertEquals([sum.lost, sum.doubled], [0, 0]);
        // A busy machine may cost a tick here and there, a slow target must not.
        assertLess(sum.skipped, sum.due / 10);
        assertEquals(good.reduce((failures, job) => failures + job.failures, 0), 0);

        const [hang, slow, failing, dead] = [0, 1, 2, 3].map((index) => jobs.find((job) => job.id === `bad${index}`)!);
        assertEquals(hang!.lastStatus, null);
        assertLess(hang!.runs, 10);
        assertGreater(hang!.skipped, 5);
        assertGreater(slow!.skipped, 5);
        assertEquals([failing!.lastStatus, failing!.failures > 0], [500, true]);
        assertEquals([dead!.lastStatus, dead!.failures > 0], [null, true]);
      }),
    );
  }

  test(
    'a bad request is 400 with the field and the rule, on every runtime',
    scene(async (s) => {
      const nodes = await s.cluster(['deno', 'bun', 'node']);
      const url = 'http://127.0.0.1:9/';
      const bad: readonly (readonly [unknown, string])[] = [
        ['{"id":', 'body'],
        [{ id: 'a', everyMs: -1, url }, 'everyMs'],
        [{ id: 'a', everyMs: 1000, url: 'ftp://x/' }, 'url'],
        [{ id: 'a', everyMs: 1000, url, extra: 1 }, 'extra'],
        [{ id: 'a', at: '2001-01-01T00:00:00Z', url }, 'at'],
      ];
      for (const node of nodes) {
        for (const [body, field] of bad) {
          const response = await post(node, '/jobs', body);
          const { error } = await json<{ error: { field: string; rule: string } }>(response);
          assertEquals([response.status, error.field], [400, field]);
          assertGreater(error.rule.length, 5);
        }
      }
    }),
  );
});
