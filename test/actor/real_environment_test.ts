import { describe, test } from 'node:test';
import { assert, assertEquals, assertMatch } from '@std/assert';
import { realEnvironment, uid } from '../../src/actor/real_environment.ts';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('the real environment', () => {
  test('the clock goes forward, and the wall clock is that of the machine', async () => {
    const { clock } = realEnvironment();
    const before = clock.now();
    await sleep(5);
    assert(clock.now() > before);
    assert(Math.abs(clock.wall() - Date.now()) < 1_000);
  });

  test('timers fire once, and not after they were cancelled', async () => {
    const { timers } = realEnvironment();
    let fired = 0;
    timers.set(1, () => fired += 1);
    const cancel = timers.set(1, () => fired += 100);
    cancel();
    cancel();
    await sleep(50);
    assertEquals(fired, 1);
  });

  test('S2: a timer never fires before its time, also when it is set in the middle of a long callback', async () => {
    const { clock, timers } = realEnvironment();
    const early: number[] = [];
    let left = 0;
    for (let n = 0; n < 100; n += 1) {
      const delay = 1 + n * 0.37;
      left += 1;
      const set = clock.now();
      timers.set(delay, () => {
        left -= 1;
        if (clock.now() < set + delay) early.push(set + delay - clock.now());
      });
      for (const until = clock.now() + 0.2; clock.now() < until;);
    }
    while (left > 0) await sleep(5);
    assertEquals(early, []);
  });

  for (const delay of [2 ** 31, 2 ** 40, Infinity]) {
    test(`FB-131: a delay of ${delay} ms does not fire at once`, async () => {
      const { timers } = realEnvironment();
      let fired = false;
      const cancel = timers.set(delay, () => fired = true);
      await sleep(30);
      cancel();
      assertEquals(fired, false);
    });
  }

  for (const delay of [-1, NaN]) {
    test(`a delay of ${delay} ms is 0`, async () => {
      const { timers } = realEnvironment();
      await new Promise<void>((resolve) => {
        timers.set(delay, resolve);
        setTimeout(() => {}, 50);
      });
    });
  }

  test('random numbers are in [0, 1), and spread', () => {
    const { random } = realEnvironment();
    const drawn = Array.from({ length: 10_000 }, () => random.next());
    assert(drawn.every((value) => value >= 0 && value < 1));
    const mean = drawn.reduce((sum, value) => sum + value, 0) / drawn.length;
    assert(mean > 0.45 && mean < 0.55, `mean ${mean}`);
    assertEquals(new Set(drawn).size, drawn.length);
  });

  test('uids are 32 hexadecimal digits and differ', () => {
    const drawn = Array.from({ length: 100 }, uid);
    for (const one of drawn) assertMatch(one, /^[0-9a-f]{32}$/);
    assertEquals(new Set(drawn).size, 100);
  });
});
