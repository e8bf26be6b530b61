import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertMatch, assertRejects } from '@std/assert';
import { ActorFailed, SupervisorStrategy, UndeliveredError } from '../../src/mod.ts';
import {
  everyNEvents,
  MemoryJournal,
  MemorySnapshotStore,
  RecoveryError,
  type Schema,
  StorageError,
  type StoredEvent,
} from '../../src/persistence/mod.ts';
import { Actor } from '../../src/actor/actor.ts';
import { Codec } from '../../src/wire/codec.ts';
import { DecodeError } from '../../src/wire/errors.ts';
import { collect, writerOf } from '../contract/journal_contract.ts';
import { Account, type Added, type Balance, World } from './account_fixture.ts';

/** A journal with one event of 1 for each number. */
async function filled(count: number): Promise<MemoryJournal> {
  const journal = new MemoryJournal();
  const { writer } = await journal.claim('account', writerOf(1));
  for (let done = 0; done < count; done += 10_000) {
    const size = Math.min(10_000, count - done);
    await journal.append('account', Array(size).fill({ payload: { amount: 1 } }), done, writer);
  }
  return journal;
}

/** What the actor failed with; it is stopped by the first failure. */
async function failureOf(world: World, source: () => Account = () => new Account()): Promise<unknown> {
  const failures: unknown[] = [];
  world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
  world.system.spawn(source, 'account', { supervisor: SupervisorStrategy.oneForOne({ decider: () => 'stop' }) });
  for (let round = 0; round < 10; round += 1) await world.env.settle();
  assertEquals(world.system.resolve('/user/account'), undefined, 'it should not run');
  return failures[0];
}

/** Gives what `change` makes of the real events. */
class ForgedJournal extends MemoryJournal {
  change: (events: StoredEvent[]) => StoredEvent[] = (events) => events;

  override async *read(persistenceId: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    yield* this.change(await collect(super.read(persistenceId, fromSeq, toSeq)));
  }
}

