import { afterEach, describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { fastPaths } from '../../src/fast_paths.ts';
import { FlushSchedule } from '../../src/transport/flush_schedule.ts';

function world(withSoon = true) {
  const soon: (() => void)[] = [];
  const turns: (() => void)[] = [];
  const log: string[] = [];
  const time = { now: 0 };
  const schedule = new FlushSchedule(
    { now: () => time.now, wall: () => 0 },
    { schedule: (run) => void turns.push(run), ...(withSoon ? { soon: (run) => void soon.push(run) } : {}) },
    () => void log.push('flush'),
    (run) => {
      try {
        run();
      } catch {
        log.push('threw');
      }
    },
  );
  const end = (queue: (() => void)[]) => queue.splice(0).forEach((run) => run());
  return { schedule, soon, turns, log, end, time };
}

describe('flush schedule', () => {
  afterEach(() => void (fastPaths.soonFrames = true));

  test('what a callback sends leaves at its end, and what follows at once at the end of the turn', () => {
    const { schedule, soon, turns, log, end, time } = world();
    schedule.book();
    schedule.book();
    assertEquals([soon.length, turns.length, log], [1, 0, []]);
    end(soon);
    assertEquals(log, ['flush']);
    for (let step = 0; step < 100; step += 1) {
      schedule.book();
      end(soon);
    }
    assertEquals([log, turns.length], [['flush'], 1]);
    end(turns);
    assertEquals([log, turns.length], [['flush', 'flush'], 0]);
    time.now += 1;
    schedule.book();
    assertEquals([soon.length, turns.length], [1, 0]);
  });

  test('what must run before runs once, and one that throws keeps nothing back', () => {
    const { schedule, soon, turns, log, end } = world();
    schedule.before(() => {
      throw new Error('broken');
    });
    schedule.before(() => log.push('late'));
    end(soon);
    assertEquals(log, ['threw', 'late', 'flush']);
    schedule.before(() => log.push('later'));
    end(turns);
    assertEquals(log.slice(3), ['later', 'flush']);
  });

  test('what is asked for while it sends waits for the next turn', () => {
    const { schedule, turns, log, end } = world(false);
    schedule.before(() => schedule.before(() => log.push('second')));
    end(turns);
    assertEquals([log, turns.length], [['flush'], 1]);
    end(turns);
    assertEquals([log, turns.length], [['flush', 'second', 'flush'], 0]);
  });

  test('without turns that have an end of a callback, or switched off, there is one flush a turn', () => {
    for (const withSoon of [true, false]) {
      fastPaths.soonFrames = !withSoon;
      const { schedule, soon, turns, log, end } = world(withSoon);
      schedule.book();
      assertEquals([soon.length, turns.length], [0, 1]);
      end(turns);
      assertEquals(log, ['flush']);
    }
  });
});
