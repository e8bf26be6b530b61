import { test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { DeadLetter } from '../../src/actor/dead_letters.ts';
import { SingletonHandOver, SingletonHosted, SingletonStopped } from '../../src/singleton/events.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';
import { type Command, counterClass, Journal } from './fixtures.ts';

async function hosted(count: number, settings = {}) {
  const journal = new Journal();
  const Counter = counterClass(journal);
  const cluster = new MemoryCluster();
  await cluster.grow(count);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter, settings));
  await cluster.until(() => journal.live === 1);
  return { journal, Counter, cluster, refs };
}

function lettersOf(node: MemoryNode): DeadLetter[] {
  const letters: DeadLetter[] = [];
  node.system.deadLetters.subscribe((letter) => letters.push(letter));
  return letters;
}

test('R142, A13: after a crash on this machine the next oldest hosts in well under a second, with three nodes and with two', async () => {
  for (const count of [3, 2]) {
    const { cluster, refs, journal } = await hosted(count);
    const at = cluster.environment.clock.now();
    cluster.network.crash(cluster.nodes[0]!.address);
    journal.live -= 1;
    await cluster.until(() => journal.lines.length === 2);
    assert(cluster.environment.clock.now() - at < 1_000, `${cluster.environment.clock.now() - at} ms`);
    assertEquals(await cluster.get(refs[1]!.ask('where')), cluster.nodes[1]!.address);
    assertEquals(await cluster.get(refs[1]!.ask('count')), 0, 'a crash is a cold start');
    const cold = cluster.environment.logged.filter((entry) => entry.message.endsWith('cold start'));
    assertEquals(cold.map((entry) => entry.fields?.why), ['the host before crashed'], 'R45');
  }
});

test('S3, R139: in at-most-once mode what was sent and not acknowledged is reported, and nothing is handled twice', async () => {
  const { cluster, refs, journal } = await hosted(3);
  const sender = cluster.nodes[1]!;
  const letters = lettersOf(sender);
  for (let n = 0; n < 50; n += 1) refs[1]!.tell(n);
  await cluster.until(() => journal.got.length === 50);
  for (let n = 50; n < 100; n += 1) refs[1]!.tell(n);
  cluster.environment.runTurns();
  cluster.network.crash(cluster.nodes[0]!.address);
  for (let n = 100; n < 150; n += 1) refs[1]!.tell(n);
  await cluster.until(() => sender.cluster.singleton.find('counter')!.proxy.stream.buffered === 0);
  const ledger = sender.cluster.singleton.find('counter')!.proxy.stream.ledger();
  assertEquals(ledger.told, ledger.acknowledged + ledger.outcomeUnknown + ledger.buffered);
  assertEquals(letters.filter((letter) => letter.reason !== 'outcome-unknown').length, 0);
  assertEquals(letters.length, ledger.outcomeUnknown);
  const got = journal.got as number[];
  assertEquals(new Set(got).size, got.length, 'nothing twice');
  const reported = new Set(letters.map((letter) => letter.message as number));
  for (let n = 0; n < 150; n += 1) assert(got.includes(n) || reported.has(n), `${n} is neither handled nor reported`);
});

test('S3: in at-least-once mode everything is handled', async () => {
  const { cluster, refs, journal } = await hosted(3, { delivery: 'at-least-once' });
  for (let n = 0; n < 50; n += 1) refs[1]!.tell(n);
  cluster.environment.runTurns();
  cluster.network.crash(cluster.nodes[0]!.address);
  for (let n = 50; n < 100; n += 1) refs[1]!.tell(n);
  await cluster.until(() => new Set(journal.got).size === 100);
  const ledger = cluster.nodes[1]!.cluster.singleton.find('counter')!.proxy.stream.ledger();
  assertEquals([ledger.deadLettered, ledger.told], [0, 100]);
});

test('R50, R55: without a host messages are buffered up to the bound, then dead letters that name singleton, sender and reason', async () => {
  const journal = new Journal();
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const node = cluster.nodes[0]!;
  const letters = lettersOf(node);
  const ref = node.cluster.singleton.ref<Command>('counter');
  for (let n = 0; n < 1_002; n += 1) ref.tell(n);
  assertEquals(letters.map((letter) => [letter.message, letter.reason]), [[1_000, 'buffer-overflow'], [
    1_001,
    'buffer-overflow',
  ]]);
  assertStringIncludes(letters[0]!.recipient, 'counter');
  const warnings = cluster.environment.logged.filter((entry) => entry.message.includes('the buffer is full'));
  assertEquals(warnings.length, 1);
  node.cluster.singleton.start(counterClass(journal));
  await cluster.until(() => journal.got.length === 1_000);
  assertEquals(journal.got, Array.from({ length: 1_000 }, (_, n) => n));
});

