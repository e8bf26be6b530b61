import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { type Command, counterClass, Journal } from './fixtures.ts';

async function three(options: { stopMs?: number } = {}) {
  const journal = new Journal();
  const Counter = counterClass(journal, options);
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter));
  await cluster.until(() => journal.live === 1);
  return { journal, Counter, cluster, refs };
}

test('R15, R32: the oldest member that started it hosts, and every node reaches it', async () => {
  const { cluster, refs, journal } = await three();
  for (const ref of refs) assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[0]!.address);
  assertEquals(journal.peak, 1);
});

test('R28, R30, R37, R48, R58, A9: a leave loses, doubles and reorders nothing, carries the state, and never overlaps', async () => {
  const { cluster, refs, journal } = await three({ stopMs: 400 });
  let next = 0;
  const senders = [1, 2];
  const tell = (count: number): void => {
    for (let at = 0; at < count; at += 1) refs[senders[next % 2]!]!.tell(next++);
  };
  tell(100);
  const leaving = cluster.leave(cluster.nodes[0]!);
  tell(100);
  await cluster.pass(200);
  tell(100);
  await leaving;
  tell(100);
  await cluster.until(() => journal.got.length >= 400);
  await cluster.pass(500);
  assertEquals(await cluster.get(refs[1]!.ask('count')), 400);
  const bySender = senders.map((_, at) => journal.got.filter((n) => (n as number) % 2 === at));
  for (const got of bySender) assertEquals(got, [...got].sort((a, b) => (a as number) - (b as number)));
  assertEquals(
    [...journal.got].sort((a, b) => (a as number) - (b as number)),
    Array.from({ length: 400 }, (_, n) => n),
  );
  assertEquals(journal.peak, 1);
  for (const { cluster: { singleton }, system } of cluster.nodes) {
    const { told, acknowledged, deadLettered, buffered } = singleton.find('counter')!.proxy.stream.ledger();
    assertEquals([told, deadLettered, buffered], [acknowledged, 0, 0]);
    assertEquals(system.deadLetters.count, 0);
  }
});

test('S4: a join moves nothing', async () => {
  const { cluster, refs, journal, Counter } = await three();
  const where = await cluster.get(refs[2]!.ask('where'));
  const late = await cluster.join();
  const ref = late.cluster.singleton.start(Counter);
  await cluster.pass(3_000);
  assertEquals(await cluster.get(ref.ask('where')), where);
  assertEquals(journal.lines.length, 1);
});

test('R27, R53, A5: a node that only holds a ref, or has never heard of it, answers at once and never hosts', async () => {
  const journal = new Journal();
  const Counter = counterClass(journal);
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const onlyRef = cluster.nodes[0]!.cluster.singleton.ref(Counter);
  cluster.nodes[1]!.cluster.singleton.start(Counter);
  const before = cluster.environment.clock.now();
  await cluster.until(() => journal.live === 1);
  assert(cluster.environment.clock.now() - before < 250, 'no time-out was waited for');
  assertEquals(await cluster.get(onlyRef.ask('where')), cluster.nodes[1]!.address);
});

test('rule 8: a late start on an older member is a planned move', async () => {
  const journal = new Journal();
  const Counter = counterClass(journal);
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const [older, younger] = cluster.nodes as [typeof cluster.nodes[0], typeof cluster.nodes[0]];
  const ref = younger.cluster.singleton.start(Counter);
  for (let n = 0; n < 10; n += 1) ref.tell(n);
  assertEquals(await cluster.get(ref.ask('count')), 10);
  older.cluster.singleton.start(Counter);
  await cluster.until(() => journal.lines.length === 3);
  assertEquals(await cluster.get(ref.ask('where')), older.address);
  assertEquals(await cluster.get(ref.ask('count')), 10);
  assertEquals(journal.peak, 1);
});

test('FB-016: stop on the host hands over to another node; start again waits for the end and takes it back', async () => {
  const { cluster, refs, journal, Counter } = await three({ stopMs: 300 });
  const { singleton } = cluster.nodes[0]!.cluster;
  for (let n = 0; n < 5; n += 1) refs[1]!.tell(n);
  assertEquals(await cluster.get(refs[1]!.ask('count')), 5);
  singleton.stop(Counter);
  assertEquals([singleton.isStarted(Counter), singleton.managerFor(Counter)], [false, undefined]);
  let message = '';
  try {
    singleton.start(Counter);
  } catch (error) {
    message = (error as Error).message;
  }
  assert(message.includes('still stopping'), message);
  assertEquals(await cluster.get(refs[1]!.ask('where')), cluster.nodes[1]!.address);
  assertEquals(await cluster.get(refs[2]!.ask('count')), 5);
  singleton.start(Counter);
  await cluster.until(() => journal.lines.length === 5);
  assertEquals(await cluster.get(refs[2]!.ask('where')), cluster.nodes[0]!.address);
  assertEquals(await cluster.get(refs[2]!.ask('count')), 5);
  assertEquals(journal.peak, 1);
});

test('R146: an operator moves it, and it stays there until that member leaves', async () => {
  const { cluster, refs, journal } = await three();
  cluster.nodes[2]!.cluster.singleton.move('counter', cluster.nodes[2]!.address);
  await cluster.until(() => journal.lines.length === 3);
  assertEquals(await cluster.get(refs[0]!.ask('where')), cluster.nodes[2]!.address);
  const mover = cluster.nodes[2]!;
  await cluster.leave(mover);
  assertEquals(await cluster.get(refs[1]!.ask('where')), cluster.nodes[0]!.address);
  assertEquals(journal.peak, 1);
});

test('R29, R144, FB-015: quick moves A to B to C to A keep every message and its order', async () => {
  const { cluster, refs, journal } = await three({ stopMs: 20 });
  let sent = 0;
  for (let round = 0; round < 12; round += 1) {
    for (let n = 0; n < 20; n += 1) refs[round % 3]!.tell(sent++);
    cluster.nodes[round % 3]!.cluster.singleton.move('counter', cluster.nodes[(round + 1) % 3]!.address);
    await cluster.pass(round % 4 === 0 ? 100 : 10);
    for (let n = 0; n < 20; n += 1) refs[(round + 1) % 3]!.tell(sent++);
  }
  await cluster.until(() => journal.got.length >= sent);
  await cluster.pass(1_000);
  assertEquals(
    [...journal.got].sort((a, b) => (a as number) - (b as number)),
    Array.from({ length: sent }, (_, n) => n),
  );
  assertEquals(journal.peak, 1);
  assertEquals(await cluster.get(refs[0]!.ask('count')), sent);
});

test('R57: tells in the turn of start arrive in order', async () => {
  const journal = new Journal();
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const ref = cluster.nodes[0]!.cluster.singleton.start(counterClass(journal));
  const all = Array.from({ length: 50 }, (_, n) => n);
  for (const n of all) ref.tell(n as Command);
  await cluster.until(() => journal.got.length === 50);
  assertEquals(journal.got, all);
});
