import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { drainPromises } from '../../src/testkit/drain.ts';

/** Counts its steps, each a promise reaction that the one before made ready. */
async function chain(length: number, seen: { steps: number }): Promise<void> {
  for (let step = 0; step < length; step++) {
    await Promise.resolve();
    seen.steps++;
  }
}

async function drained(): Promise<number> {
  const seen = { steps: 0 };
  chain(5_000, seen).catch(() => undefined);
  await drainPromises();
  return seen.steps;
}

describe('drainPromises', () => {
  test('lets every reaction run that earlier ones make ready', async () => {
    assertEquals(await drained(), 5_000);
  });

  test('does so whatever it is called from', async () => {
    const fromTimer = new Promise<number>((resolve) => void setTimeout(() => resolve(drained()), 0));
    assertEquals(await fromTimer, 5_000);
    const { process } = globalThis as { process?: { nextTick(run: () => void): void } };
    assertEquals(await new Promise<number>((resolve) => process?.nextTick(() => resolve(drained()))), 5_000);
  });

  test('keeps neither timers nor reactions from running, however often it is called', async () => {
    let rung = false;
    setTimeout(() => (rung = true), 0);
    for (let i = 0; i < 20_000 && !rung; i++) assertEquals(await drainedBriefly(), 3);
    assertEquals(rung, true);
  });
});

async function drainedBriefly(): Promise<number> {
  const seen = { steps: 0 };
  chain(3, seen).catch(() => undefined);
  await drainPromises();
  return seen.steps;
}