test('overflow: drop-oldest keeps the newest', async () => {
  const journal = new Journal();
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const Counter = counterClass(journal);
  cluster.network.cut(cluster.nodes[0]!.address, cluster.nodes[1]!.address);
  const ref = cluster.nodes[0]!.cluster.singleton.start(Counter, { bufferSize: 3, overflow: 'drop-oldest' });
  for (let n = 0; n < 6; n += 1) ref.tell(n);
  cluster.network.heal(cluster.nodes[0]!.address, cluster.nodes[1]!.address);
  await cluster.until(() => journal.got.length === 3);
  assertEquals(journal.got, [3, 4, 5]);
});

test('an ask fails fast with the reason when its message ends as a dead letter', async () => {
  const { cluster, refs } = await hosted(2);
  const asked = refs[1]!.ask({ reply: () => 1 } as unknown as Command, 60_000);
  const error = await assertRejects(() => cluster.get(asked));
  assertStringIncludes(error.message, 'counter');
  assertEquals(await cluster.get(refs[1]!.ask('count')), 0);
});

test('R59, R60, R62: a failing handler is a restart in place; an end of its own is a new instance after a backoff', async () => {
  const { cluster, refs, journal } = await hosted(2);
  const hosts: SingletonHosted[] = [];
  cluster.nodes[0]!.system.eventStream.subscribe(SingletonHosted, (event) => hosts.push(event));
  refs[1]!.tell('fail');
  refs[1]!.tell(1);
  await cluster.until(() => journal.got.length === 1);
  assertEquals(hosts.length, 0, 'the same instance');
  const at = cluster.environment.clock.now();
  refs[1]!.tell('stop-self');
  for (let n = 2; n < 7; n += 1) refs[1]!.tell(n);
  await cluster.until(() => journal.got.length === 6);
  const waited = cluster.environment.clock.now() - at;
  assert(waited >= 1_000 && waited < 1_500, `${waited} ms`);
  assertEquals(journal.got, [1, 2, 3, 4, 5, 6]);
  assertEquals([hosts.length, hosts[0]!.reason], [1, 'restart']);
});

test('R61, A11: with restartOnTermination false it stays down until stop and start', async () => {
  const { cluster, refs, journal, Counter } = await hosted(2, { restartOnTermination: false });
  refs[0]!.tell('stop-self');
  await cluster.until(() => journal.live === 0);
  await cluster.pass(5_000);
  await cluster.join();
  await cluster.pass(5_000);
  assertEquals(journal.live, 0);
  const { singleton } = cluster.nodes[0]!.cluster;
  singleton.stop(Counter);
  await cluster.pass(50);
  await cluster.until(() => journal.live === 1);
});

test('R60: an instance that keeps ending moves to the next host', async () => {
  const { cluster, refs, journal } = await hosted(2, { moveAfterFailures: 2 });
  for (let round = 0; round < 2; round += 1) {
    refs[0]!.tell('stop-self');
    await cluster.until(() => journal.lines.length === 3 + 2 * round && journal.live === 1);
  }
  assertEquals(await cluster.get(refs[1]!.ask('where')), cluster.nodes[1]!.address);
  assertEquals(journal.peak, 1);
});

test('R60: a start that fails slowly moves too, and the node that gave up stays behind the healthy host', async () => {
  const started: string[] = [];
  class Slow extends Actor<Command> {
    static readonly singleton: SingletonKey<Command> = SingletonKey.of('slow-start');
    override async preStart(): Promise<void> {
      const { address } = this.cluster;
      started.push(address);
      if (address !== bad) return;
      await new Promise<void>((resolve) => void this.context.system.environment.timers.set(7_000, resolve));
      throw new Error('the database does not answer');
    }
    override onReceive(): void {
      this.context.sender.tell(this.cluster.address);
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const bad = cluster.nodes[0]!.address;
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Slow, { moveAfterFailures: 3 }));
  assertEquals(await cluster.get(refs[1]!.ask('where', 120_000)), cluster.nodes[1]!.address);
  assertEquals(started.filter((address) => address === bad).length, 3);
  await cluster.pass(300_000);
  assertEquals(started.length, 4, 'it does not come back to the broken node');
  await cluster.leave(cluster.nodes[1]!);
  await cluster.until(() => started.length > 4, 120_000);
});

