import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { UndeliveredError } from '../../src/actor/errors.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import type { Caller } from '../../src/callers/caller.ts';
import { limits } from '../../src/limits.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { type Command, counterClass, Journal } from '../singleton/fixtures.ts';
import { CallerWorld } from './caller_world.ts';

type Word = { hello: ActorRef<string> } | 'who' | 'greet' | { refs: unknown };

/** Remembers whom to greet. */
class Greeter extends Actor<Word> {
  static readonly singleton = SingletonKey.of<Word>('greeter');
  #to: ActorRef<string> | undefined;
  override onReceive(message: Word): void {
    if (message === 'who') this.context.sender.tell({ self: this.context.self });
    else if (message === 'greet') this.#to?.tell('hello again', this.context.self);
    else if ('hello' in message) {
      this.#to = message.hello;
      this.#to.tell('hello', this.context.self);
    } else this.context.sender.tell([this.context.self, this.context.spawnAnonymous(() => new Greeter())]);
  }
}

async function counting(nodes: number, options: { stopMs?: number; delivery?: 'at-least-once' } = {}) {
  const world = new CallerWorld();
  const journal = new Journal();
  await world.nodesWithCallers(nodes);
  const Counter = counterClass(journal, options);
  for (const { cluster } of world.nodes) {
    cluster.singleton.start(Counter, options.delivery ? { delivery: options.delivery } : {});
  }
  await world.until(() => journal.live === 1);
  return { world, journal, Counter };
}

function settled(caller: Caller): boolean {
  const { told, acknowledged, deadLettered, outcomeUnknown, buffered } = caller.ledger('counter');
  assertEquals(told, acknowledged + deadLettered + outcomeUnknown + buffered);
  return buffered === 0;
}

