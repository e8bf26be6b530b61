import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertMatch, assertRejects, assertThrows } from '@std/assert';
import { ActorFailed, ActorUsageError, FencedError, OptionsError, UndeliveredError } from '../../src/mod.ts';
import { JournalConcurrencyError, StorageError, usePersistence } from '../../src/persistence/mod.ts';
import { collect, writerOf } from '../contract/journal_contract.ts';
import { deferred } from '../actor/system_fixture.ts';
import { Account, type Balance, FaultyJournal, World } from './account_fixture.ts';

describe('persistent actor: commands and events', () => {
  test('R124: events make the state, and the state comes back', async () => {
    const world = new World();
    const account = world.spawn();
    assertEquals(await account.get(), { total: 0, count: 0 });
    assertEquals(await account.add(1, 2), { total: 3, count: 2 });
    assertEquals(await account.add(4), { total: 7, count: 3 });
    const again = world.restarted().spawn();
    assertEquals(await again.get(), { total: 7, count: 3 });
    assertEquals(await again.run((actor) => [actor.lastSequenceNr, actor.recovering, actor.state]), [3, false, {
      total: 7,
      count: 3,
    }]);
    assertEquals(await again.run((actor) => collect(actor.readEvents(2))), [{ amount: 2 }, { amount: 4 }]);
  });

  test('R125: commands during recovery and a pending persist wait, in order', async () => {
    const journal = new FaultyJournal();
    const world = new World({ journal });
    const { ref, get } = world.spawn();
    const gate = deferred();
    journal.beforeAppend = () => gate.promise;
    const seen: string[] = [];
    for (const n of [1, 2, 3]) {
      ref.tell({
        kind: 'run',
        run: (actor) => {
          seen.push(`command ${n} sees ${actor.state.total}`);
          actor.persist({ amount: n }, (state) => void seen.push(`after ${n} sees ${state.total}`));
        },
      });
    }
    await world.env.settle();
    assertEquals(seen, ['command 1 sees 0']);
    gate.resolve();
    await get();
    assertEquals(seen, [
      'command 1 sees 0',
      'after 1 sees 1',
      'command 2 sees 1',
      'after 2 sees 3',
      'command 3 sees 3',
      'after 3 sees 6',
    ]);
  });

  test('R125: callbacks run with the new state, nested persists included', async () => {
    const world = new World();
    const { run, get } = world.spawn();
    const seen: unknown[] = [];
    await run(async (actor) => {
      actor.persist({ amount: 1 }, async (state, event) => {
        seen.push([state.total, event.amount, actor.lastSequenceNr]);
        await actor.persist({ amount: 10 }, (next) => void seen.push(next.total));
        seen.push('inner done');
      });
      await actor.persistAll([{ amount: 100 }, { amount: 200 }], (state) => void seen.push(state.total));
      seen.push(actor.state.total);
    });
    await get();
    assertEquals(seen, [[1, 1, 1], 301, 301, 311, 'inner done']);
    assertEquals(await get(), { total: 311, count: 4 });
  });

  test('what one command persists in one go is one append', async () => {
    const journal = new FaultyJournal();
    const { run, get } = new World({ journal }).spawn();
    await run((actor) => {
      for (let n = 0; n < 50; n += 1) actor.persist({ amount: 1 });
    });
    assertEquals(await get(), { total: 50, count: 50 });
    assertEquals(journal.appends, 1);
  });

  test('R129: persistAll is atomic: an event that cannot be applied or written stops all', async () => {
    class Strict extends Account {
      override onEvent(state: Balance, event: { amount: number }): Balance {
        if (event.amount < 0) throw new RangeError('negative');
        return super.onEvent(state, event);
      }
    }
    const world = new World();
    const account = world.spawn('strict', () => new Strict());
    await assertRejects(
      () => account.run((actor) => actor.persistAll([{ amount: 1 }, { amount: -1 }])),
      RangeError,
    );
    assertEquals(await account.get(), { total: 0, count: 0 });
    account.ref.tell({
      kind: 'run',
      run: (actor) => void actor.persistAll([{ amount: 1 }, { amount: 2, f: () => {} } as { amount: number }]),
    });
    assertEquals(await account.get(), { total: 0, count: 0 });
    assertEquals(await world.journal.highestSeq('account'), 0);
    assertEquals(await account.add(5), { total: 5, count: 1 });
  });

  test('a command that throws at once has written nothing', async () => {
    const world = new World();
    const { ref, get } = world.spawn();
    ref.tell({
      kind: 'run',
      run: (actor) => {
        actor.persist({ amount: 1 });
        throw new Error('changed my mind');
      },
    });
    assertEquals(await get(), { total: 0, count: 0 });
    assertEquals(await world.journal.highestSeq('account'), 0);
  });

  test('persist outside of a command is refused', async () => {
    const world = new World();
    const account = world.spawn();
    const self = await account.run((actor) => actor);
    await account.get();
    assertThrows(() => self.persist({ amount: 1 }), ActorUsageError, 'command');
  });

  test('R129: tags are checked, and found by the read side', async () => {
    class Tagged extends Account {
      override tagsOf(event: { amount: number }): readonly string[] {
        return event.amount > 100 ? ['large', 'a,b'] : ['small'];
      }
    }
    const world = new World();
    const { run, add } = world.spawn('tagged', () => new Tagged());
    await assertRejects(() => run((actor) => actor.persist({ amount: 101 })), OptionsError, 'tags');
    await add(5);
    assertEquals((await collect(world.journal.readByTag('small'))).map((event) => event.payload), [{ amount: 5 }]);
  });

  test('R130: a bad id fails the start and touches no store', async () => {
    class Bad extends Account {
      override readonly persistenceId = 'a/b';
    }
    const world = new World();
    const failures: unknown[] = [];
    world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
    world.spawn('bad', () => new Bad());
    await world.env.settle();
    assertInstanceOf(failures[0], OptionsError);
    assertMatch(String(failures[0]), /persistenceId/);
  });

  test('without stores the error says what to call', async () => {
    const world = new World();
    world.system.extensions.delete('persistence');
    const failures: unknown[] = [];
    world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
    world.spawn();
    await world.env.settle();
    assertMatch(String(failures[0]), /usePersistence/);
  });
});