test('S3: in at-least-once mode the handler sees what may be a repeat, also when it was stashed, and nothing else is one', async () => {
  const seen: [n: number, possibleRepeat: boolean, host: string][] = [];
  class Seer extends Actor<number> {
    static readonly singleton: SingletonKey<number> = SingletonKey.of<number>('seer');
    #stashed = false;
    override async onReceive(n: number): Promise<void> {
      const { timers } = this.context.system.environment;
      await new Promise<void>((resolve) => timers.set(1, resolve));
      if (n === 15 && !this.#stashed) {
        this.#stashed = true;
        this.context.stash();
        return this.context.unstashAll();
      }
      seen.push([n, this.context.possibleRepeat, this.cluster.address]);
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const [first, second, third] = cluster.nodes as [MemoryNode, MemoryNode, MemoryNode];
  for (const node of cluster.nodes) node.cluster.singleton.start(Seer, { delivery: 'at-least-once' });
  const ref = second.cluster.singleton.ref(Seer);
  const { proxy } = second.cluster.singleton.find('seer')!;
  for (let n = 0; n < 20; n += 1) ref.tell(n);
  await cluster.until(() => seen.length >= 10 && proxy.stream.ledger().acknowledged >= 5);
  const acknowledged = proxy.stream.ledger().acknowledged;
  assert(seen.every(([, repeat]) => !repeat));
  cluster.network.crash(first.address);
  await cluster.pass(5);
  // Told after the link was lost: it was never sent to the first.
  for (let n = 20; n < 25; n += 1) ref.tell(n);
  await cluster.until(() => proxy.stream.buffered === 0);
  const later = seen.filter(([, , host]) => host === second.address);
  assertEquals(later.map(([n]) => n), Array.from({ length: 25 - acknowledged }, (_, at) => acknowledged + at));
  assertEquals(later.filter(([, repeat]) => repeat).map(([n]) => n).at(-1), 19);
  assert(later.every(([n, repeat]) => repeat === n < 20), JSON.stringify(later));
  // A planned move repeats nothing.
  second.cluster.singleton.move('seer', third.address);
  for (let n = 25; n < 30; n += 1) ref.tell(n);
  await cluster.until(() => seen.some(([n]) => n === 29));
  assert(seen.every(([n, repeat]) => !repeat || n < 20));
});

test('events and inspection name both sides of a hand-over, planned or after a crash', async () => {
  const { cluster, refs, journal } = await hosted(3);
  const [first, second, third] = cluster.nodes as [MemoryNode, MemoryNode, MemoryNode];
  const moves: SingletonHandOver[] = [];
  const stops: SingletonStopped[] = [];
  for (const { system } of cluster.nodes) {
    system.eventStream.subscribe(SingletonHandOver, (event) => moves.push(event));
    system.eventStream.subscribe(SingletonStopped, (event) => stops.push(event));
  }
  third.cluster.singleton.move('counter', second.address);
  await cluster.until(() => moves.length === 1);
  const old = stops[0]!;
  assertEquals([old.host, old.cause, old.epoch < moves[0]!.epoch], [first.address, 'planned', true]);
  assertEquals([moves[0]!.from, moves[0]!.to, moves[0]!.reason], [first.address, second.address, 'planned']);
  assert(moves[0]!.gapMs !== undefined && moves[0]!.gapMs < 250, `${moves[0]!.gapMs} ms`);
  await cluster.pass(500);
  cluster.network.crash(second.address);
  journal.live -= 1;
  await cluster.until(() => moves.length === 2);
  const { from, to, reason, gapMs, epoch } = moves[1]!;
  assertEquals([from, to, reason, gapMs], [second.address, first.address, 'crash', undefined]);
  assert(epoch > moves[0]!.epoch);
  assertEquals(await cluster.get(refs[2]!.ask('where')), first.address);
  const report = first.cluster.singleton.find('counter')!.manager.lastHandOver!;
  assertEquals([report.from, report.reason, report.epoch], [second.address, 'crash', epoch]);
});
