import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLessOrEqual, assertThrows } from '@std/assert';
import type { CallOutcome, JobCall } from '../../node/job.ts';
import { JobTable } from '../../node/job_table.ts';
import { decodeTable, encodeTable } from '../../node/job_table_state.ts';
import { limits } from '../../src/limits.ts';

const url = 'http://127.0.0.1:9000/hook';
const ok: CallOutcome = { status: 200, error: undefined, tookMs: 5 };
const timedOut: CallOutcome = { status: undefined, error: 'no answer within 5000 ms', tookMs: 5_000 };

function brief(calls: readonly JobCall[]): string[] {
  return calls.map((call) => `${call.id}#${call.run}@${call.dueAt}`);
}

/** Ends every call at once. */
function endAll(table: JobTable, calls: readonly JobCall[], outcome: CallOutcome = ok): void {
  for (const call of calls) table.ended(call, outcome);
}

describe('job table', () => {
  test('runs a periodic job on its grid, counting from 1', () => {
    const table = new JobTable();
    assertEquals(table.put({ id: 'tick', url, everyMs: 1_000 }, 50_000).kind, 'created');
    assertEquals(table.nextWakeAt(), 51_000);
    assertEquals(brief(table.due(50_999)), []);
    const first = table.due(51_003);
    assertEquals(brief(first), ['tick#1@51000']);
    endAll(table, first);
    assertEquals(table.nextWakeAt(), 52_000);
    assertEquals(brief(table.due(52_000)), ['tick#2@52000']);
  });

  test('a late scheduler runs the latest tick and counts the earlier ones as skipped', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 100 }, 0);
    assertEquals(brief(table.due(1_050)), ['tick#1@1000']);
    assertEquals(table.get('tick')?.skipped, 9);
    assertEquals(table.nextWakeAt(), 1_100);
  });

  test('a job whose last run has not ended skips that tick and delays no other', () => {
    const table = new JobTable();
    table.put({ id: 'slow', url, everyMs: 100 }, 0);
    table.put({ id: 'fast', url, everyMs: 100 }, 0);
    const [slow, fast] = table.due(100) as [JobCall, JobCall];
    table.ended(fast, ok);
    assertEquals(brief(table.due(200)), ['fast#2@200']);
    assertEquals(table.get('slow')?.skipped, 1);
    table.ended(slow, ok);
    assertEquals(brief(table.due(300)), ['slow#2@300']);
  });

  test('counts failures: no answer, or a status that is not 2xx', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 100 }, 0);
    endAll(table, table.due(100), timedOut);
    endAll(table, table.due(200), { status: 302, error: undefined, tookMs: 1 });
    endAll(table, table.due(300), { status: 204, error: undefined, tookMs: 1 });
    const view = table.get('tick')!;
    assertEquals([view.runs, view.failures, view.lastStatus, view.lastError], [3, 2, 204, null]);
    assertEquals(view.nextDue, '1970-01-01T00:00:00.400Z');
  });

  test('a single run happens once and stays visible', () => {
    const table = new JobTable();
    table.put({ id: 'once', url, at: 5_000 }, 0);
    const calls = table.due(5_000);
    assertEquals(brief(calls), ['once#1@5000']);
    endAll(table, calls);
    assertEquals(table.nextWakeAt(), undefined);
    assertEquals(table.get('once')?.nextDue, null);
    assertEquals(table.get('once')?.runs, 1);
  });

  test('a single run in the past is refused, one within the clock tolerance runs at once', () => {
    const table = new JobTable();
    const refused = table.put({ id: 'once', url, at: 1_000 }, 60_000);
    assert(refused.kind === 'refused' && refused.refusal.field === 'at');
    assertEquals(table.put({ id: 'once', url, at: 59_000 }, 60_000).kind, 'created');
    assertEquals(brief(table.due(60_000)), ['once#1@59000']);
  });

  test('a single run posted while the last run of that job goes on is not skipped', () => {
    const table = new JobTable();
    table.put({ id: 'job', url, everyMs: 100 }, 0);
    const [running] = table.due(100) as [JobCall];
    table.put({ id: 'job', url, at: 150 }, 120);
    assertEquals(brief(table.due(150)), []);
    assertEquals(brief(table.ended(running, ok)), ['job#2@150']);
  });

  test('posting an id again replaces its schedule and keeps its run count', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 100 }, 0);
    endAll(table, table.due(100));
    assertEquals(table.put({ id: 'tick', url, everyMs: 1_000 }, 150).kind, 'replaced');
    assertEquals(brief(table.due(1_149)), []);
    assertEquals(brief(table.due(1_150)), ['tick#2@1150']);
  });

  test('posting the same job again changes nothing, so that a repeated request never postpones it', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 1_000 }, 0);
    assertEquals(table.put({ id: 'tick', url, everyMs: 1_000 }, 900).kind, 'unchanged');
    assertEquals(brief(table.due(1_000)), ['tick#1@1000']);
  });

  test('the result of a deleted job is not counted for a later one of the same name', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 100 }, 0);
    const [old] = table.due(100) as [JobCall];
    assert(table.remove('tick'));
    assert(!table.remove('tick'));
    table.put({ id: 'tick', url, everyMs: 100 }, 110);
    table.ended(old, timedOut);
    assertEquals(table.get('tick')?.failures, 0);
    assertEquals(table.callsInFlight, 0);
    assertEquals(brief(table.due(210)), ['tick#1@210']);
  });

  test('lists in pages, in the order of ids', () => {
    const table = new JobTable();
    for (const id of ['c', 'a', 'b']) table.put({ id, url, everyMs: 100 }, 0);
    const first = table.page(undefined, 2);
    assertEquals([first.jobs.map((job) => job.id).join(), first.next, first.total], ['a,b', 'b', 3]);
    const second = table.page('b', 2);
    assertEquals([second.jobs.map((job) => job.id).join(), second.next], ['c', undefined]);
  });
});

