import { test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { parseSchedule } from '../../src/singleton/schedule.ts';
import { singletonTask, type TaskRun } from '../../src/singleton/task.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';

const at = (text: string): number => Date.parse(text);

test('schedules: periods on a grid, and cron in UTC', () => {
  assertEquals(parseSchedule({ everyMs: 1_000 }).next(1_500), 2_000);
  assertEquals(parseSchedule({ everyMs: 1_000 }).next(2_000), 3_000);
  const cases: [string, string, string][] = [
    ['0 3 * * *', '2026-01-01T03:00:00Z', '2026-01-02T03:00:00Z'],
    ['*/15 * * * *', '2026-01-01T10:07:30Z', '2026-01-01T10:15:00Z'],
    ['30 9-17/2 * * 1-5', '2026-01-02T17:30:00Z', '2026-01-05T09:30:00Z'],
    ['0 0 29 2 *', '2026-03-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['0 12 1 * 7', '2026-01-01T12:00:00Z', '2026-01-04T12:00:00Z'],
    ['5,10 0 * 12 *', '2026-11-30T00:00:00Z', '2026-12-01T00:05:00Z'],
  ];
  for (const [cron, from, due] of cases) assertEquals(parseSchedule({ at: cron }).next(at(from)), at(due), cron);
  assertEquals(parseSchedule({ at: '0 0 31 2 *' }).next(at('2026-01-01T00:00:00Z')), undefined);
});

test('bad schedules are refused, each with its field', () => {
  const bad: [object, string][] = [
    [{}, 'everyMs'],
    [{ everyMs: 0 }, 'everyMs'],
    [{ everyMs: NaN }, 'everyMs'],
    [{ everyMs: 1, at: '* * * * *' }, 'everyMs'],
    [{ at: '* * * *' }, 'at'],
    [{ at: '60 * * * *' }, 'at'],
    [{ at: '* * 5-3 * *' }, 'at'],
    [{ at: '*/0 * * * *' }, 'at'],
    [{ at: 'noon' }, 'at'],
  ];
  for (const [schedule, field] of bad) {
    const error = assertThrows(() => parseSchedule(schedule as never), OptionsError) as OptionsError;
    assertEquals(error.field, field);
  }
});

test('R148: a task runs once in the cluster at each due time, over a planned move too', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const runs: (TaskRun & { at: string })[] = [];
  for (const { cluster: each } of cluster.nodes) {
    singletonTask(each, 'report', { everyMs: 1_000 }, (run) => void runs.push({ ...run, at: each.address }));
  }
  await cluster.until(() => runs.length === 3);
  const first = cluster.nodes[0]!.address;
  await cluster.leave(cluster.nodes[0]!);
  await cluster.until(() => runs.length === 7);
  for (const [index, run] of runs.entries()) {
    assertEquals(run.dueAt, runs[0]!.dueAt + 1_000 * index, 'none missed, none twice');
  }
  assertEquals([runs[0]!.at, runs[6]!.at], [first, cluster.nodes[0]!.address]);
});

test('R148: a run that takes longer than the period makes the next be missed; one that throws has run', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const dues: number[] = [];
  const { environment } = cluster;
  singletonTask(cluster.nodes[0]!.cluster, 'slow', { everyMs: 1_000 }, async ({ dueAt }) => {
    dues.push(dueAt);
    await new Promise<void>((resolve) => void environment.timers.set(1_500, resolve));
    throw new Error('no luck');
  });
  await cluster.until(() => dues.length === 4);
  assertEquals(dues.map((due) => due - dues[0]!), [0, 2_000, 4_000, 6_000]);
  assertStringIncludes(environment.logged.find((entry) => entry.message.includes('a run failed'))!.message, 'failed');
});
