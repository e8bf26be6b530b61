/** Persistent actors on file stores: real files and real time once, and crashes at every point between on a disk in memory. */
import { describe, test } from 'node:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { assertEquals, assertGreater, assertMatch, assertRejects } from '@std/assert';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';
import { ActorFailed, ActorSystem, SupervisorStrategy } from '../../src/mod.ts';
import { everyNEvents, usePersistence } from '../../src/persistence/mod.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import {
  type Crash,
  crashes,
  failure,
  lonelyWorld,
  MemoryFileSystem,
} from '../persistence/file_journal/memory_file_system.ts';
import { Account, type Balance, type Command, World } from '../persistence/account_fixture.ts';
import { collect } from './journal_contract.ts';

class Saver extends Account {
  override snapshotPolicy() {
    return everyNEvents(2, { keepSnapshots: 1, deleteEvents: true });
  }
}

/** Each run is a process of its own, and the one before is gone. It adds 1 as often as it is told, and notes what was answered. */
async function run(system: MemoryFileSystem, pid: number, adds: number, acked: Balance[]): Promise<void> {
  const stores = await openFileStores('/data/stores', { system, segmentBytes: 300, lockWorld: lonelyWorld(pid) });
  const environment = new ManualEnvironment();
  const actors = ActorSystem.create('bank', { environment });
  usePersistence(actors, stores);
  const ref = actors.spawn<Command>(() => new Saver(), 'account');
  const ask = async (command: Command): Promise<Balance> => {
    const asked = ref.ask<Balance>(command);
    let done = false;
    asked.then(() => done = true, () => done = true);
    for (let round = 0; !done && system.budget >= 0 && round < 3_000; round += 1) await environment.settle();
    if (!done) throw new Error('the machine is gone');
    return asked;
  };
  for (let count = 0; count < adds; count += 1) acked.push(await ask({ kind: 'add', amounts: [1] }));
  acked.push(await ask({ kind: 'get' }));
}

