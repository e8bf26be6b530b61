/** Disks that are full, broken, read-only, missing or damaged. */
import { describe, test } from 'node:test';
import { assertEquals, assertMatch, assertRejects } from '@std/assert';
import { checkJournal, repairJournal } from '../../../src/persistence/file_journal/check_journal.ts';
import { FileJournal } from '../../../src/persistence/file_journal/file_journal.ts';
import { FileSnapshotStore } from '../../../src/persistence/file_journal/file_snapshot_store.ts';
import { segmentName } from '../../../src/persistence/file_journal/manifest.ts';
import { StorageError, StoreDamagedError } from '../../../src/persistence/mod.ts';
import { collect, eventsOf, writerOf } from '../../contract/journal_contract.ts';
import { crashes, failure, lonelyWorld, MemoryFileSystem } from './memory_file_system.ts';

const directory = '/data/journal';
const warnings: string[] = [];
const open = (system: MemoryFileSystem, segmentBytes = 10_000) =>
  FileJournal.open({ system, directory, segmentBytes, onWarning: (message) => warnings.push(message) });

const payloads = async (journal: FileJournal, id = 'a') =>
  (await collect(journal.read(id))).map((event) => event.payload);

/** A closed journal of `count` events, and its newest segment. */
async function written(count: number): Promise<{ system: MemoryFileSystem; path: string }> {
  const system = new MemoryFileSystem();
  const journal = await open(system);
  const { writer } = await journal.claim('a', writerOf(1));
  for (let seq = 0; seq < count; seq += 1) await journal.append('a', eventsOf(`event ${seq + 1}`), seq, writer);
  await journal.close();
  return { system, path: `${directory}/${segmentName(1)}` };
}

function changed(bytes: Uint8Array, change: (copy: Uint8Array<ArrayBuffer>) => void): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes);
  change(copy);
  return copy;
}