describe('persistent actor: failures', () => {
  test('FB-115: a failed write fails the command, and the restarted actor has what was acknowledged', async () => {
    const journal = new FaultyJournal();
    const world = new World({ journal });
    const account = world.spawn();
    await account.add(1);
    journal.beforeAppend = () => {
      throw new StorageError('disk full', 'ENOSPC');
    };
    const lost = account.ref.ask({ kind: 'add', amounts: [2] }, 50);
    lost.catch(() => {});
    await world.env.settle();
    journal.beforeAppend = undefined;
    assertEquals(await account.get(), { total: 1, count: 1 });
    assertEquals(await account.add(3), { total: 4, count: 2 });
  });

  test('a write whose outcome is unknown is settled by recovery', async () => {
    const journal = new FaultyJournal();
    const world = new World({ journal });
    const account = world.spawn();
    await account.add(1);
    journal.afterAppend = () => {
      throw new StorageError('connection lost');
    };
    account.ref.tell({ kind: 'add', amounts: [2] });
    await world.env.settle();
    journal.afterAppend = undefined;
    assertEquals(await account.add(4), { total: 7, count: 3 });
  });

  test('R128: JournalConcurrencyError stops the actor, without a restart; queued commands are dead letters', async () => {
    const journal = new FaultyJournal();
    const world = new World({ journal });
    const account = world.spawn();
    await account.add(1);
    journal.beforeAppend = () => {
      throw new JournalConcurrencyError('account', 1, 2);
    };
    let rejected: unknown;
    account.ref.tell({
      kind: 'run',
      run: (actor) => {
        actor.persist({ amount: 2 }).catch((error) => rejected = error);
      },
    });
    const queued = account.ref.ask({ kind: 'get' });
    const error = await assertRejects(() => world.settled(queued), UndeliveredError);
    assertEquals(error.reason, 'stopped');
    assertInstanceOf(rejected, JournalConcurrencyError);
    assertEquals(world.system.resolve('/user/account'), undefined);
  });

  test('S5: the one before is fenced by a later one of the same id, and stops', async () => {
    const world = new World();
    const first = world.spawn('first');
    await first.add(1);
    const second = world.spawn('second');
    assertEquals(await second.get(), { total: 1, count: 1 });
    first.ref.tell({ kind: 'add', amounts: [100] });
    await world.env.settle();
    assertEquals(world.system.resolve('/user/first'), undefined);
    assertEquals(await second.add(2), { total: 3, count: 2 });
    assertEquals(await world.journal.highestSeq('account'), 2);
  });

  test('rule 16: persist of an actor that was fenced meanwhile throws FencedError', async () => {
    const world = new World();
    let fenced = false;
    const ref = world.system.spawnSystem(['account'], () => new Account(), { fenced: () => fenced, epoch: 7 });
    let error: unknown;
    ref.tell({
      kind: 'run',
      run: (actor) => {
        fenced = true;
        try {
          actor.persist({ amount: 1 });
        } catch (thrown) {
          error = thrown;
        }
      },
    });
    await world.env.settle();
    assertInstanceOf(error, FencedError);
    assertEquals(await world.journal.highestSeq('account'), 0);
  });

  test('S5: an instance with an older epoch cannot start', async () => {
    const world = new World();
    world.system.extensions.set('writer-identity', () => ({ uid: 'node-1', clusterId: 'c1' }));
    await world.journal.claim('account', writerOf(9, 'node-2'));
    const ends: string[] = [];
    const ref = world.system.spawnSystem(['account'], () => new Account(), { epoch: 8 });
    ref.onTermination((cause) => ends.push(cause));
    await world.env.settle();
    assertEquals(ends.length, 1);
    const next = world.system.spawnSystem(['account'], () => new Account(), { epoch: 10 });
    assertEquals(await world.settled(next.ask({ kind: 'add', amounts: [1] })), { total: 1, count: 1 });
    const [stored] = await collect(world.journal.read('account'));
    assertEquals([stored?.epoch, stored?.uid], [10, 'node-1']);
  });

  test('a preStart that forgets super is told so', async () => {
    class Forgetful extends Account {
      override async preStart(): Promise<void> {}
    }
    const world = new World();
    const failures: unknown[] = [];
    world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
    world.spawn('forgetful', () => new Forgetful()).ref.tell({ kind: 'get' });
    await world.env.settle();
    assertMatch(String(failures[0]), /must call super/);
  });

  test('stores of its own', async () => {
    const mine = new FaultyJournal();
    class Own extends Account {
      override stores() {
        return { journal: mine };
      }
    }
    const world = new World();
    usePersistence(world.system, {});
    assertEquals(await world.spawn('own', () => new Own()).add(3), { total: 3, count: 1 });
    assertEquals(await mine.highestSeq('account'), 1);
    assertThrows(() => usePersistence(world.system, { journal: 1 } as never), OptionsError, 'journal');
  });
});