describe('a caller from outside', () => {
  test('R149: tells and asks through the same refs, and is no member', async () => {
    const { world, journal, Counter } = await counting(3);
    const caller = await world.connect();
    const counter = caller.singleton.ref(Counter);
    assert(counter === caller.singleton.ref('counter'));
    for (let n = 1; n <= 100; n += 1) counter.tell(n);
    assertEquals(await world.get(counter.ask('count')), 100);
    assertEquals(await world.get(counter.ask<string>('where')), world.nodes[0]!.address);
    await world.until(() => settled(caller));
    assertEquals(caller.ledger('counter'), {
      told: 102,
      acknowledged: 102,
      deadLettered: 0,
      outcomeUnknown: 0,
      buffered: 0,
      resent: 0,
      dropped: 0,
      bufferedBytes: 0,
      windowFull: 0,
    });
    assertEquals(journal.got.length, 100);
    for (const { cluster } of world.nodes) assertEquals(cluster.getMembers().length, 3);
    assertEquals(caller.grant?.singletons, ['counter', 'plain', 'greeter']);
  });

  test('S3: through planned moves nothing is lost, doubled or reordered', async () => {
    const { world, journal, Counter } = await counting(3, { stopMs: 60 });
    const [first, second, third] = world.nodes;
    // The first connects by the host itself, the second by a bystander.
    const callers = [await world.connect({ nodes: [first!, third!] }), await world.connect({ nodes: [third!] })];
    let n = 0;
    const telling = world.environment.timers;
    const load = () => {
      if (n >= 2_000) return;
      callers[n % 2]!.singleton.ref(Counter).tell(n += 1);
      telling.set(1, load);
    };
    load();
    await world.pass(300);
    third!.cluster.singleton.move('counter');
    await world.pass(500);
    await world.leave(first!);
    await world.pass(300);
    third!.cluster.singleton.move('counter', third!.address);
    await world.until(() => n >= 2_000 && callers.every(settled));
    assertEquals(journal.peak, 1);
    const odd = journal.got.filter((got) => Number(got) % 2 === 1);
    const even = journal.got.filter((got) => Number(got) % 2 === 0);
    assertEquals(odd, Array.from({ length: 1_000 }, (_, at) => at * 2 + 1));
    assertEquals(even, Array.from({ length: 1_000 }, (_, at) => at * 2 + 2));
    for (const caller of callers) assertEquals(caller.ledger('counter').acknowledged, 1_000);
    assert(second!.cluster.upMembers().length === 2);
  });

  test('S3: the node it is connected to dies with messages in its hands: none is lost, none is doubled', async () => {
    const { world, journal, Counter } = await counting(3);
    const [, gateway, other] = world.nodes;
    const caller = await world.connect({ nodes: [gateway!, other!] });
    const counter = caller.singleton.ref(Counter);
    let n = 0;
    for (let round = 0; round < 40; round += 1) {
      for (let at = 0; at < 10; at += 1) counter.tell(n += 1);
      await world.environment.elapse(3);
      if (round === 20) world.crash(gateway!);
    }
    await world.until(() => settled(caller));
    assertEquals(journal.got, Array.from({ length: 400 }, (_, at) => at + 1));
    assertEquals(caller.ledger('counter').acknowledged, 400);
    assert(caller.ledger('counter').resent > 0, 'some were on their way through the node that died');
    assertEquals(caller.url, other!.address);
  });

  test('S3: the host dies: what it had been sent ends as of unknown outcome, the rest is handled by the next', async () => {
    const { world, journal, Counter } = await counting(3);
    const [host, , other] = world.nodes;
    const caller = await world.connect({ nodes: [other!] });
    const letters: unknown[] = [];
    caller.deadLetters.subscribe(({ message, reason }) => letters.push([message, reason]));
    const counter = caller.singleton.ref(Counter);
    let n = 0;
    for (let round = 0; round < 30; round += 1) {
      for (let at = 0; at < 10; at += 1) counter.tell(n += 1);
      await world.environment.elapse(3);
      if (round === 15) world.crash(host!);
    }
    await world.until(() => settled(caller) && n === 300, 120_000);
    const ledger = caller.ledger('counter');
    assertEquals(ledger.deadLettered, 0);
    assertEquals(letters.length, ledger.outcomeUnknown);
    assert(letters.every((letter) => (letter as string[])[1] === 'outcome-unknown'));
    assertEquals(journal.got, [...new Set(journal.got)].sort((a, b) => Number(a) - Number(b)));
    const unknown = new Set(letters.map((letter) => (letter as number[])[0]));
    for (let at = 1; at <= 300; at += 1) assert(journal.got.includes(at) || unknown.has(at), `${at} is lost`);
  });

  test('at-least-once: after a crash of the host what is in doubt is sent again', async () => {
    const { world, journal, Counter } = await counting(3, { delivery: 'at-least-once' });
    const [host, , other] = world.nodes;
    const caller = await world.connect({ nodes: [other!], delivery: 'at-least-once' });
    const counter = caller.singleton.ref(Counter);
    for (let n = 1; n <= 50; n += 1) counter.tell(n);
    await world.environment.elapse(2);
    for (let n = 51; n <= 100; n += 1) counter.tell(n);
    world.crash(host!);
    await world.until(() => settled(caller), 120_000);
    assertEquals(caller.ledger('counter').acknowledged, 100);
    assertEquals(new Set(journal.got).size, 100);
  });

  test('what is told before there is a host, or while nobody is connected, waits and arrives', async () => {
    const world = new CallerWorld();
    const journal = new Journal();
    await world.nodesWithCallers(2);
    const caller = await world.connect({ nodes: [world.nodes[1]!] });
    const Counter = counterClass(journal);
    const counter = caller.singleton.ref(Counter);
    counter.tell(1);
    await world.pass(2_000);
    assertEquals(caller.ledger('counter').buffered, 1);
    world.nodes[0]!.cluster.singleton.start(Counter);
    await world.until(() => settled(caller));
    assertEquals(journal.got, [1]);
    const node = world.nodes[1]!;
    await world.leave(node);
    await world.until(() => caller.state === 'connecting');
    counter.tell(2);
    await world.pass(3_000);
    assertEquals(caller.ledger('counter').buffered, 1);
    // The next process at that address.
    const environment = world.nodes.length;
    assertEquals(environment, 1);
  });

  test('a receiver is reached over reconnects; refs of others reach nobody and say nothing', async () => {
    const world = new CallerWorld();
    await world.nodesWithCallers(3);
    const [first, second, third] = world.nodes;
    first!.cluster.singleton.start(Greeter);
    const caller = await world.connect({ nodes: [second!, third!] });
    const greeter = caller.singleton.ref(Greeter);
    const heard: unknown[] = [];
    const inbox = caller.receiver<string>((word) => heard.push(word));
    greeter.tell({ hello: inbox });
    await world.until(() => heard.length === 1);
    world.crash(second!);
    await world.until(() => caller.url === third!.address);
    await world.pass(200);
    greeter.tell('greet');
    await world.until(() => heard.length === 2);
    assertEquals(heard, ['hello', 'hello again']);
    const [self, nobody] = await world.get(greeter.ask<ActorRef<any>[]>({ refs: true }));
    assert(self === greeter);
    assertEquals(nobody!.path, '/nowhere');
    nobody!.tell('x');
    assertEquals(caller.deadLetters.countOf('no-such-actor'), 1);
    await assertRejects(() => inbox.ask(), Error, 'cannot be asked');
    inbox.stop();
    greeter.tell('greet');
    await world.until(() => caller.deadLetters.countOf('no-such-actor') === 2);
    assertEquals(heard.length, 2);
    assertEquals(await world.get(caller.close()), undefined);
  });

  test('a node that is cut off from the others is left for one that is not', async () => {
    const { world, journal, Counter } = await counting(3);
    const [first, second, third] = world.nodes;
    const caller = await world.connect({ nodes: [third!, second!] });
    const counter = caller.singleton.ref(Counter);
    assertEquals(await world.get(counter.ask('count')), 0);
    world.network.cut(third!.address, first!.address);
    world.network.cut(third!.address, second!.address);
    for (let n = 1; n <= 20; n += 1) counter.tell(n);
    await world.until(() => settled(caller), 120_000);
    assertEquals(caller.url, second!.address);
    assertEquals(journal.got, Array.from({ length: 20 }, (_, at) => at + 1));
  });

  test('a connection that has gone silent is given up', async () => {
    const { world, Counter } = await counting(3);
    const [, second, third] = world.nodes;
    const caller = await world.connect({ nodes: [third!, second!] });
    const events: string[] = [];
    caller.subscribe((event) => events.push(event.kind));
    world.network.cut('caller:1', third!.address);
    await world.until(() => caller.url === second!.address, 60_000);
    assertEquals(events.slice(0, 2), ['disconnected', 'connected']);
    assertEquals(await world.get(caller.singleton.ref(Counter).ask('count')), 0);
  });

  test('a buffer that is full before any host is known says so, and not that there is none', async () => {
    const { world } = await counting(2);
    const caller = world.caller({ bufferSize: 1 });
    for (const n of [1, 2, 3]) caller.singleton.ref('counter').tell(n);
    const warning = world.environment.logged.find(({ message }) => message.includes('the buffer is full'));
    assertEquals(warning?.fields?.['host'], 'not known yet');
    await world.until(() => caller.state === 'connected');
  });

  test('close waits for what was told; what cannot be settled becomes dead letters, and asks fail', async () => {
    const { world, journal, Counter } = await counting(2);
    const caller = await world.connect({ nodes: [world.nodes[1]!], closeTimeoutMs: 1_000 });
    const counter = caller.singleton.ref(Counter);
    for (let n = 1; n <= 50; n += 1) counter.tell(n);
    await world.get(caller.close());
    assertEquals(journal.got.length, 50);
    assertEquals(caller.state, 'closed');
    counter.tell(51);
    assertEquals(caller.ledger('counter').deadLettered, 1);
    const other = await world.connect({ nodes: [world.nodes[1]!], closeTimeoutMs: 500 });
    other.singleton.ref('plain').tell('nobody has started it');
    const asked = other.singleton.ref('plain').ask('x', 60_000);
    const failed = assertRejects(() => asked, UndeliveredError);
    const closing = other.close();
    await world.get(closing);
    await failed;
    assertEquals(other.ledger('plain'), {
      told: 2,
      acknowledged: 0,
      deadLettered: 2,
      outcomeUnknown: 0,
      buffered: 0,
      resent: 0,
      dropped: 0,
      bufferedBytes: 0,
      windowFull: 0,
    });
  });

  test('messages beyond what the grant allows per second wait at the caller', async () => {
    const { world, journal, Counter } = await counting(2);
    const caller = await world.connect({ grant: 'slow', nodes: [world.nodes[1]!] });
    const counter = caller.singleton.ref(Counter);
    for (let n = 1; n <= 300; n += 1) counter.tell(n);
    await world.pass(500);
    assert(journal.got.length < 200, `${journal.got.length} after half a second`);
    await world.until(() => settled(caller), 10_000);
    assertEquals(journal.got, Array.from({ length: 300 }, (_, at) => at + 1));
    assertEquals(caller.state, 'connected');
  });

  test('a message that cannot be sent names the field and costs nothing else', async () => {
    const { world, Counter } = await counting(2);
    const caller = await world.connect();
    const letters: string[] = [];
    caller.deadLetters.subscribe(({ reason, detail }) => letters.push(`${reason}: ${detail}`));
    const counter = caller.singleton.ref(Counter) as ActorRef<any>;
    await world.get(counter.ask('count'));
    counter.tell({ a: { fn: () => {} } });
    counter.tell('x'.repeat(limits.callerMessageBytes + 1));
    counter.tell(1, world.nodes[0]!.cluster.singleton.ref('counter'));
    assertEquals(letters.map((letter) => letter.split(':')[0]), ['unserializable', 'too-large', 'unserializable']);
    assertStringIncludes(letters[0]!, "'a.fn'");
    assertEquals(await world.get(counter.ask('count')), 0);
  });

  test('what the token does not allow fails at once, and is in the ledger', async () => {
    const { world, Counter } = await counting(2);
    const caller = await world.connect({ grant: 'teller' });
    await assertRejects(() => caller.singleton.ref(Counter).ask('count'), UndeliveredError, 'does not allow ask');
    await assertRejects(() => caller.singleton.ref('plain').ask('x'), UndeliveredError, 'not for singleton plain');
    assertEquals(caller.ledger('plain').deadLettered, 1);
    const asker = await world.connect({ grant: 'asker' });
    asker.singleton.ref<Command>('counter').tell(1);
    assertEquals(asker.deadLetters.countOf('forbidden'), 1);
    assertEquals(await world.get(asker.singleton.ref('counter').ask('count')), 0);
  });
});