describe('file journal: failing disks', () => {
  for (const code of ['ENOSPC', 'EIO', 'EROFS', 'EACCES']) {
    for (const where of ['write', 'short write', 'sync', 'write and truncate', 'short write and truncate'] as const) {
      test(`FB-115: ${code} in ${where}: one clear error, nothing lost, and it goes on when the disk does`, async () => {
        const system = new MemoryFileSystem();
        const journal = await open(system);
        const { writer } = await journal.claim('a', writerOf(1));
        await journal.append('a', eventsOf('one', 'two'), 0, writer);
        let count = 0;
        system.fault = (operation) => {
          count += 1;
          if (operation === 'write' && where === 'short write' && count === 1) return 11;
          if (operation === 'write' && where === 'short write and truncate' && count === 1) return 300;
          if (operation === 'write' && where !== 'sync') throw failure(code, 'disk');
          if (operation === 'sync' && where === 'sync') throw failure(code, 'disk');
          if (operation === 'truncate' && where.endsWith('truncate')) throw failure(code, 'disk');
        };
        const long = 'x'.repeat(500);
        for (let tries = 0; tries < 3; tries += 1) {
          const error = await assertRejects(() => journal.append('a', eventsOf(long), 2, writer), StorageError);
          assertEquals(error.code, code);
        }
        assertEquals(await payloads(journal), ['one', 'two']);
        for (const crash of crashes) {
          const found = await payloads(await open(system.after(crash)));
          assertEquals(found.slice(0, 2), ['one', 'two']);
          assertEquals(found.length === 2 || (found.length === 3 && found[2] === long), true);
        }
        system.fault = undefined;
        await journal.append('a', eventsOf('three'), 2, writer);
        assertEquals(await payloads(journal), ['one', 'two', 'three']);
        for (const crash of crashes) {
          assertEquals(await payloads(await open(system.after(crash))), ['one', 'two', 'three'], crash);
        }
      });
    }
  }

  test('a short write that is no failure is completed', async () => {
    const system = new MemoryFileSystem();
    const journal = await open(system);
    system.fault = (operation) => operation === 'write' ? 3 : undefined;
    const { writer } = await journal.claim('a', writerOf(1));
    await journal.append('a', eventsOf('one'), 0, writer);
    assertEquals(await payloads(await open(system.after('power'))), ['one']);
  });

  test('a full disk where a new segment is due costs no append; a lost manifest holds appends until it is written', async () => {
    for (const broken of ['open create', 'rename', 'sync directory']) {
      const system = new MemoryFileSystem();
      const journal = await open(system, 200);
      const { writer } = await journal.claim('a', writerOf(1));
      system.fault = (operation) => {
        if (operation === broken) throw failure('ENOSPC', operation);
      };
      let acked = 0;
      for (let tries = 0; tries < 40; tries += 1) {
        await journal.append('a', eventsOf(acked + 1), acked, writer).then(() => acked += 1, () => {});
      }
      if (broken === 'open create') assertEquals(acked, 40);
      for (const crash of crashes) {
        const found = await payloads(await open(system.after(crash)));
        assertEquals(found, Array.from({ length: acked }, (_, index) => index + 1), `${broken} ${crash}`);
      }
      system.fault = undefined;
      await journal.append('a', eventsOf('more'), acked, writer);
      assertEquals((await payloads(await open(system.after('power')))).at(-1), 'more');
    }
  });

  test('a missing parent directory is one clear error', async () => {
    const error = await assertRejects(
      () => FileJournal.open({ system: new MemoryFileSystem(), directory: '/nowhere/journal' }),
      StorageError,
    );
    assertEquals(error.code, 'ENOENT');
  });

  test('segments whose events are all deleted go, and the numbers stay', async () => {
    const system = new MemoryFileSystem();
    const journal = await open(system, 200);
    const { writer } = await journal.claim('a', writerOf(1));
    for (let seq = 0; seq < 50; seq += 1) await journal.append('a', eventsOf('x'.repeat(20)), seq, writer);
    const before = (await system.list(directory)).length;
    await journal.delete('a', 49);
    assertEquals((await system.list(directory)).length < before / 3, true);
    assertEquals((await payloads(journal)).length, 1);
    await journal.delete('a', 50);
    await journal.close();
    const again = await open(system.after('power'), 200);
    assertEquals(await again.claim('a', writerOf(2)), { writer: writerOf(2), highestSeq: 50, deletedTo: 50 });
    await assertRejects(() => again.claim('a', writerOf(1)), Error, 'claimed by epoch 2');
  });
});

