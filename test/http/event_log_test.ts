import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { EventLog } from '../../src/http/event_log.ts';

function filled(count: number, capacity: number): EventLog {
  const log = new EventLog('node-7', capacity);
  for (let i = 1; i <= count; i++) log.append({ kind: 'warning', at: i, text: `event ${i}` });
  return log;
}

const numbers = (events: readonly { number: number }[]) => events.map((event) => event.number);

describe('event log', () => {
  test('keeps the newest', () => {
    const log = filled(12, 5);
    assertEquals(log.size, 5);
    assertEquals(numbers(log.latest(100)), [8, 9, 10, 11, 12]);
    assertEquals(numbers(log.latest(2)), [11, 12]);
    assertEquals(log.latest(0), []);
  });
  test('continues after an id', () => {
    const log = filled(12, 5);
    assertEquals(numbers(log.resume('node-7-10').events), [11, 12]);
    assertEquals(log.resume('node-7-12'), { events: [], gap: false });
    assertEquals(log.resume('node-7-7').gap, false);
  });
  test('tells of a gap: too old, of another start, or no id at all', () => {
    const log = filled(12, 5);
    for (const id of ['node-7-6', 'node-8-10', 'node-7-13', 'node-7-', 'node-7--1', 'node-7-1e1', '', '10']) {
      const { events, gap } = log.resume(id);
      assertEquals([gap, numbers(events)], [true, [8, 9, 10, 11, 12]], id);
    }
  });
  test('an empty log has nothing', () => {
    assertEquals(filled(0, 5).latest(3), []);
    assertEquals(filled(0, 5).resume('node-7-0'), { events: [], gap: false });
  });
});
