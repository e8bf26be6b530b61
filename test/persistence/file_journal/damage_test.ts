/** Files that are changed, cut, swapped, lost or doubled behind the stores' back: what is read is true, or it is refused. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { checkJournal, repairJournal } from '../../../src/persistence/file_journal/check_journal.ts';
import { type FileStores, openStores } from '../../../src/persistence/file_journal/file_stores.ts';
import { StorageError, StoreDamagedError } from '../../../src/persistence/mod.ts';
import { seededRandom } from '../../../src/testkit/manual_environment.ts';
import { collect, writerOf } from '../../contract/journal_contract.ts';
import { lonelyWorld, MemoryFileSystem } from './memory_file_system.ts';

const directory = '/data/stores';
const ids = ['a', 'b', 'c'];
const seeds = 250;
const text = (id: string, seq: number) => `${id}${seq}:${'.'.repeat((seq * 37) % 90)}`;

const open = (system: MemoryFileSystem, pid: number): Promise<FileStores> =>
  openStores({ system, lockWorld: lonelyWorld(pid) }, directory, { segmentBytes: 500 });

/** Three openings, so that there are sealed segments, a manifest with heads, and an end that is not sealed. */
async function filled(): Promise<{ system: MemoryFileSystem; counts: Map<string, number> }> {
  const system = new MemoryFileSystem();
  const counts = new Map<string, number>();
  for (let pid = 1; pid <= 3; pid += 1) {
    const stores = await open(system, pid);
    for (const id of ids) {
      const { writer, highestSeq } = await stores.journal.claim(id, writerOf(pid));
      let seq = highestSeq;
      for (let turn = 0; turn < 6; turn += 1) {
        const events = [1, 2].map((n) => ({ payload: text(id, seq + n), tags: ['all'] }));
        await stores.journal.append(id, events, seq, writer);
        seq += 2;
      }
      counts.set(id, seq);
      await stores.snapshots.save(id, { sequenceNr: seq, state: text(id, seq), version: 1 });
      const state = await stores.durableState.claim(id, writerOf(pid));
      await stores.durableState.save(id, state.highestSeq, { value: text(id, pid) }, state.writer);
    }
    if (pid === 2) await stores.journal.delete('c', 9);
    await stores.close();
  }
  return { system, counts };
}

type Random = () => number;
interface Fault {
  readonly kind: string;
  readonly path: string;
  /** Whether a crash could have left it: an end that was cut off, or zeros in its place. */
  readonly tail: boolean;
}

const folder = (path: string) => path.slice(0, path.lastIndexOf('/'));

function spoil(system: MemoryFileSystem, random: Random): Fault {
  const below = (end: number) => Math.floor(random() * end);
  const paths = [...system.files.keys()].sort();
  const path = paths[below(paths.length)] as string;
  const beside = paths.filter((one) => folder(one) === folder(path));
  const other = beside[below(beside.length)] as string;
  const bytes = system.content(path).slice();
  const at = below(bytes.length);
  const tail = beside.filter((one) => one.endsWith('.seg')).at(-1) === path;
  const kinds: Record<string, () => boolean> = {
    'flipped bit': () => {
      bytes[at] = (bytes[at] as number) ^ (1 << below(8));
      system.put(path, bytes);
      return false;
    },
    'zeroed stretch': () => {
      bytes.fill(0, at, at + 1 + below(64));
      system.put(path, bytes);
      return tail;
    },
    'noise': () => {
      for (let index = at; index < Math.min(bytes.length, at + 40); index += 1) bytes[index] = below(256);
      system.put(path, bytes);
      return false;
    },
    'cut': () => {
      system.put(path, bytes.slice(0, at));
      return tail;
    },
    'emptied': () => {
      system.put(path, new Uint8Array(0));
      return false;
    },
    'removed': () => {
      system.files.delete(path);
      return false;
    },
    'other version': () => {
      bytes[8] = 99;
      system.put(path, bytes);
      return false;
    },
    'stretch taken out': () => {
      const size = 1 + below(80);
      system.put(path, new Uint8Array([...bytes.slice(0, at), ...bytes.slice(at + size)]));
      return tail && at + size >= bytes.length;
    },
    'stretch doubled': () => {
      const size = 1 + below(200);
      system.put(path, new Uint8Array([...bytes.slice(0, at + size), ...bytes.slice(at)]));
      return false;
    },
    'replaced by another': () => {
      system.put(path, system.content(other).slice());
      return false;
    },
    'swapped': () => {
      system.put(path, system.content(other).slice());
      system.put(other, bytes);
      return false;
    },
    'doubled under the next number': () => {
      const number = /(\d{10})\.seg$/.exec(path)?.[1];
      const copy = number === undefined
        ? `${path}.copy`
        : path.replace(number, String(Number(number) + 50).padStart(10, '0'));
      system.put(copy, bytes);
      return false;
    },
  };
  const names = Object.keys(kinds);
  const kind = names[below(names.length)] as string;
  return { kind, path, tail: (kinds[kind] as () => boolean)() };
}

