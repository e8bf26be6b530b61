/** A crash at every byte that is written and at every operation between. */
import { describe, test } from 'node:test';
import { assertEquals, assertGreater } from '@std/assert';
import { FileJournal } from '../../../src/persistence/file_journal/file_journal.ts';
import { FileSnapshotStore } from '../../../src/persistence/file_journal/file_snapshot_store.ts';
import { collect, eventsOf, writerOf } from '../../contract/journal_contract.ts';
import { type Crash, crashes, MemoryFileSystem } from './memory_file_system.ts';

const directory = '/data';
const slow = { timeout: 60_000 };
const open = (system: MemoryFileSystem) => FileJournal.open({ system, directory, segmentBytes: 200 });

interface Progress {
  /** Highest number that was acknowledged, and that was asked for, by id. */
  readonly acked: Map<string, number>;
  readonly asked: Map<string, number>;
  deletedTo: number;
  deleteAsked: number;
}

/** Two actors that write, one of which deletes, over several segments; ends early when the machine crashes. */
async function work(system: MemoryFileSystem, progress: Progress): Promise<void> {
  const journal = await open(system);
  const write = async (id: string, sizes: readonly number[]) => {
    const { writer } = await journal.claim(id, writerOf(1));
    let seq = 0;
    for (const size of sizes) {
      const numbers = Array.from({ length: size }, (_, index) => seq + index + 1);
      progress.asked.set(id, seq + size);
      await journal.append(id, eventsOf(...numbers.map((number) => `${id}${number}`)), seq, writer);
      seq += size;
      progress.acked.set(id, seq);
      if (id !== 'b' || seq < 3) continue;
      progress.deleteAsked = seq - 2;
      await journal.delete(id, seq - 2);
      progress.deletedTo = seq - 2;
    }
  };
  await Promise.all([write('a', [1, 3, 1, 2]), write('b', [1, 1, 1, 1, 3])]);
  await journal.close();
}

async function crashAt(budget: number): Promise<{ system: MemoryFileSystem; progress: Progress; done: boolean }> {
  const system = new MemoryFileSystem();
  system.budget = budget;
  const progress: Progress = { acked: new Map(), asked: new Map(), deletedTo: 0, deleteAsked: 0 };
  let done = false;
  try {
    await work(system, progress);
    done = true;
  } catch {
    // Crashed.
  }
  return { system, progress, done };
}

/** Ends of appends: an append of several events is never there in part. */
const ends = { a: [0, 1, 4, 5, 7], b: [0, 1, 2, 3, 4, 7] };

async function verify(crashed: MemoryFileSystem, progress: Progress, crash: Crash): Promise<void> {
  const system = crashed.after(crash);
  const journal = await open(system);
  for (const id of ['a', 'b'] as const) {
    const highest = await journal.highestSeq(id);
    const acked = progress.acked.get(id) ?? 0;
    assertEquals(highest >= acked, true, `${id} has ${highest} and ${acked} were acknowledged`);
    assertEquals(highest <= (progress.asked.get(id) ?? 0), true, `${id} has ${highest}, invented`);
    assertEquals(ends[id].includes(highest), true, `${id} ends within an append: ${highest}`);
    const events = await collect(journal.read(id));
    const first = events[0]?.sequenceNr ?? highest + 1;
    assertEquals(events.map((event) => event.payload), range(first, highest).map((number) => `${id}${number}`));
    if (id === 'a') assertEquals(highest === 0 || first === 1, true);
    else {assertEquals(
        first - 1 >= progress.deletedTo && first - 1 <= progress.deleteAsked,
        true,
        `deleted to ${first}`,
      );}
  }
  if ((progress.acked.get('a') ?? 0) > 0) {
    // The claim survived: an older one is fenced.
    const fenced = await journal.claim('a', writerOf(0)).then(() => false, () => true);
    assertEquals(fenced, true);
  }
  const { writer, highestSeq } = await journal.claim('a', writerOf(2));
  await journal.append('a', eventsOf('next'), highestSeq, writer);
  await journal.close();
  const again = await open(system);
  assertEquals((await collect(again.read('a'))).at(-1)?.payload, 'next');
  assertEquals(again.cut, []);
  await again.close();
}

const range = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);

describe('file journal: crash at every byte', () => {
  for (const crash of crashes) {
    test(`FB-115, FB-117: after '${crash}' what was acknowledged is there, and appends are whole`, slow, async () => {
      const whole = await crashAt(Infinity);
      assertEquals(whole.done, true);
      const total = whole.system.spent;
      assertGreater(total, 1_000);
      const segments = whole.system.operations.filter((one) => one.includes('open create') && one.endsWith('.seg'));
      assertGreater(segments.length, 2);
      for (let budget = 0; budget <= total; budget += 1) {
        const { system, progress } = await crashAt(budget);
        try {
          await verify(system, progress, crash);
        } catch (error) {
          throw new Error(`after ${budget} of ${total}: ${(error as Error).message}`, { cause: error });
        }
      }
    });
  }

  test('a sync precedes each acknowledgement', async () => {
    const system = new MemoryFileSystem();
    const journal = await open(system);
    const { writer } = await journal.claim('a', writerOf(1));
    for (let seq = 0; seq < 20; seq += 1) {
      const before = system.operations.length;
      await journal.append('a', eventsOf('x'.repeat(seq)), seq, writer);
      const done = system.operations.slice(before).map((one) => one.replace(/\/data\/\d+\.seg$/, 'segment'));
      assertEquals(done.slice(0, 2), ['write segment', 'sync segment']);
      assertEquals(await open(system.after('power')).then((one) => one.highestSeq('a')), seq + 1);
    }
  });

  test('FB-118: a snapshot is written beside, synced, renamed, and its directory synced', async () => {
    const openStore = (system: MemoryFileSystem) => FileSnapshotStore.open({ system, directory: '/data/s', keepN: 1 });
    const save = async (system: MemoryFileSystem, acked: number[]) => {
      const store = await openStore(system);
      for (const sequenceNr of [1, 2]) {
        await store.save('a', { sequenceNr, state: `state ${sequenceNr}`, version: 0 });
        acked.push(sequenceNr);
      }
    };
    const whole = new MemoryFileSystem();
    await save(whole, []);
    const order = whole.operations.filter((one) => !/list|read|size/.test(one)).map((one) => one.split(' /')[0]);
    const at = order.indexOf('rename');
    assertEquals(order.slice(at - 2, at + 2), ['write', 'sync', 'rename', 'sync directory']);
    for (let budget = 0; budget <= whole.spent; budget += 1) {
      const system = new MemoryFileSystem();
      system.budget = budget;
      const acked: number[] = [];
      await save(system, acked).catch(() => {});
      for (const crash of crashes) {
        const after = system.after(crash);
        const store = await openStore(after);
        const damaged: unknown[] = [];
        const loaded = await store.loadLatest('a', (damage) => damaged.push(damage));
        assertEquals(damaged, [], `budget ${budget}, ${crash}`);
        assertEquals((loaded?.sequenceNr ?? 0) >= (acked.at(-1) ?? 0), true, `budget ${budget}, ${crash}`);
        if (loaded !== undefined) assertEquals(loaded.state, `state ${loaded.sequenceNr}`);
        await store.save('a', { sequenceNr: 3, state: 'state 3', version: 0 });
        assertEquals((await after.list(`/data/s/id-a`)).filter((name) => name.endsWith('.tmp')), []);
      }
    }
  });
});
