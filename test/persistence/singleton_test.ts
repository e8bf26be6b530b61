/** Persistent singletons in whole clusters, with one journal that all nodes share. */
import { test } from 'node:test';
import { assertEquals, assertGreater } from '@std/assert';
import { SingletonKey } from '../../src/singleton/key.ts';
import {
  MemoryJournal,
  MemorySnapshotStore,
  PersistentActor,
  type StoredEvent,
  usePersistence,
} from '../../src/persistence/mod.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { collect } from '../contract/journal_contract.ts';
import { Account, type Balance, type Command } from './account_fixture.ts';

class Bank extends Account {
  static readonly singleton: SingletonKey<Command> = SingletonKey.of<Command>('bank');
}

class WatchedJournal extends MemoryJournal {
  readonly reads: string[] = [];

  override read(id: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    this.reads.push(`${fromSeq}-${toSeq}`);
    return super.read(id, fromSeq, toSeq);
  }
}

async function three() {
  const journal = new WatchedJournal();
  const snapshots = new MemorySnapshotStore();
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const refs = cluster.nodes.map(({ system, cluster: { singleton } }) => {
    usePersistence(system, { journal, snapshots });
    return singleton.start(Bank);
  });
  const add = async (node: number, amount: number) =>
    await cluster.get(refs[node]!.ask<Balance>({ kind: 'add', amounts: [amount] }));
  return { journal, cluster, refs, add };
}

test('R49, S5: a planned move takes the state along, replays nothing, and raises the epoch', async () => {
  const { journal, cluster, refs, add } = await three();
  assertEquals(await add(1, 5), { total: 5, count: 1 });
  assertEquals(await add(2, 6), { total: 11, count: 2 });
  journal.reads.length = 0;
  let next = 0;
  const told: Promise<void> = cluster.leave(cluster.nodes[0]!);
  for (; next < 20; next += 1) refs[1]!.tell({ kind: 'add', amounts: [1] });
  await told;
  assertEquals(await add(2, 100), { total: 131, count: 23 });
  const events = await collect(MemoryJournal.prototype.read.call(journal, 'account'));
  assertEquals(events.map((event) => event.sequenceNr), Array.from({ length: 23 }, (_, index) => index + 1));
  assertEquals(journal.reads, []);
  assertEquals(new Set(events.map((event) => event.uid)).size, 2);
  assertGreater(events.at(-1)!.epoch, events[0]!.epoch);
});

test('S5: after a crash the successor replays what was acknowledged', async () => {
  const { cluster, add, journal } = await three();
  assertEquals(await add(1, 5), { total: 5, count: 1 });
  assertEquals(await add(1, 6), { total: 11, count: 2 });
  const [host] = cluster.nodes;
  cluster.network.crash(host!.address);
  await cluster.until(() => cluster.nodes[1]!.cluster.upMembers().length === 2, 120_000);
  let balance: Balance | undefined;
  for (let tries = 0; balance === undefined && tries < 20; tries += 1) {
    balance = await add(1, 100).catch(() => undefined);
  }
  assertEquals(balance?.total, 11 + 100 * (balance!.count - 2));
  const events = await collect(journal.read('account'));
  assertEquals(events.length, balance?.count);
});

class Words extends PersistentActor<string, string, string> {
  static readonly singleton: SingletonKey<string> = SingletonKey.of<string>('words');
  readonly persistenceId: string = 'words';
  override initialState(): string {
    return '';
  }
  override onEvent(state: string, word: string): string {
    return state === '' ? word : `${state}|${word}`;
  }
  override onCommand(state: string, command: string): void {
    if (command === 'read') this.context.sender.tell(state);
    else this.persist(command);
  }
}

test('P41: a persistent singleton is told a, b and c, and read: a|b|c; and again on the next host', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const journal = new MemoryJournal();
  const refs = cluster.nodes.map(({ system, cluster: { singleton } }) => {
    usePersistence(system, { journal, snapshots: new MemorySnapshotStore() });
    return singleton.start(Words);
  });
  for (const word of ['a', 'b', 'c']) refs[1]!.tell(word);
  assertEquals(await cluster.get(refs[1]!.ask<string>('read', 3_000)), 'a|b|c');
  cluster.lose(cluster.nodes[0]!);
  await cluster.until(() => cluster.nodes[0]!.cluster.singleton.hostOf('words') === cluster.nodes[0]!.address);
  refs[1]!.tell('d');
  assertEquals(await cluster.get(refs[1]!.ask<string>('read', 30_000)), 'a|b|c|d');
});
