import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { CallSlots } from '../../node/call_slots.ts';
import { type Job, type Lane, newJob } from '../../node/job.ts';
import { limits } from '../../src/limits.ts';

function job(id: string, url: string, lane: Lane = 'new'): Job {
  return { ...newJob({ id, url, everyMs: 1_000 }, 1), lane };
}

function takeAll(slots: CallSlots): string[] {
  const ids: string[] = [];
  for (let next = slots.take(); next !== undefined; next = slots.take()) ids.push(next.id);
  return ids;
}

describe('slots for calls in flight', () => {
  test('targets take turns, the jobs of each go in their order', () => {
    const slots = new CallSlots();
    for (const id of ['a1', 'a2', 'a3']) slots.wait(job(id, 'http://a/'));
    for (const id of ['b1', 'b2']) slots.wait(job(id, 'http://b/'));
    assertEquals(takeAll(slots), ['a1', 'b1', 'a2', 'b2', 'a3']);
    assertEquals(slots.inFlight, 5);
  });

  test('a job of another target starts at once beside a thousand that wait for a dead one', () => {
    const slots = new CallSlots();
    for (let i = 0; i < 1_000; i++) slots.wait(job(`dead${i}`, `http://dead/hook?job=${i}`));
    assertEquals(takeAll(slots).length, limits.jobNewPerTarget);
    slots.wait(job('fresh', 'http://dead/other'));
    assertEquals(takeAll(slots), ['fresh']);
  });

  test('whatever slow and new jobs take, good ones find room', () => {
    const slots = new CallSlots();
    for (let i = 0; i < 1_000; i++) {
      slots.wait(job(`new${i}`, `http://new${i}/`));
      slots.wait(job(`slow${i}`, `http://slow${i}/`, 'slow'));
    }
    assertEquals(takeAll(slots).length, limits.jobNewConcurrency + limits.jobSlowConcurrency);
    for (let i = 0; i < 1_000; i++) slots.wait(job(`good${i}`, 'http://good/', 'good'));
    const good = takeAll(slots).length;
    assertEquals(good, limits.jobConcurrency - limits.jobNewConcurrency - limits.jobSlowConcurrency);
    assertEquals(slots.inFlight, limits.jobConcurrency);
  });

  test('an ended call makes room in its lane and for its target', () => {
    const slots = new CallSlots();
    for (let i = 0; i <= limits.jobSlowPerTarget; i++) slots.wait(job(`s${i}`, 'http://a/x', 'slow'));
    assertEquals(takeAll(slots).length, limits.jobSlowPerTarget);
    slots.release('slow', 'http://a/x#fragment');
    assertEquals(takeAll(slots), [`s${limits.jobSlowPerTarget}`]);
    for (let i = 0; i < limits.jobSlowPerTarget; i++) slots.release('slow', 'http://a/x');
    assertEquals(slots.inFlight, 0);
  });

  test('a job that stops waiting is not taken', () => {
    const slots = new CallSlots();
    const [first, second] = [job('first', 'http://a/'), job('second', 'http://a/')];
    slots.wait(first);
    slots.wait(second);
    slots.stopWaiting(first);
    slots.stopWaiting(first);
    assertEquals(takeAll(slots), ['second']);
  });
});