describe('job table, many jobs', () => {
  test('dead targets hold back only their own jobs', () => {
    const table = new JobTable();
    for (let i = 0; i < 1_000; i++) table.put({ id: `dead${i}`, url, everyMs: 1_000 }, 0);
    const firstCalls = table.due(1_000);
    assertEquals(firstCalls.length, limits.jobNewPerTarget);
    // Each ended call lets another new one begin until all of them have timed out once.
    const pending = [...firstCalls];
    while (pending.length > 0) pending.push(...table.ended(pending.shift()!, timedOut));
    table.put({ id: 'good', url, everyMs: 100 }, 10_000);
    for (let now = 10_100; now <= 11_000; now += 100) {
      const calls = table.due(now).filter((call) => call.id === 'good');
      assertEquals(calls.length, 1, `at ${now}`);
      endAll(table, calls);
    }
    assertLessOrEqual(table.callsInFlight, limits.jobConcurrency);
  });

  test('a due run that finds no free call waits for one and keeps its due time', () => {
    const table = new JobTable();
    for (let i = 0; i <= limits.jobNewPerTarget; i++) table.put({ id: `j${i}`, url, everyMs: 1_000 }, 0);
    const calls = table.due(1_000);
    assertEquals(calls.length, limits.jobNewPerTarget);
    assertEquals(brief(table.ended(calls[0]!, ok)), [`j${limits.jobNewPerTarget}#1@1000`]);
  });

  test('refuses the job above the limit, but makes room by forgetting single runs that are over', () => {
    const table = new JobTable();
    table.put({ id: 'once', url, at: 1_000 }, 0);
    for (let i = 1; i < limits.jobs; i++) table.put({ id: `j${i}`, url, everyMs: 1_000_000 }, 0);
    assertEquals(table.put({ id: 'more', url, everyMs: 1_000 }, 0).kind, 'full');
    endAll(table, table.due(1_000));
    assertEquals(table.put({ id: 'more', url, everyMs: 1_000 }, 1_000).kind, 'created');
    assertEquals(table.get('once'), undefined);
    assertEquals(table.size, limits.jobs);
  });

  test('replacing a job for ever does not grow the queue: due times stay right', () => {
    const table = new JobTable();
    for (let i = 0; i < 10_000; i++) table.put({ id: 'tick', url, everyMs: 1_000 + (i % 2) }, i);
    assertEquals(table.nextWakeAt(), 9_999 + 1_001);
    assertEquals(brief(table.due(9_999 + 1_001)), ['tick#1@11000']);
  });
});

