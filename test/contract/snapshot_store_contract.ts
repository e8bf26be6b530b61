/** What every snapshot store must do. Run by each implementation against itself. */
import { describe, test } from 'node:test';
import { assertEquals, assertRejects } from '@std/assert';
import { OptionsError } from '../../src/mod.ts';
import type { SnapshotStore } from '../../src/persistence/mod.ts';
import { SerializationError } from '../../src/wire/errors.ts';

export interface SnapshotStoreUnderTest {
  readonly store: SnapshotStore;
  readonly end: () => Promise<void>;
}

export function snapshotStoreContract(
  name: string,
  /** `keepN` undefined: the default. */
  open: (keepN: number | undefined) => Promise<SnapshotStoreUnderTest>,
  options: { readonly defaultKeepN: number; readonly skip?: string | false },
): void {
  const { skip = false, defaultKeepN } = options;
  describe(`snapshot store contract: ${name}`, { skip }, () => {
    const on = (title: string, keepN: number | undefined, run: (store: SnapshotStore) => Promise<void>) =>
      test(title, { skip }, async () => {
        const under = await open(keepN);
        try {
          await run(under.store);
        } finally {
          await under.end();
        }
      });
    const save = async (store: SnapshotStore, id: string, ...numbers: number[]) => {
      for (const sequenceNr of numbers) await store.save(id, { sequenceNr, state: { at: sequenceNr }, version: 7 });
    };

    on('R132: saves, and loads the latest and the one before a number', 0, async (store) => {
      assertEquals(await store.loadLatest('a'), undefined);
      await save(store, 'a', 10, 30, 20);
      await save(store, 'b', 5);
      assertEquals(await store.loadLatest('a'), { sequenceNr: 30, state: { at: 30 }, version: 7 });
      assertEquals((await store.loadBefore('a', 30))?.sequenceNr, 20);
      assertEquals((await store.loadBefore('a', 21))?.sequenceNr, 20);
      assertEquals(await store.loadBefore('a', 10), undefined);
      assertEquals(await store.list('a'), [10, 20, 30]);
      assertEquals(await store.list('nobody'), []);
    });

    on('R132: deletes up to a number, inclusive', 0, async (store) => {
      await save(store, 'a', 10, 20, 30);
      await store.delete('a', 20);
      assertEquals(await store.list('a'), [30]);
      await store.delete('a', 99);
      assertEquals(await store.loadLatest('a'), undefined);
      await store.delete('nobody', 1);
    });

    on('R132: keeps the newest keepN', 2, async (store) => {
      await save(store, 'a', 1, 2, 3, 4);
      assertEquals(await store.list('a'), [3, 4]);
    });

    on('R132: the default of keepN', undefined, async (store) => {
      await save(store, 'a', 1, 2, 3, 4, 5);
      assertEquals((await store.list('a')).length, defaultKeepN === 0 ? 5 : defaultKeepN);
    });

    on('one of the same number is replaced', 0, async (store) => {
      await save(store, 'a', 1);
      await store.save('a', { sequenceNr: 1, state: 'other', version: 0 });
      assertEquals(await store.loadLatest('a'), { sequenceNr: 1, state: 'other', version: 0 });
      assertEquals(await store.list('a'), [1]);
    });

    on('R135: the state is taken at the time of the call and goes through the codec', 0, async (store) => {
      const state = { list: [1], when: new Date(9) };
      const saved = store.save('a', { sequenceNr: 1, state, version: 0 });
      state.list.push(2);
      await saved;
      assertEquals((await store.loadLatest('a'))?.state, { list: [1], when: new Date(9) });
      await assertRejects(
        () => store.save('a', { sequenceNr: 2, state: { f: () => {} }, version: 0 }),
        SerializationError,
      );
      assertEquals(await store.list('a'), [1]);
    });

    on('R130: ids and numbers are checked', 0, async (store) => {
      for (const id of ['', '..', 'a/b', 'x'.repeat(256)]) {
        await assertRejects(() => store.save(id, { sequenceNr: 1, state: 1, version: 0 }), OptionsError);
      }
      await assertRejects(() => store.save('a', { sequenceNr: -1, state: 1, version: 0 }), OptionsError);
      const ids = ['A', 'a', 'ü'.repeat(255), `${'ü'.repeat(254)}x`, '%41', 'con', ' .', '*'];
      for (const id of ids) await store.save(id, { sequenceNr: 1, state: id, version: 0 });
      for (const id of ids) assertEquals((await store.loadLatest(id))?.state, id);
    });
  });
}