describe('recovery', () => {
  test('R126: newest snapshot, then the events after it', async () => {
    const journal = await filled(10);
    const snapshots = new MemorySnapshotStore();
    await snapshots.save('account', { sequenceNr: 8, state: { total: 800, count: 8 }, version: 0 });
    const account = new World({ journal, snapshots }).spawn();
    assertEquals(await account.get(), { total: 802, count: 10 });
  });

  test('FB-122, R126: gaps, disorder, duplicates and events outside of the window are refused by number', async () => {
    const cases: [(events: StoredEvent[]) => StoredEvent[], RegExp][] = [
      [(e) => e.filter((event) => event.sequenceNr < 6 || event.sequenceNr > 8), /events 6 to 8 are missing/],
      [(e) => e.slice(1), /event 1 is missing/],
      [(e) => e.slice(0, -1), /event 11 is missing/],
      [(e) => [...e.slice(0, 3), e[2]!, ...e.slice(3)], /event 3 where 4 was due/],
      [(e) => [e[1]!, e[0]!, ...e.slice(2)], /event 1 is missing/],
      [(e) => [...e, { ...e[0]!, sequenceNr: 12 }], /event 12, outside/],
      [(e) => [...e, { ...e[0]!, sequenceNr: NaN }], /NaN, outside/],
    ];
    for (const [change, message] of cases) {
      const journal = new ForgedJournal();
      const { writer } = await journal.claim('account', writerOf(1));
      await journal.append('account', Array(11).fill({ payload: { amount: 1 } }), 0, writer);
      journal.change = change;
      const error = await failureOf(new World({ journal }));
      assertInstanceOf(error, RecoveryError);
      assertMatch((error as Error).message, message);
    }
  });

  test('R126: a snapshot ahead of the journal, or of no number, is refused', async () => {
    for (const sequenceNr of [11, 0.5]) {
      const snapshots = new MemorySnapshotStore();
      snapshots.loadLatest = async () => ({ sequenceNr, state: {}, version: 0 });
      const error = await failureOf(new World({ journal: await filled(10), snapshots }));
      assertInstanceOf(error, RecoveryError);
      assertMatch((error as Error).message, /snapshot/);
    }
  });

  test('FB-114, R126: a compacted journal goes on with a snapshot that reaches, and not without', async () => {
    const journal = await filled(100);
    await journal.delete('account', 100);
    const snapshots = new MemorySnapshotStore();
    await snapshots.save('account', { sequenceNr: 100, state: { total: 100, count: 100 }, version: 0 });
    let world = new World({ journal, snapshots });
    let account = world.spawn();
    await account.add(1, 1, 1);
    world = world.restarted();
    account = world.spawn();
    assertEquals(await account.add(1), { total: 104, count: 104 });
    assertEquals((await collect(journal.read('account'))).map((event) => event.sequenceNr), [101, 102, 103, 104]);

    await snapshots.delete('account', 100);
    assertMatch(String(await failureOf(world.restarted())), /events 1 to 100 have been deleted/);
    await snapshots.save('account', { sequenceNr: 50, state: { total: 50, count: 50 }, version: 0 });
    assertMatch(String(await failureOf(world.restarted())), /events 51 to 100 have been deleted/);
  });

  test('FB-114: with everything deleted, snapshots too, the actor starts anew and its numbers go on', async () => {
    const journal = await filled(100);
    await journal.delete('account', 100);
    const world = new World({ journal });
    const account = world.spawn();
    assertEquals(await account.add(5), { total: 5, count: 1 });
    assertEquals(await journal.highestSeq('account'), 101);
    assertMatch(world.env.logsAt('warn').join(), /starts anew/);
    // One event after the deletion does not make a whole history.
    assertMatch(String(await failureOf(world.restarted())), /have been deleted/);
  });

  test('FB-120: a damaged snapshot is passed over as long as the events are there', async () => {
    class Damaged extends MemorySnapshotStore {
      override loadLatest(id: string, onDamage?: (damage: { sequenceNr: number; detail: string }) => void) {
        onDamage?.({ sequenceNr: 9, detail: 'bad checksum' });
        return super.loadLatest(id, onDamage);
      }
    }
    const journal = await filled(10);
    const snapshots = new Damaged();
    const world = new World({ journal, snapshots });
    assertEquals(await world.spawn().get(), { total: 10, count: 10 });
    assertMatch(world.env.logsAt('warn').join(), /snapshot of number 9 cannot be read/);

    await snapshots.save('account', { sequenceNr: 5, state: { total: 500, count: 5 }, version: 0 });
    assertEquals(await world.restarted().spawn().get(), { total: 505, count: 10 });

    await snapshots.delete('account', 5);
    await journal.delete('account', 10);
    assertMatch(String(await failureOf(world.restarted())), /snapshots of 9 cannot be read/);
  });

  test('FB-106, R127: an event that cannot be applied is named, and restarts are bounded by supervision', async () => {
    class Fussy extends Account {
      override onEvent(state: Balance, event: Added): Balance {
        if (state.count === 499) throw new RangeError('I do not like it');
        return super.onEvent(state, event);
      }
    }
    const world = new World({ journal: await filled(1_000) });
    const failures: unknown[] = [];
    world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
    const { ref } = world.spawn('fussy', () => new Fussy());
    const waiting = ref.ask({ kind: 'get' });
    await assertRejects(() => world.settled(waiting), UndeliveredError);
    assertEquals(failures.length, 11);
    assertInstanceOf(failures[0], RecoveryError);
    assertMatch(String(failures[0]), /event 500 .*I do not like it/);
  });

  test('R127: a handler of recovery failures that returns stops the actor; queued commands are dead letters', async () => {
    const seen: unknown[] = [];
    class Calm extends Account {
      override onRecoveryFailure(error: unknown): void {
        seen.push(error);
      }
    }
    const journal = new MemoryJournal();
    journal.claim = () => Promise.reject(new StorageError('no disk'));
    const world = new World({ journal });
    const { ref } = world.spawn('calm', () => new Calm());
    const error = await assertRejects(() => world.settled(ref.ask({ kind: 'get' })), UndeliveredError);
    assertEquals(error.reason, 'stopped');
    assertInstanceOf(seen[0], StorageError);
    assertEquals(seen.length, 1);
  });

  test('FB-123: a store that is away for a while is asked again by each restart', async () => {
    const journal = await filled(3);
    const { claim } = journal;
    journal.claim = () => Promise.reject(new StorageError('gone', 'EACCES'));
    const world = new World({ journal });
    const supervisor = SupervisorStrategy.oneForOne({ maxRestarts: Infinity, backoff: { minMs: 1_000, maxMs: 8_000 } });
    const ref = world.system.spawn(() => new Account(), 'account', { supervisor });
    await world.env.elapse(30_000);
    journal.claim = claim;
    await world.env.elapse(10_000);
    assertEquals(await world.settled(ref.ask({ kind: 'get' })), { total: 3, count: 3 });
  });

  test('FB-112: replay leaves room for others', async () => {
    const world = new World({ journal: await filled(5_000) });
    const { ref } = world.spawn();
    let pings = 0;
    class Pinger extends Actor<string> {
      override onReceive(): void {
        pings += 1;
        if (pings < 10) this.context.self.tell('ping');
      }
    }
    world.system.spawn(Pinger, 'pinger').tell('ping');
    let pingsAtEnd = -1;
    const answer = ref.ask({ kind: 'get' }).then((balance) => {
      pingsAtEnd = pings;
      return balance;
    });
    assertEquals(await world.settled(answer), { total: 5_000, count: 5_000 });
    assertEquals(pingsAtEnd, 10);
  });

  test('FB-111: what is over the bound while it recovers is reported, and recovery ends once', async () => {
    const world = new World({ journal: await filled(2_000) });
    let recoveries = 0;
    class Counting extends Account {
      override onRecoveryCompleted(): void {
        recoveries += 1;
      }
    }
    const ref = world.system.spawn(() => new Counting(), 'account', { mailbox: { capacity: 100 } });
    const asked = Array.from({ length: 1_000 }, () => ref.ask({ kind: 'get' }));
    const answers = await world.settled(Promise.allSettled(asked));
    assertEquals(answers.filter((one) => one.status === 'fulfilled').length, 100);
    assertEquals(world.system.deadLetters.countOf('mailbox-overflow'), 900);
    assertEquals(recoveries, 1);
  });

  test('onRecoveryCompleted may persist, before the first command', async () => {
    class Opening extends Account {
      override async onRecoveryCompleted(state: Balance): Promise<void> {
        if (state.count === 0) await this.persist({ amount: 50 });
      }
    }
    const world = new World();
    assertEquals(await world.spawn('a', () => new Opening()).get(), { total: 50, count: 1 });
    assertEquals(await world.restarted().spawn('a', () => new Opening()).get(), { total: 50, count: 1 });
  });

  test('events and states of old versions are read through the schema', async () => {
    const journal = new MemoryJournal();
    const { writer } = await journal.claim('account', writerOf(1));
    await journal.append('account', [{ payload: 7 }, { payload: { cents: 900 }, version: 1 }], 0, writer);
    class Evolved extends Account {
      override eventSchema(): Schema<Added> {
        return {
          version: 2,
          write: ({ amount }) => [amount],
          read(stored, version) {
            if (version === 0) return { amount: stored as number };
            if (version === 1) return { amount: (stored as { cents: number }).cents / 100 };
            return { amount: (stored as number[])[0]! };
          },
        };
      }
      override stateSchema(): Schema<Balance> {
        return {
          version: 3,
          write: ({ total, count }) => `${total}/${count}`,
          read(stored, version) {
            if (version !== 3) throw new TypeError('too old');
            const [total = 0, count = 0] = (stored as string).split('/').map(Number);
            return { total, count };
          },
        };
      }
    }
    const world = new World({ journal });
    const account = world.spawn('account', () => new Evolved());
    assertEquals(await account.add(1), { total: 17, count: 3 });
    assertEquals((await collect(journal.read('account', 3)))[0]?.payload, [1]);
    await account.run((actor) => actor.saveSnapshot());
    assertEquals((await world.snapshots.loadLatest('account'))?.state, '17/3');
    assertEquals(await world.restarted().spawn('account', () => new Evolved()).get(), { total: 17, count: 3 });
    await world.snapshots.save('account', { sequenceNr: 3, state: {}, version: 1 });
    assertMatch(String(await failureOf(world.restarted(), () => new Evolved())), /schema version 1.*too old/);
  });

  test('an event that cannot be decoded is named', async () => {
    // As if a class had been registered once, and were not any more.
    class Forgetful extends Codec {
      override decode(bytes: Uint8Array): unknown {
        throw new DecodeError(`class Added is not known (${bytes.length} bytes)`);
      }
    }
    const journal = new MemoryJournal({ codec: new Forgetful() });
    const { writer } = await journal.claim('account', writerOf(1));
    await journal.append('account', [{ payload: { amount: 1 } }], 0, writer);
    const error = await failureOf(new World({ journal }));
    assertInstanceOf(error, RecoveryError);
    assertEquals(error.sequenceNr, 1);
    assertMatch(
      error.message,
      /'account' cannot recover: event 1 cannot be decoded: DecodeError: class Added is not known/,
    );
  });

  test('what a later version of the program has written is refused, with a schema or without one', async () => {
    const journal = new MemoryJournal();
    const { writer } = await journal.claim('account', writerOf(1));
    await journal.append('account', [{ payload: { amount: 1 } }], 0, writer);
    await journal.append('account', [{ payload: { amount: 2 }, version: 4 }], 1, writer);
    const later = /event 2 \(schema version 4\) failed: .*this program knows none above 0/;
    assertMatch(String(await failureOf(new World({ journal }))), later);
    class Knowing extends Account {
      known = 4;
      override eventSchema(): Schema<Added> {
        return { version: this.known, read: (stored) => stored as Added };
      }
    }
    const world = new World({ journal });
    const account = world.spawn('account', () => new Knowing());
    assertEquals(await account.get(), { total: 3, count: 2 });
    const readAs = (known: number) =>
      account.run((actor) => {
        (actor as Knowing).known = known;
        return collect(actor.readEvents());
      });
    assertEquals((await readAs(4)).length, 2);
    await assertRejects(() => readAs(3), RangeError, 'none above 3');
    await world.snapshots.save('account', { sequenceNr: 2, state: { total: 3, count: 2 }, version: 1 });
    const snapshot = /snapshot of number 2 \(schema version 1\) is not understood.*none above 0/;
    assertMatch(String(await failureOf(world.restarted(), () => new Knowing())), snapshot);
  });
});