describe('job table, hand-over', () => {
  function moved(from: JobTable, now: number): JobTable {
    const to = new JobTable();
    const state = encodeTable(from);
    assert(state !== null);
    decodeTable(state, to, now);
    return to;
  }

  test('a due time that passes in the gap is run once by the new host, under the next run number', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    endAll(old, old.due(200));
    const next = moved(old, 430);
    assertEquals(brief(next.due(430)), ['tick#2@400']);
    assertEquals(next.get('tick')?.skipped, 0);
    assertEquals(next.nextWakeAt(), 600);
  });

  test('a gap longer than the period skips and counts, it never catches up in a burst', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 0);
    endAll(old, old.due(200));
    const next = moved(old, 1_050);
    assertEquals(brief(next.due(1_050)), ['tick#2@1000']);
    assertEquals(next.get('tick')?.skipped, 3);
  });

  test('counts, single runs, last results and waiting runs go over', () => {
    const old = new JobTable();
    old.put({ id: 'once', url, at: 9_000 }, 0);
    for (let i = 0; i <= limits.jobNewPerTarget; i++) old.put({ id: `j${i}`, url, everyMs: 10_000 }, 0);
    const calls = old.due(10_000);
    endAll(old, calls.slice(0, 0));
    for (const call of calls) if (call.id !== 'once') old.ended(call, { status: 500, error: undefined, tookMs: 1 });
    const next = moved(old, 10_100);
    assertEquals(next.get('j0')?.failures, 1);
    assertEquals(next.get('j0')?.lastStatus, 500);
    assertEquals(next.get('once')?.runs, 1);
    assertEquals(next.get('j0')?.running, false);
  });

  test('a run that waited for a free call is started by the new host', () => {
    const old = new JobTable();
    for (let i = 0; i <= limits.jobNewPerTarget; i++) old.put({ id: `j${i}`, url, everyMs: 10_000 }, 0);
    assertEquals(old.due(10_000).length, limits.jobNewPerTarget);
    const next = moved(old, 10_050);
    assertEquals(brief(next.due(10_050)), [`j${limits.jobNewPerTarget}#1@10000`]);
  });

  test('a wall clock that is far behind does not stall periodic jobs', () => {
    const old = new JobTable();
    old.put({ id: 'tick', url, everyMs: 200 }, 3_600_000);
    const next = moved(old, 1_000);
    assertLessOrEqual(next.nextWakeAt()!, 1_200);
    assertGreater(next.nextWakeAt()!, 999);
  });

  test('a wall clock that goes back by an hour does not stall periodic jobs', () => {
    const table = new JobTable();
    table.put({ id: 'tick', url, everyMs: 200 }, 3_600_000);
    endAll(table, table.due(3_600_200));
    table.due(1_000);
    assertLessOrEqual(table.nextWakeAt()!, 1_200);
  });

  test('an empty table hands over nothing', () => {
    assertEquals(encodeTable(new JobTable()), null);
  });

  test('bytes that are no table are refused and leave the table empty', () => {
    const row = [{ id: 'a', url, everyMs: 100 }, 100, 0, 0, 0, null, null, null, 'new', null];
    const bad: unknown[] = [
      null,
      { version: 2, rows: [] },
      { version: 1 },
      { version: 1, rows: [7] },
      { version: 1, rows: [row, row.with(0, { id: 'a', url: 'ftp://x/', everyMs: 100 })] },
      { version: 1, rows: [row.with(1, 'soon')] },
      { version: 1, rows: [row.with(2, -1)] },
    ];
    for (const state of bad) {
      const table = new JobTable();
      assertThrows(() => decodeTable(new TextEncoder().encode(JSON.stringify(state)), table, 0));
      assertEquals(table.size, 0);
    }
    const table = new JobTable();
    decodeTable(new TextEncoder().encode(JSON.stringify({ version: 1, rows: [row] })), table, 0);
    assertEquals(table.size, 1);
  });
});
