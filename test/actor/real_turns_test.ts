import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { realTurns } from '../../src/actor/real_turns.ts';

const now = (): number => performance.now();

/** Runs `body` as on a runtime that lacks these globals. */
async function without(names: readonly string[], body: () => Promise<void>): Promise<void> {
  const globals = globalThis as unknown as Record<string, unknown>;
  const saved = names.map((name) => globals[name]);
  for (const name of names) globals[name] = undefined;
  try {
    await body();
  } finally {
    for (const [i, name] of names.entries()) globals[name] = saved[i];
  }
}

const kinds: readonly (readonly [string, readonly string[]])[] = [
  ['setImmediate', []],
  ['channels', ['setImmediate']],
  ['timers alone', ['setImmediate', 'MessageChannel']],
];

describe('real turns', () => {
  for (const [label, missing] of kinds) {
    test(`${label}: each run comes in a later turn, in order`, () =>
      without(missing, async () => {
        const turns = realTurns(now);
        const order: string[] = [];
        const done = new Promise<void>((resolve) => {
          turns.schedule(() => order.push('first'));
          turns.schedule(() => {
            order.push('second');
            resolve();
          });
        });
        order.push('sync');
        await Promise.resolve();
        order.push('microtask');
        await done;
        assertEquals(order, ['sync', 'microtask', 'first', 'second']);
      }));

    test(`${label}: continuous work lets timers fire`, () =>
      without(missing, async () => {
        const turns = realTurns(now);
        let fired = 0;
        const timer = setInterval(() => fired += 1, 1);
        let count = 0;
        await new Promise<void>((resolve) => {
          const work = (): void => {
            count += 1;
            const until = now() + 0.2;
            while (now() < until);
            if (fired >= 5) resolve();
            else turns.schedule(work);
          };
          turns.schedule(work);
        });
        clearInterval(timer);
        assert(count > 1);
      }));
  }

  test('while there is continuous work, one turn in 5 ms is a timer', async () => {
    let immediates = 0;
    const globals = globalThis as unknown as { setImmediate: unknown };
    const saved = globals.setImmediate as (run: () => void) => unknown;
    globals.setImmediate = (run: () => void) => {
      immediates += 1;
      return saved(run);
    };
    let time = 0;
    const turns = realTurns(() => time);
    globals.setImmediate = saved;
    const kindsOfTurns: string[] = [];
    for (let i = 0; i < 16; i += 1) {
      const before = immediates;
      await new Promise<void>((resolve) => {
        turns.schedule(() => {
          time += 1;
          resolve();
        });
      });
      kindsOfTurns.push(immediates > before ? 'i' : 't');
    }
    assertEquals(kindsOfTurns.join(''), 'iiiiitiiiitiiiit');
    time += 1_000;
    const before = immediates;
    await new Promise<void>((resolve) => turns.schedule(resolve));
    assertEquals(immediates, before + 1, 'after a rest the count starts anew');
  });

  test('soon runs at the end of the present callback', async () => {
    const turns = realTurns(now);
    const order: string[] = [];
    turns.soon?.(() => order.push('soon'));
    order.push('sync');
    await Promise.resolve();
    assertEquals(order, ['sync', 'soon']);
  });
});