describe('file journal: damage', () => {
  test('FB-117: zeros after the end are cut and reported', async () => {
    for (const zeros of [1, 7, 16, 511, 4_096]) {
      const { system, path } = await written(3);
      const good = system.content(path);
      const size = good.length;
      system.put(path, changed(new Uint8Array(size + zeros), (copy) => copy.set(good)));
      warnings.length = 0;
      const journal = await open(system);
      assertEquals((await payloads(journal)).length, 3);
      assertEquals(journal.cut.map((cut) => [cut.path, cut.position, cut.bytes]), [[path, size, zeros]]);
      assertMatch(warnings.join(), new RegExp(`${zeros} bytes from byte ${size} on are cut off`));
      await journal.close();
      // Shut out for good: the next opening finds nothing new.
      assertEquals((await open(system)).cut, []);
    }
  });

  test('FB-117: other bytes after the end are never data: refused, or cut where they are too short for a record', async () => {
    for (const extra of [7, 64, 4_096]) {
      const { system, path } = await written(3);
      const good = system.content(path);
      const noise = Uint8Array.from({ length: extra }, (_, index) => (index * 151 + 7) % 255 + 1);
      system.put(
        path,
        changed(new Uint8Array(good.length + extra), (copy) => {
          copy.set(good);
          copy.set(noise, good.length);
        }),
      );
      if (extra < 16) {
        assertEquals((await payloads(await open(system))).length, 3);
        continue;
      }
      const error = await assertRejects(() => open(system), StoreDamagedError);
      assertEquals([error.path, error.position], [path, good.length]);
    }
  });

  test('damage in the middle is refused with its position, whatever byte it hits', async () => {
    const { system, path } = await written(4);
    const good = system.content(path).slice();
    const report = await checkJournal(system, '/data');
    assertEquals(report[0]?.damage, undefined);
    for (let at = 0; at < good.length; at += 1) {
      system.put(path, changed(good, (copy) => copy[at] = (copy[at] as number) ^ 0x10));
      const error = await assertRejects(() => open(system), StoreDamagedError, undefined, `byte ${at}`);
      assertEquals(error.path, path);
      assertEquals(error.position <= at, true);
    }
  });

  test('a sealed segment that is shorter or gone, a manifest that is damaged or gone, are refused', async () => {
    const make = async () => {
      const { system, path } = await written(3);
      await (await open(system)).close();
      return { system, path };
    };
    const spoil: ((system: MemoryFileSystem, path: string) => void)[] = [
      (system, path) => system.put(path, system.content(path).slice(0, -1)),
      (system, path) => void system.files.delete(path),
      (system) => void system.files.delete(`${directory}/MANIFEST`),
      (system) => {
        const path = `${directory}/MANIFEST`;
        system.put(path, changed(system.content(path), (copy) => copy[copy.length - 1]! ^= 1));
      },
      (system) => {
        const path = `${directory}/MANIFEST`;
        system.put(path, changed(system.content(path), (copy) => copy[8] = 99));
      },
    ];
    for (const [index, how] of spoil.entries()) {
      const { system, path } = await make();
      how(system, path);
      const error = await assertRejects(() => open(system), StoreDamagedError, undefined, `case ${index}`);
      if (index === 4) assertMatch(error.message, /format version 99; this program reads 1/);
    }
  });

  test('damage that comes while it is open is found by the reader', async () => {
    const system = new MemoryFileSystem();
    const journal = await open(system);
    const { writer } = await journal.claim('a', writerOf(1));
    await journal.append('a', eventsOf('one', 'two'), 0, writer);
    const path = `${directory}/${segmentName(1)}`;
    system.put(path, changed(system.content(path), (copy) => copy[copy.length - 1]! ^= 1));
    await assertRejects(() => payloads(journal), StoreDamagedError);
  });

  test('check says what would go, repair gives up just that and keeps the bytes', async () => {
    const { system, path } = await written(5);
    const good = system.content(path).slice();
    const text = new TextDecoder('latin1').decode(good);
    const at = text.indexOf('event 3');
    system.put(path, changed(good, (copy) => copy[at] = 0));
    const [report] = await checkJournal(system, '/data');
    assertEquals(report?.damage?.path, path);
    assertEquals(report?.wouldDrop?.readableEvents, ['a: 4-5']);
    assertEquals(report?.wouldDrop?.bytes, good.length - (report?.damage?.position ?? 0));
    const dropped = await repairJournal({ system, lockWorld: lonelyWorld() }, '/data');
    assertEquals(dropped.length, 1);
    assertEquals(system.content(`${path}.${report?.damage?.position}.dropped`).length, report?.wouldDrop?.bytes);
    assertEquals((await checkJournal(system, '/data'))[0]?.damage, undefined);
    assertEquals(await payloads(await open(system)), ['event 1', 'event 2']);
  });

  test('FB-120: a damaged snapshot is reported and passed over', async () => {
    const system = new MemoryFileSystem();
    const store = await FileSnapshotStore.open({ system, directory: '/data/s' });
    for (const sequenceNr of [1, 2]) await store.save('a', { sequenceNr, state: { at: sequenceNr }, version: 0 });
    const path = `/data/s/id-a/${'2'.padStart(16, '0')}.snap`;
    const good = system.content(path).slice();
    for (let at = 0; at < good.length; at += 1) {
      system.put(path, changed(good, (copy) => copy[at] = (copy[at] as number) ^ 1));
      const damage: number[] = [];
      assertEquals((await store.loadLatest('a', (one) => damage.push(one.sequenceNr)))?.state, { at: 1 });
      assertEquals(damage, [2]);
    }
    for (let size = 0; size < good.length; size += 1) {
      system.put(path, good.slice(0, size));
      assertEquals((await store.loadLatest('a'))?.state, { at: 1 });
    }
  });
});