describe('snapshots', () => {
  const policed = (policy: ReturnType<typeof everyNEvents>) => () => {
    const account = new Account();
    account.policy = policy;
    return account;
  };

  test('R133: never by default, and every n events by policy', async () => {
    const world = new World();
    const plain = world.spawn();
    for (let n = 0; n < 10; n += 1) await plain.add(1);
    assertEquals(await world.snapshots.list('account'), []);
    const next = world.restarted();
    const account = next.spawn('account', policed(everyNEvents(3)));
    for (let n = 0; n < 7; n += 1) await account.add(1);
    await account.get();
    assertEquals(await next.snapshots.list('account'), [11, 14, 17]);
    assertEquals(await next.restarted().spawn().get(), { total: 17, count: 17 });
  });

  test('retention: old snapshots and the events they hold are deleted', async () => {
    const world = new World();
    const account = world.spawn('account', policed(everyNEvents(2, { keepSnapshots: 2, deleteEvents: true })));
    for (let n = 0; n < 9; n += 1) await account.add(1);
    await account.get();
    assertEquals(await world.snapshots.list('account'), [6, 8]);
    assertEquals((await collect(world.journal.read('account'))).map((event) => event.sequenceNr), [7, 8, 9]);
    assertEquals(await world.restarted().spawn().get(), { total: 9, count: 9 });
  });

  test('R132: a snapshot or a deletion that fails costs no command', async () => {
    const world = new World();
    world.snapshots.save = () => Promise.reject(new StorageError('disk full'));
    const account = world.spawn('account', policed(everyNEvents(1, { keepSnapshots: 1, deleteEvents: true })));
    assertEquals(await account.add(1), { total: 1, count: 1 });
    assertEquals(await account.add(1), { total: 2, count: 2 });
    assertMatch(world.env.logsAt('warn').join(), /was not saved.*disk full/);
    await assertRejects(() => account.run((actor) => actor.saveSnapshot()), StorageError);

    const other = new World();
    other.journal.delete = () => Promise.reject(new StorageError('not now'));
    const second = other.spawn('account', policed(everyNEvents(1, { deleteEvents: true })));
    assertEquals(await second.add(1), { total: 1, count: 1 });
    await second.get();
    assertMatch(other.env.logsAt('warn').join(), /could not be deleted/);
  });

  test('R124: deleteHistory needs a snapshot that holds what goes', async () => {
    const world = new World();
    const account = world.spawn();
    await account.add(1, 2, 3);
    await assertRejects(() => account.run((actor) => actor.deleteHistory(3)), Error, 'no snapshot');
    await account.run((actor) => actor.saveSnapshot());
    await assertRejects(() => account.run((actor) => actor.deleteHistory(4)), Error, 'cannot be deleted');
    await account.run((actor) => actor.deleteHistory(3));
    assertEquals(await collect(world.journal.read('account')), []);
    assertEquals(await world.restarted().spawn().add(4), { total: 10, count: 4 });
  });
});
