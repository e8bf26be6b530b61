/** One directory, owned by one process after the other: what an owner that was killed, or only stopped, can do to the next. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects } from '@std/assert';
import { FileJournal } from '../../../src/persistence/file_journal/file_journal.ts';
import { FileSnapshotStore } from '../../../src/persistence/file_journal/file_snapshot_store.ts';
import type { FileSystem } from '../../../src/persistence/file_journal/file_system.ts';
import { openStores } from '../../../src/persistence/file_journal/file_stores.ts';
import { manifestEpoch, manifestName } from '../../../src/persistence/file_journal/manifest.ts';
import { StorageError } from '../../../src/persistence/mod.ts';
import { deferred } from '../../actor/system_fixture.ts';
import { collect, eventsOf, writerOf } from '../../contract/journal_contract.ts';
import { failure, lonelyWorld, MemoryFileSystem } from './memory_file_system.ts';

const directory = '/data/journal';
const open = (system: FileSystem, epoch: number, segmentBytes = 100_000) =>
  FileJournal.open({ system, directory, epoch, segmentBytes });
const numbers = async (journal: FileJournal) => (await collect(journal.read('a'))).map((event) => event.sequenceNr);

/** The same file system, where an operation that `stopAt` names waits until it is let go. */
function stopping(system: FileSystem, stopAt: (operation: string, path: string) => boolean) {
  const reached = deferred<void>();
  const goOn = deferred<void>();
  const pass = async (operation: string, path: string) => {
    if (!stopAt(operation, path)) return;
    reached.resolve();
    await goOn.promise;
  };
  const stopped: FileSystem = {
    ...system,
    makeDirectory: (path) => system.makeDirectory(path),
    list: (path) => system.list(path),
    syncDirectory: (path) => system.syncDirectory(path),
    open: (path, mode) => pass(`open ${mode}`, path).then(() => system.open(path, mode)),
    rename: (from, to) => pass('rename', to).then(() => system.rename(from, to)),
    remove: (path) => pass('remove', path).then(() => system.remove(path)),
  };
  return { stopped, reached: reached.promise, goOn: () => goOn.resolve() };
}

describe('owners of a directory', () => {
  test('what a killed owner had written and not synced is made durable before anything follows it', async () => {
    const system = new MemoryFileSystem();
    const first = await open(system, 1);
    const { writer } = await first.claim('a', writerOf(1));
    await first.append('a', eventsOf(1), 0, writer);
    system.fault = (operation) => {
      // Killed here: the write is in the kernel's cache, and nobody syncs it any more.
      if (operation === 'sync') throw failure('EIO', 'killed');
      if (operation === 'truncate') throw failure('EIO', 'killed');
    };
    await assertRejects(() => first.append('a', eventsOf(2), 1, writer), StorageError);
    system.fault = undefined;
    const second = await open(system.after('process'), 2);
    assertEquals(await numbers(second), [1, 2]);
    const again = system.after('process');
    const third = await open(again, 2);
    const claim = await third.claim('a', writerOf(2));
    await third.append('a', eventsOf(3), claim.highestSeq, claim.writer);
    const left = await open(again.after('power'), 3);
    assertEquals(await numbers(left), [1, 2, 3]);
  });

  for (
    const [what, stopAt] of [
      ['making a segment', (operation: string, path: string) => operation === 'open create' && path.endsWith('.seg')],
      ['replacing the manifest', (operation: string, path: string) => operation === 'rename' && /MANIFEST/.test(path)],
      ['removing files', (operation: string) => operation === 'remove'],
    ] as const
  ) {
    test(`S5: an owner that stood still while ${what} does nothing to its successor when it wakes`, async () => {
      const system = new MemoryFileSystem();
      const before = await open(system, 1);
      const claimed = await before.claim('a', writerOf(1));
      await before.append('a', eventsOf(1, 2), 0, claimed.writer);
      await before.close();
      let armed = false;
      const { stopped, reached, goOn } = stopping(system, (operation, path) => armed && stopAt(operation, path));
      armed = true;
      const old = open(stopped, 2, 150).catch((error) => error);
      await reached;
      armed = false;
      const young = await open(system, 3);
      const { writer, highestSeq } = await young.claim('a', writerOf(3));
      await young.append('a', eventsOf(3), highestSeq, writer);
      goOn();
      await old;
      await young.append('a', eventsOf(4), 3, writer);
      await young.close();
      assertEquals(await numbers(await open(system, 4)), [1, 2, 3, 4]);
    });
  }

  test('a write that fails cuts nothing off: a successor may have read it', async () => {
    const system = new MemoryFileSystem();
    const old = await open(system, 1);
    const { writer } = await old.claim('a', writerOf(1));
    await old.append('a', eventsOf(1), 0, writer);
    system.fault = (operation) => {
      if (operation === 'sync') throw failure('EIO', 'disk');
    };
    await assertRejects(() => old.append('a', eventsOf(2), 1, writer), StorageError);
    system.fault = undefined;
    const young = await open(system, 2);
    assertEquals(await numbers(young), [1, 2]);
    const claim = await young.claim('a', writerOf(2));
    await young.append('a', eventsOf(3), 2, claim.writer);
    // The old one goes on as if nothing had happened, and nothing does.
    await old.append('a', eventsOf('other'), 1, writer).catch(() => {});
    await young.close();
    assertEquals(await numbers(await open(system, 3)), [1, 2, 3]);
  });

  test('an owner with an epoch that was used already is refused', async () => {
    const system = new MemoryFileSystem();
    await (await open(system, 5)).close();
    await assertRejects(() => open(system, 4), StorageError, 'epoch 5');
    assertEquals([manifestName(0), manifestName(7)], ['MANIFEST', 'MANIFEST.7']);
    assertEquals(['MANIFEST', 'MANIFEST.7', 'MANIFEST.7.tmp', 'MANIFEST.07'].map(manifestEpoch), [
      0,
      7,
      undefined,
      undefined,
    ]);
  });

  test('deleted lock files do not take the epochs back', async () => {
    const system = new MemoryFileSystem();
    for (let time = 0; time < 3; time += 1) {
      const stores = await openStores({ system, lockWorld: lonelyWorld() }, '/data/x');
      const { writer, highestSeq } = await stores.journal.claim('a', writerOf(1));
      await stores.journal.append('a', eventsOf(time), highestSeq, writer);
      await stores.close();
      for (const path of [...system.files.keys()]) if (path.includes('LOCK.')) system.files.delete(path);
    }
    const stores = await openStores({ system, lockWorld: lonelyWorld() }, '/data/x');
    assertEquals((await collect(stores.journal.read('a'))).length, 3);
  });

  test('FB-120: a directory of snapshots that is away for a moment is an error, and not the absence of snapshots', async () => {
    const system = new MemoryFileSystem();
    const store = await FileSnapshotStore.open({ system, directory: '/data/s' });
    assertEquals(await store.loadLatest('a'), undefined);
    await store.save('a', { sequenceNr: 1, state: 1, version: 0 });
    for (const operation of ['list', 'open read']) {
      let away = true;
      system.fault = (done, path) => {
        if (!away || done !== operation || !path.includes('id-a')) return;
        away = false;
        throw failure('ENOENT', path);
      };
      await assertRejects(() => store.loadLatest('a'), StorageError, 'ENOENT');
      assert(!away);
      assertEquals((await store.loadLatest('a'))?.sequenceNr, 1);
    }
  });
});
