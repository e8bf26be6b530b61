/** What every store of durable states must do. Run by each implementation against itself. */
import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertRejects } from '@std/assert';
import { FencedError, OptionsError } from '../../src/mod.ts';
import { DurableStateConcurrencyError, type DurableStateStore } from '../../src/persistence/mod.ts';
import { writerOf } from './journal_contract.ts';

export interface DurableStateUnderTest {
  readonly store: DurableStateStore;
  readonly reopen: (() => Promise<DurableStateStore>) | undefined;
  readonly end: () => Promise<void>;
}

export function durableStateContract(
  name: string,
  open: () => Promise<DurableStateUnderTest>,
  options: { readonly skip?: string | false } = {},
): void {
  const { skip = false } = options;
  describe(`durable state contract: ${name}`, { skip }, () => {
    const on = (title: string, run: (store: DurableStateStore, under: DurableStateUnderTest) => Promise<void>) =>
      test(title, { skip }, async () => {
        const under = await open();
        try {
          await run(under.store, under);
        } finally {
          await under.end();
        }
      });

    on('R134: keeps the latest state and its revision', async (store, { reopen }) => {
      assertEquals(await store.load('a'), undefined);
      const { writer, highestSeq } = await store.claim('a', writerOf(1));
      assertEquals(highestSeq, 0);
      let revision = 0;
      for (let n = 1; n <= 40; n += 1) revision = await store.save('a', revision, { value: { n }, version: n }, writer);
      assertEquals(revision, 40);
      const again = reopen === undefined ? store : await reopen();
      assertEquals(await again.load('a'), { value: { n: 40 }, revision: 40, version: 40 });
    });

    on('R134: a wrong revision is refused, a negative one is an argument error', async (store) => {
      const { writer } = await store.claim('a', writerOf(1));
      await store.save('a', 0, { value: 1 }, writer);
      const error = await assertRejects(
        () => store.save('a', 0, { value: 2 }, writer),
        DurableStateConcurrencyError,
      );
      assertEquals([error.expected, error.actual], [0, 1]);
      await assertRejects(() => store.save('a', 2, { value: 2 }, writer), DurableStateConcurrencyError);
      await assertRejects(() => store.save('a', -1, { value: 2 }, writer), OptionsError, 'revision');
      assertEquals((await store.load('a'))?.value, 1);
      const race = await Promise.allSettled([2, 3, 4].map((value) => store.save('a', 1, { value }, writer)));
      assertEquals(race.filter((one) => one.status === 'fulfilled').length, 1);
      for (const one of race) {
        if (one.status === 'rejected') assertInstanceOf(one.reason, DurableStateConcurrencyError);
      }
    });

    on('S5: an older epoch is fenced', async (store) => {
      const { writer: old } = await store.claim('a', writerOf(1));
      await store.save('a', 0, { value: 1 }, old);
      const { writer } = await store.claim('a', writerOf(2));
      await assertRejects(() => store.save('a', 1, { value: 'late' }, old), FencedError);
      assertEquals(await store.save('a', 1, { value: 2 }, writer), 2);
      assertEquals((await store.load('a'))?.value, 2);
    });
  });
}
