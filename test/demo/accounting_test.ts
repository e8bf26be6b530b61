import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import { hostings, tally } from '../../demo/accounting.ts';
import type { ReceivedCall } from '../../demo/receiver.ts';
import { type Facts, report } from '../../demo/report.ts';

interface Brief {
  readonly id?: string;
  readonly epoch?: number;
}

/** Calls of one job: run numbers and due times as given, arriving at the due time. */
function calls(
  runs: readonly (readonly [run: number, dueAt: number])[],
  { id = 'a', epoch = 1 }: Brief = {},
): ReceivedCall[] {
  return runs.map(([run, dueAt]) => ({ arrivedAt: dueAt, path: '/', id, run, epoch, host: `h${epoch}`, dueAt }));
}

describe('accounting of the demonstration', () => {
  test('a whole chain: nothing lost, nothing doubled', () => {
    const all = [...calls([[1, 200], [2, 400], [3, 600]]), ...calls([[1, 210], [2, 410]], { id: 'b' })];
    assertEquals(tally(all, 200, 0), { due: 5, delivered: 5, skipped: 0, lost: 0, doubled: 0 });
  });

  test('a missing run number is lost', () => {
    assertEquals(tally(calls([[1, 200], [3, 600]]), 200, 0).lost, 1);
    assertEquals(tally(calls([[2, 400]]), 200, 0).lost, 1);
    assertEquals(tally(calls([[1, 200], [3, 600]]), 200, 1).lost, 1);
  });

  test('a tick nobody ran is lost unless the scheduler says it skipped it', () => {
    assertEquals(tally(calls([[1, 200], [2, 600]]), 200, 0).lost, 1);
    assertEquals(tally(calls([[1, 200], [2, 600]]), 200, 1), { due: 3, delivered: 2, skipped: 1, lost: 0, doubled: 0 });
  });

  test('the same run twice, or the same due time under two numbers, is doubled', () => {
    assertEquals(tally(calls([[1, 200], [1, 200], [2, 400]]), 200, 0).doubled, 1);
    assertEquals(tally(calls([[1, 200], [2, 200], [3, 400]]), 200, 0).doubled, 1);
  });

  test('hostings are told apart by epoch, with gaps and stale calls', () => {
    const all = [...calls([[1, 200], [2, 400]]), ...calls([[3, 600]], { epoch: 5 })];
    all.push({ ...all[0]!, arrivedAt: 700 });
    const [first, second] = hostings(all);
    assertEquals([first?.epoch, first?.stale, first?.gapMs], [1, 1, undefined]);
    assertEquals([second?.epoch, second?.host, second?.stale], [5, 'h5', 0]);
    assertEquals(second?.gapMs, -100);
  });
});

describe('report of the demonstration', () => {
  const good: Facts = {
    calls: [
      ...calls([[1, 200], [2, 400]]),
      ...calls([[3, 600], [4, 800]], { epoch: 2 }),
      ...calls([[1, 2000], [2, 2200]], { epoch: 3 }),
    ],
    everyMs: 200,
    ends: ['SIGTERM', 'SIGKILL'],
    nameOf: (address) => address,
    skipped: [0, 0, 0],
    crashGapMs: 400,
    epochBeforeJoin: 3,
    epochAfterJoin: 3,
  };

  function broken(change: Partial<Facts>): string {
    return report({ ...good, ...change }).broken.join('; ');
  }

  test('a good story breaks no promise and shows each host', () => {
    const { lines, broken } = report(good);
    assertEquals(broken, []);
    for (const text of ['h1', 'h2', 'h3', 'SIGTERM', 'SIGKILL', '400 ms', 'lost']) {
      assertStringIncludes(lines.join('\n'), text);
    }
  });

  test('each host is counted with its share of the chain', () => {
    // Run 3 was lost in the move; one tick was skipped by the second host.
    const moved = [
      ...calls([[1, 200], [2, 400]]),
      ...calls([[4, 800], [5, 1200]], { epoch: 2 }),
      ...calls([[1, 2000], [2, 2200]], { epoch: 3 }),
    ];
    const rows = report({ ...good, calls: moved, skipped: [0, 1, 0] }).lines.slice(2).map((line) =>
      line.trim().split(/ {2,}/)
    );
    assertEquals(rows.map((row) => row.slice(4)), [
      ['2', '2', '0', '0', '0'],
      ['4', '2', '1', '1', '0'],
      ['2', '2', '0', '0', '0'],
    ]);
  });

  test('each broken promise is named', () => {
    assertStringIncludes(broken({ crashGapMs: 3_001 }), 'gap of a crash');
    assertStringIncludes(broken({ epochAfterJoin: 4 }), 'join');
    assertStringIncludes(broken({ calls: good.calls.filter((call) => call.run !== 3) }), 'no run lost');
    assertStringIncludes(broken({ calls: [...good.calls, good.calls[5]!] }), 'doubled');
    assertStringIncludes(broken({ calls: good.calls.filter((call) => call.epoch !== 3) }), 'hosts in turn');
    const late = { ...good.calls[1]!, run: 9, dueAt: 1800, arrivedAt: 2100 };
    assertStringIncludes(broken({ calls: [...good.calls, late] }), 'never two');
    const slow = good.calls.map((call) => call.epoch === 2 ? { ...call, arrivedAt: call.arrivedAt + 1_100 } : call);
    assertStringIncludes(broken({ calls: slow }), 'planned move');
  });
});