/** Everything that can be read is as it was written, and nothing is missing where nothing may be. */
async function look(
  stores: FileStores,
  counts: Map<string, number>,
  { mayMiss, mayHaveGaps }: { readonly mayMiss: boolean; readonly mayHaveGaps: boolean },
): Promise<void> {
  for (const id of ids) {
    const highest = await stores.journal.highestSeq(id);
    const count = counts.get(id) as number;
    assert(mayMiss ? highest <= count : highest === count, `${id} ends with ${highest}, and ${count} were written`);
    let last = id === 'c' ? 9 : 0;
    for (const event of await collect(stores.journal.read(id))) {
      assert(
        event.sequenceNr > last && (mayHaveGaps || event.sequenceNr === last + 1),
        `${id}: ${event.sequenceNr} after ${last}`,
      );
      last = event.sequenceNr;
      assertEquals(event.payload, text(id, last));
    }
    assert(last === highest || mayMiss, `${id}: events up to ${last} of ${highest}`);
    const snapshot = await stores.snapshots.loadLatest(id);
    if (snapshot !== undefined) assertEquals(snapshot.state, text(id, snapshot.sequenceNr));
    const state = await stores.durableState.load(id);
    if (!mayMiss) assertEquals(state?.revision, 3);
    if (state !== undefined) assertEquals(state.value, text(id, state.revision));
  }
  for (const event of await collect(stores.journal.readByTag('all'))) {
    assertEquals(event.payload, text(event.persistenceId, event.sequenceNr));
  }
}

function assertClear(error: unknown): void {
  const fine = (error instanceof StoreDamagedError || error instanceof StorageError) &&
    error.message.includes(directory);
  assert(fine, `no clear error: ${String(error)}`);
}

/** What came of it: read all the same, refused, or refused and then repaired. */
async function outcome(system: MemoryFileSystem, counts: Map<string, number>, { tail }: Fault): Promise<string> {
  const reports = await checkJournal(system, directory);
  const damaged = reports.some((report) => report.damage !== undefined);
  let stores: FileStores;
  try {
    stores = await open(system.after('process'), 10);
  } catch (error) {
    assertClear(error);
    assert(damaged, `check has found nothing, and opening has: ${String(error)}`);
    if (!reports.every((report) => report.damage === undefined || report.wouldDrop !== undefined)) return 'refused';
    await repairJournal({ system, lockWorld: lonelyWorld(11) }, directory);
    const left = (await checkJournal(system, directory)).flatMap((report) => report.damage?.message ?? []);
    assertEquals(left, []);
    await look(await open(system, 12), counts, { mayMiss: true, mayHaveGaps: true });
    return 'repaired';
  }
  assert(!damaged, 'check has found damage, and opening has not');
  await look(stores, counts, { mayMiss: tail, mayHaveGaps: false });
  await stores.close();
  return 'read';
}

describe('file stores: damaged files', () => {
  test('whatever is done to a file, what is read was written, and what is missing is said', {
    timeout: 120_000,
  }, async () => {
    const { system: good, counts } = await filled();
    await look(await open(good.after('process'), 9), counts, { mayMiss: false, mayHaveGaps: false });
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= seeds; seed += 1) {
      const system = good.after('process');
      const random = seededRandom(seed);
      const fault = spoil(system, () => random.next());
      try {
        outcomes.add(await outcome(system, counts, fault));
      } catch (error) {
        throw new Error(`seed ${seed}: ${fault.kind} ${fault.path}: ${String(error)}`, { cause: error });
      }
    }
    assertEquals([...outcomes].sort(), ['read', 'refused', 'repaired']);
  });
});
