import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { CallOutcome, JobCall } from '../../node/job.ts';
import { JobTable } from '../../node/job_table.ts';
import { decodeRow, encodeOpenRow } from '../../node/job_table_state.ts';
import { limits } from '../../src/limits.ts';

const url = 'http://127.0.0.1:9000/hook';
const ok: CallOutcome = { status: 200, error: undefined, tookMs: 5 };

function brief(calls: readonly JobCall[]): string[] {
  return calls.map((call) => `${call.id}#${call.run}@${call.dueAt}`);
}

/** What a successor has after a crash, when everything had been kept. */
function crashed(old: JobTable, now: number): JobTable {
  const next = new JobTable();
  next.adopt(Array.from(old.jobs(), encodeOpenRow).map(decodeRow), now);
  return next;
}

describe('job table, after a crash', () => {
  test('a run whose end is not known is made again under its number and due time, then the next one', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    assertEquals(brief(old.due(200)), ['tick#1@200']);
    const next = crashed(old, 450);
    const again = next.due(450);
    assertEquals(brief(again), ['tick#1@200']);
    next.ended(again[0]!, ok);
    assertEquals(brief(next.due(600)), ['tick#2@600']);
    // Of the grid 200, 400, 600 the one that passed meanwhile is counted.
    assertEquals([next.get('tick')?.runs, next.get('tick')?.skipped], [2, 1]);
  });

  test('a run whose end is known is not made again', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    old.ended(old.due(200)[0]!, ok);
    const next = crashed(old, 250);
    assertEquals(brief(next.due(250)), []);
    assertEquals(brief(next.due(400)), ['tick#2@400']);
  });

  test('a single run is made again too, and its job is not dropped to make room before that', () => {
    const old = new JobTable();
    old.put({ id: 'once', url, at: 100 }, 0);
    old.due(100);
    const next = crashed(old, 200);
    for (let index = 1; index < limits.jobs; index++) next.put({ id: `j${index}`, url, everyMs: 1_000_000 }, 200);
    assertEquals(next.put({ id: 'more', url, everyMs: 1_000 }, 200).kind, 'full');
    const again = next.due(200);
    assertEquals(brief(again), ['once#1@100']);
    next.ended(again[0]!, ok);
    assertEquals(next.put({ id: 'more', url, everyMs: 1_000 }, 200).kind, 'created');
  });

  test('two crashes in a row, the second before the run could begin again', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    old.due(200);
    const next = crashed(crashed(old, 250), 300);
    assertEquals(next.get('tick')?.nextDue, new Date(200).toISOString());
    assertEquals(brief(next.due(300)), ['tick#1@200']);
  });

  test('a job that is replaced before its run is made again: that run, then those of the new schedule', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    old.due(200);
    const next = crashed(old, 250);
    assertEquals(next.put({ id: 'tick', url: `${url}2`, at: 260 }, 250).kind, 'replaced');
    const again = next.due(251);
    assertEquals(brief(again), ['tick#1@200']);
    assertEquals(brief(next.due(260)), []);
    assertEquals(again[0]!.url, `${url}2`);
    assertEquals(brief(next.ended(again[0]!, ok)), ['tick#2@260']);
  });

  test('a job that is deleted before its run is made again has no run any more', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    old.due(200);
    const next = crashed(old, 250);
    assertEquals(next.remove('tick'), true);
    assertEquals(brief(next.due(1_000)), []);
  });
});

describe('job table, what is to be kept', () => {
  test('accepted and deleted jobs, beginnings and ends of runs; not refused jobs, and no skipped ticks', () => {
    const told: string[] = [];
    const table = new JobTable((id, what) => told.push(`${id} ${what}`));
    const since = () => told.splice(0);
    table.put({ id: 'a', url, everyMs: 100 }, 0);
    table.put({ id: 'a', url, everyMs: 100 }, 0);
    table.put({ id: 'past', url, at: -100_000 }, 0);
    assertEquals(since(), ['a definition']);
    const [call] = table.due(100);
    assertEquals(since(), ['a run']);
    table.due(200);
    table.due(300);
    assertEquals(since(), []);
    table.ended(call!, ok);
    assertEquals(since(), ['a run']);
    table.remove('a');
    table.remove('a');
    assertEquals(since(), ['a definition']);
  });

  test('a job that is dropped to make room', () => {
    const told: string[] = [];
    const table = new JobTable((id, what) => told.push(`${id} ${what}`));
    table.put({ id: 'once', url, at: 100 }, 0);
    table.ended(table.due(100)[0]!, ok);
    for (let index = 1; index < limits.jobs; index++) table.put({ id: `j${index}`, url, everyMs: 1_000_000 }, 200);
    told.length = 0;
    table.put({ id: 'more', url, everyMs: 1_000 }, 200);
    assertEquals(told, ['once definition', 'more definition']);
  });
});
