import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { RingQueue } from '../../src/actor/ring_queue.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';

test('a ring queue behaves like an array', () => {
  const queue = new RingQueue<number>();
  const model: number[] = [];
  const random = seededRandom(3);
  assertEquals(queue.shift(), undefined);
  for (let i = 0; i < 20_000; i += 1) {
    // Long phases of filling and of emptying, so that it grows and wraps.
    if (random.next() < (Math.floor(i / 500) % 2 === 0 ? 0.7 : 0.3)) {
      queue.push(i);
      model.push(i);
    } else {
      assertEquals(queue.shift(), model.shift());
    }
    assertEquals(queue.length, model.length);
  }
});
