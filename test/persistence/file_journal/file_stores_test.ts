/** The stores of one directory together: their options, their lock, and what a failed start leaves. */
import { describe, test } from 'node:test';
import { assertEquals, assertRejects } from '@std/assert';
import { OptionsError } from '../../../src/actor/options.ts';
import { openStores } from '../../../src/persistence/file_journal/file_stores.ts';
import { StorageError, StoreLockedError } from '../../../src/persistence/mod.ts';
import { collect, eventsOf, writerOf } from '../../contract/journal_contract.ts';
import { failure, lonelyWorld, MemoryFileSystem } from './memory_file_system.ts';

describe('file stores', () => {
  test('bad options are refused by name before anything is touched', async () => {
    const system = new MemoryFileSystem();
    const world = { system, lockWorld: lonelyWorld() };
    await assertRejects(() => openStores(world, ''), OptionsError, 'directory');
    await assertRejects(() => openStores(world, '/data/x', { keepSnapshots: -1 }), OptionsError, 'keepSnapshots');
    await assertRejects(() => openStores(world, '/data/x', { segmentBytes: 0 }), OptionsError, 'segmentBytes');
    assertEquals(system.operations, []);
  });

  test('a start that fails half-way gives the directory back', async () => {
    const system = new MemoryFileSystem();
    const world = { system, lockWorld: lonelyWorld() };
    system.fault = (operation, path) => {
      if (operation === 'mkdir' && path.endsWith('/snapshots')) throw failure('ENOSPC', path);
    };
    await assertRejects(() => openStores(world, '/data/x'), StorageError, 'ENOSPC');
    system.fault = undefined;
    const stores = await openStores(world, '/data/x');
    await assertRejects(() => openStores(world, '/data/x'), StoreLockedError);
    const { writer } = await stores.journal.claim('a', writerOf(1));
    await stores.journal.append('a', eventsOf(1), 0, writer);
    await stores.durableState.claim('a', writerOf(1));
    await stores.close();
    const again = await openStores(world, '/data/x');
    assertEquals((await collect(again.journal.read('a'))).length, 1);
    await again.close();
  });
});
