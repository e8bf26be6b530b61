/** Readers take their time, and the journal takes no more than it needs. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertMatch, assertRejects } from '@std/assert';
import { FileJournal } from '../../../src/persistence/file_journal/file_journal.ts';
import { RecoveryError } from '../../../src/persistence/mod.ts';
import { Codec } from '../../../src/wire/codec.ts';
import { DecodeError } from '../../../src/wire/errors.ts';
import { writerOf } from '../../contract/journal_contract.ts';
import { MemoryFileSystem } from './memory_file_system.ts';

const events = 20_000;

async function filled(): Promise<{ system: MemoryFileSystem; journal: FileJournal; bytes: number }> {
  const system = new MemoryFileSystem();
  const journal = await FileJournal.open({ system, directory: '/data/journal' });
  const { writer } = await journal.claim('a', writerOf(1));
  const writes = Array.from({ length: events }, (_, index) => {
    const event = { payload: { index, text: 'x'.repeat(80) }, tags: ['all'] };
    return journal.append('a', [event], index, writer);
  });
  await Promise.all(writes);
  const bytes = [...system.files.values()].reduce((sum, file) => sum + file.content.length, 0);
  return { system, journal, bytes };
}

describe('reading a file journal', () => {
  test('R131, FB-112: a reader that is slow or stops early costs no more than a window of the file', async () => {
    const { system, journal, bytes } = await filled();
    const reads = () => system.operations.filter((operation) => operation.startsWith('read ')).length;
    for (const reader of [journal.read('a'), journal.readByTag('all')]) {
      const before = reads();
      const iterator = reader[Symbol.asyncIterator]();
      for (let count = 0; count < 100; count += 1) assert((await iterator.next()).done !== true);
      assertEquals(reads() - before, 1);
      await iterator.return?.();
      assertEquals(reads() - before, 1);
    }
    const before = reads();
    let count = 0;
    for await (const { sequenceNr } of journal.read('a')) assertEquals(sequenceNr, count += 1);
    assertEquals(count, events);
    // 16 KiB at first, twice as many each time, 256 KiB in the end; and a record on the edge is read twice.
    const windows = Math.ceil(bytes / (256 * 1_024)) + 5;
    assert(reads() - before <= windows + 1, `${reads() - before} reads for ${windows} windows`);
  });

  test('an event that cannot be decoded is named', async () => {
    const { system } = await filled();
    class Forgetful extends Codec {
      override decode(): unknown {
        throw new DecodeError('a class that is not known');
      }
    }
    const journal = await FileJournal.open({ system, directory: '/data/journal', codec: new Forgetful() });
    for (const reader of [journal.read('a', 7), journal.readByTag('all')]) {
      const error = await assertRejects(() => reader.next(), RecoveryError, 'a class that is not known');
      assertMatch(error.message, /^'a' cannot recover: event [17] cannot be decoded/);
    }
  });

  test('R131: readers go on beside writers, and end where the journal ended when they were asked', async () => {
    const { journal } = await filled();
    const iterator = journal.read('a', events - 10)[Symbol.asyncIterator]();
    const first = await iterator.next();
    assertEquals(first.done === true ? undefined : first.value.sequenceNr, events - 10);
    await journal.append('a', [{ payload: 'later' }], events, writerOf(1));
    let last = 0;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      last = next.value.sequenceNr;
    }
    assertEquals(last, events);
  });
});