describe('persistent actors on files', () => {
  for (const crash of crashes) {
    test(`FB-121: whatever point between event, snapshot and deletion is hit by '${crash}', nothing counts twice`, {
      timeout: 60_000,
    }, async () => {
      const whole = new MemoryFileSystem();
      await run(whole, 1, 7, []);
      assertGreater(whole.operations.filter((one) => one.startsWith('remove') && one.endsWith('.seg')).length, 0);
      for (let budget = 0; budget <= whole.spent; budget += 7) {
        const system = new MemoryFileSystem();
        system.budget = budget;
        const acked: Balance[] = [];
        await run(system, 1, 7, acked).catch(() => {});
        await checkAfter(system, crash, acked, budget);
      }
    });
  }

  async function checkAfter(system: MemoryFileSystem, crash: Crash, acked: Balance[], budget: number): Promise<void> {
    const seen: Balance[] = [];
    const before = acked.at(-1)?.count ?? 0;
    try {
      await run(system.after(crash), 2, 1, seen);
    } catch (error) {
      throw new Error(`budget ${budget}, acknowledged ${before}: ${String(error)}`, { cause: error });
    }
    const now = seen.at(-1) as Balance;
    assertEquals(now.total, now.count, `budget ${budget}`);
    // The one that was under way may be there or not.
    assertEquals(now.count === before + 1 || now.count === before + 2, true, `budget ${budget}: ${now.count}`);
  }

  test('FB-114: after everything is deleted numbers go on, with the snapshot or without; an older snapshot fails loudly', async () => {
    let pid = 0;
    const open = async (system: MemoryFileSystem) => {
      const lockWorld = lonelyWorld(pid += 1);
      const stores = await openFileStores('/data/stores', { system, segmentBytes: 300, lockWorld });
      const world = new World(stores);
      const failures: unknown[] = [];
      world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
      return { stores, world, account: world.spawn(), failures };
    };
    const system = new MemoryFileSystem();
    const first = await open(system);
    await first.account.add(...Array<number>(100).fill(1));
    await first.account.run((actor) => actor.saveSnapshot());
    await first.account.run((actor) => actor.deleteHistory(100));
    await first.stores.close();

    const second = await open(system);
    assertEquals(await second.account.add(1, 1, 1), { total: 103, count: 103 });
    const numbers = (await collect(second.stores.journal.read('account'))).map((event) => event.sequenceNr);
    assertEquals(numbers, [101, 102, 103]);
    await second.account.run((actor) => actor.saveSnapshot());
    await second.account.run((actor) => actor.deleteHistory(103));
    await second.stores.close();

    const snapshotOf = (seq: number) => `/data/stores/snapshots/id-account/${String(seq).padStart(16, '0')}.snap`;
    const whole = await open(system.after('power'));
    assertEquals(await whole.account.get(), { total: 103, count: 103 });
    assertEquals(await whole.account.run((actor) => actor.lastSequenceNr), 103);

    const older = system.after('power');
    older.files.delete(snapshotOf(103));
    const loud = await open(older);
    for (let round = 0; loud.failures.length === 0 && round < 1_000; round += 1) await loud.world.env.settle();
    assertMatch(String(loud.failures[0]), /events 101 to 103 have been deleted, and no snapshot holds them/);

    const bare = system.after('power');
    for (const seq of [100, 103]) bare.files.delete(snapshotOf(seq));
    const anew = await open(bare);
    assertEquals(await anew.account.add(7), { total: 7, count: 1 });
    assertEquals(await anew.account.run((actor) => actor.lastSequenceNr), 104);
  });

  test('FB-115: a full disk fails commands, and when there is room again the actor has what was acknowledged', async () => {
    // Timers of the actor system keep no process alive, and neither does a disk in memory.
    const hold = setInterval(() => {}, 1_000);
    const system = new MemoryFileSystem();
    const stores = await openFileStores('/data/stores', { system, lockWorld: lonelyWorld(1) });
    const actors = ActorSystem.create('bank', { logLevel: 'off' });
    usePersistence(actors, stores);
    const supervisor = SupervisorStrategy.oneForOne({ maxRestarts: Infinity, backoff: { minMs: 10, maxMs: 40 } });
    const ref = actors.spawn<Command>(() => new Account(), 'account', { supervisor });
    assertEquals(await ref.ask<Balance>({ kind: 'add', amounts: [1] }), { total: 1, count: 1 });
    system.fault = (operation) => {
      if (operation === 'write') throw failure('ENOSPC', 'disk');
    };
    await assertRejects(() => ref.ask({ kind: 'add', amounts: [5] }, 50));
    system.fault = undefined;
    assertEquals(await ref.ask<Balance>({ kind: 'add', amounts: [10] }), { total: 11, count: 2 });
    await actors.terminate();
    await stores.close();
    clearInterval(hold);
  });

  test('R135, FB-116: ten actors on real files, 50 persists each at once, and all are back', async () => {
    const directory = await mkdtemp(`${tmpdir()}/singlet-actors-`);
    const ids = Array.from({ length: 10 }, (_, index) => `account-${index}`);
    const start = async () => {
      const stores = await openFileStores(directory, { segmentBytes: 10_000 });
      const actors = ActorSystem.create('bank', { logLevel: 'off' });
      usePersistence(actors, stores);
      const refs = ids.map((id) =>
        actors.spawn<Command>(() =>
          new (class extends Saver {
            override readonly persistenceId = id;
          })(), id)
      );
      const end = async () => {
        await actors.terminate();
        await stores.close();
      };
      return { refs, end };
    };
    const first = await start();
    for (const ref of first.refs) for (let n = 0; n < 50; n += 1) ref.tell({ kind: 'add', amounts: [1] });
    for (const ref of first.refs) assertEquals(await ref.ask<Balance>({ kind: 'get' }), { total: 50, count: 50 });
    await first.end();
    const second = await start();
    for (const ref of second.refs) assertEquals(await ref.ask<Balance>({ kind: 'get' }), { total: 50, count: 50 });
    await second.end();
    await rm(directory, { recursive: true, force: true });
  });
});
