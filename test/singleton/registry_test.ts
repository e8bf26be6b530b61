import { describe, test } from 'node:test';
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { NoClusterError } from '../../src/actor/errors.ts';
import { OptionsError } from '../../src/actor/options.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { SingletonRegistry } from '../../src/singleton/registry.ts';
import { StartSingletonOptions } from '../../src/singleton/start_options.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { type Command, counterClass, Journal, Plain } from './fixtures.ts';

async function alone() {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const node = cluster.nodes[0]!;
  const { singleton } = node.cluster;
  assert(singleton instanceof SingletonRegistry);
  return { cluster, node, singleton };
}

const warnings = (cluster: MemoryCluster) =>
  cluster.environment.logged.filter((entry) => entry.level === 'warn').map((entry) => entry.message);

describe('start', () => {
  test('R1: class, class and factory, key and actor, options as builder or plain object', async () => {
    const { cluster, singleton } = await alone();
    class Named extends Actor<Command> {
      readonly #reply: string;
      constructor(reply: string) {
        super();
        this.#reply = reply;
      }
      override onReceive(): void {
        this.context.sender.tell(this.#reply);
      }
    }
    class Keyed extends Named {
      static readonly singleton = SingletonKey.of<Command>('keyed');
    }
    const refs = [
      singleton.start(Plain),
      singleton.start(Keyed, () => new Keyed('factory')),
      singleton.start(SingletonKey.of<Command>('by-key'), () => new Named('key')),
      singleton.start<Command>({ typeName: 'plain-object', actor: () => new Named('plain') }),
      singleton.start(
        StartSingletonOptions.create<Command>().withTypeName('built').withActor(() => new Named('built')),
      ),
      singleton.start<Command>({ actor: Plain, typeName: 'renamed' }),
    ];
    const replies = [];
    for (const ref of refs) replies.push(await cluster.get(ref.ask('where')));
    const { address } = cluster.nodes[0]!;
    assertEquals(replies, [address, 'factory', 'key', 'plain', 'built', address]);
  });

  test('R2, R5: get-or-create: one ref for start and ref, by class, key or name; later options warn once', async () => {
    const { cluster, singleton } = await alone();
    const ref = singleton.start(Plain);
    assertStrictEquals(singleton.start(Plain, { bufferSize: 5 }), ref);
    assertStrictEquals(singleton.ref(Plain), ref);
    assertStrictEquals(singleton.ref(Plain.singleton), ref);
    assertStrictEquals(singleton.ref('plain'), ref);
    const ignored = () => warnings(cluster).filter((message) => message.includes('later options are ignored'));
    assertMatch(ignored()[0]!, /, which differ in bufferSize$/);
    singleton.start(Plain);
    singleton.start(Plain, { bufferSize: 5 });
    assertEquals(ignored().length, 1);
    singleton.start(Plain, { bufferSize: 6, delivery: 'at-least-once', lease: () => ({}) as never });
    assertMatch(ignored()[1]!, /, which differ in delivery, lease$/);
    singleton.start(Plain.singleton, class extends Plain {});
    singleton.start(Plain.singleton, () => new Plain());
    assertMatch(ignored()[2]!, /, which differ in actor$/);
    assertEquals(ignored().length, 3);
  });

  test('a move that cannot be says why: an unknown name, nobody else, a node that has left', async () => {
    const { cluster, node, singleton } = await alone();
    const refusal = (name: string) => assertThrows(() => singleton.move(name)).message;
    assertEquals(refusal('nope'), 'singleton nope cannot be moved: no member has started it');
    singleton.start(Plain);
    await cluster.pass(100);
    assertEquals(refusal('plain'), 'singleton plain: no other member could host it');
    await cluster.leave(node);
    assertEquals(refusal('plain'), 'this node has left the cluster');
  });

  test('a move that is asked for again undoes none that another node was asked for meanwhile', async () => {
    for (const [repeating, other] of [[1, 2], [2, 1]] as const) {
      const cluster = new MemoryCluster();
      await cluster.grow(3);
      for (const node of cluster.nodes) node.cluster.singleton.start(Plain);
      const [again, elsewhere] = [cluster.nodes[repeating]!, cluster.nodes[other]!];
      again.cluster.singleton.move('plain', again.address);
      await cluster.pass(1_000);
      again.cluster.singleton.move('plain', again.address);
      elsewhere.cluster.singleton.move('plain', elsewhere.address);
      await cluster.pass(1_000);
      const hosts = cluster.nodes.filter((node) => node.cluster.singleton.find('plain')!.manager.host.epoch > 0);
      assertEquals(hosts.map(({ address }) => address), [elsewhere.address]);
    }
  });

  test('R3: bad options are refused at once, each with field, value and rule', async () => {
    const { singleton } = await alone();
    const actor = () => new Plain();
    const bad: [object, string][] = [
      [{ actor }, 'typeName'],
      [{ typeName: 'x' }, 'actor'],
      [{ typeName: 'x', actor, role: '' }, 'role'],
      [{ typeName: 'x', actor, bufferSize: 0 }, 'bufferSize'],
      [{ typeName: 'x', actor, bufferSize: 1.5 }, 'bufferSize'],
      [{ typeName: 'x', actor, handOverTimeoutMs: -1 }, 'handOverTimeoutMs'],
      [{ typeName: 'x', actor, handOverTimeoutMs: 100 }, 'handOverTimeoutMs'],
      [{ typeName: 'x', actor, stopTimeoutMs: NaN }, 'stopTimeoutMs'],
      [{ typeName: 'x', actor, overflow: 'block' }, 'overflow'],
      [{ typeName: 'x', actor, delivery: 'exactly-once' }, 'delivery'],
      [{ typeName: 'x', actor, handOverPolicy: 'hope' }, 'handOverPolicy'],
      [{ typeName: 'x', actor, restartOnTermination: 'no' }, 'restartOnTermination'],
      [{ typeName: 'x', actor, bufersize: 1 }, 'bufersize'],
      [{ typeName: 'x', actor, actorOptions: { mailbox: { capacity: 1 } } }, 'actorOptions.mailbox'],
      [{ typeName: 'x', actor: 'Plain' }, 'actor'],
    ];
    for (const [options, field] of bad) {
      const error = assertThrows(() => singleton.start(options as never), OptionsError) as OptionsError;
      assertEquals(error.field, field, error.message);
      assertStringIncludes(error.message, 'StartSingletonOptions');
    }
    assert(!singleton.isStarted('x'));
  });

  test('R4: a class without a key is refused by name', async () => {
    const { singleton } = await alone();
    class Keyless extends Actor<Command> {
      override onReceive(): void {}
    }
    assertStringIncludes(assertThrows(() => singleton.start(Keyless as never), OptionsError).message, 'Keyless');
  });

  test('R13: names that cannot be part of a path are refused; the manager has a well-known path', async () => {
    const { singleton } = await alone();
    for (const name of ['', 'a/b', 'a\\b', '.', '..', 'a\nb', '$a', 'x'.repeat(248)]) {
      assertThrows(() => SingletonKey.of(name), OptionsError, 'typeName');
    }
    singleton.start(Plain);
    assertEquals(singleton.managerFor(Plain)?.path, '/system/cluster/singleton/manager-plain');
  });

  test('R8, R9: stop turns isStarted and managerFor off at once; start waits for the end', async () => {
    const { cluster, singleton } = await alone();
    const journal = new Journal();
    const Slow = counterClass(journal, { stopMs: 100 });
    singleton.start(Slow);
    await cluster.until(() => journal.live === 1);
    singleton.stop(Slow);
    assertEquals([singleton.isStarted(Slow), singleton.managerFor(Slow)], [false, undefined]);
    assertStringIncludes(assertThrows(() => singleton.start(Slow)).message, 'still stopping');
    await cluster.until(() => journal.live === 0);
    await cluster.pass(10);
    singleton.start(Slow);
    await cluster.until(() => journal.live === 1);
    singleton.stop('never-heard-of');
  });
});

describe('refs', () => {
  test('R6, R7: a ref before start buffers, never hosts, and later delivers locally', async () => {
    const { cluster, singleton } = await alone();
    const journal = new Journal();
    const Counter = counterClass(journal);
    const ref = singleton.ref(Counter);
    ref.tell(1);
    await cluster.pass(2_000);
    assertEquals([singleton.isStarted(Counter), journal.live], [false, 0]);
    assertStrictEquals(singleton.start(Counter), ref);
    await cluster.until(() => journal.got.length === 1);
  });

  test('R10: stopping or killing a ref only warns and names the way', async () => {
    const { cluster, singleton } = await alone();
    const ref = singleton.start(Plain);
    ref.stop();
    (ref as unknown as { kill(): void }).kill();
    assertEquals(warnings(cluster).filter((message) => message.includes('cluster.singleton.stop(key)')).length, 2);
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[0]!.address);
  });

  test('R56: replies and refs inside messages work over nodes', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    class Echo extends Actor<{ replyTo: unknown[]; text: string }> {
      static readonly singleton = SingletonKey.of<{ replyTo: unknown[]; text: string }>('echo');
      override onReceive({ replyTo, text }: { replyTo: unknown[]; text: string }): void {
        (replyTo[0] as { tell(message: unknown): void }).tell(`${text} from ${this.cluster.address}`);
      }
    }
    const got: unknown[] = [];
    class Reader extends Actor<unknown> {
      override onReceive(message: unknown): void {
        got.push(message);
      }
    }
    const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Echo));
    const reader = cluster.nodes[1]!.system.spawn(Reader, 'reader');
    refs[1]!.tell({ replyTo: [reader], text: 'hello' });
    await cluster.until(() => got.length === 1);
    assertEquals(got, [`hello from ${cluster.nodes[0]!.address}`]);
  });

  test('an instance that sends its own ref is answered wherever it runs by then', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const got: unknown[] = [];
    class Asker extends Actor<unknown> {
      static readonly singleton = SingletonKey.of<unknown>('asker');
      override onReceive(message: unknown): void {
        if (message instanceof Object && 'ask' in message) {
          (message as { ask: { tell(text: unknown, from: unknown): void } }).ask.tell('who are you', this.context.self);
        } else got.push([message, this.cluster.address]);
      }
    }
    class Answerer extends Actor<unknown> {
      override onReceive(): void {
        this.context.sender.tell('the answerer');
      }
    }
    for (const node of cluster.nodes) node.cluster.singleton.start(Asker);
    const answerer = cluster.nodes[1]!.system.spawn(Answerer, 'answerer');
    cluster.nodes[1]!.cluster.singleton.ref(Asker).tell({ ask: answerer });
    await cluster.until(() => got.length === 1);
    assertEquals(got, [['the answerer', cluster.nodes[0]!.address]]);
  });

  test('a ref of a singleton travels in messages and means the same on the other node', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const journal = new Journal();
    const Counter = counterClass(journal);
    class Caller extends Actor<{ counter: { tell(n: Command): void } }> {
      static readonly singleton = SingletonKey.of<{ counter: { tell(n: Command): void } }>('caller');
      override onReceive({ counter }: { counter: { tell(n: Command): void } }): void {
        counter.tell(7);
      }
    }
    cluster.nodes[0]!.cluster.singleton.start(Caller);
    const counter = cluster.nodes[1]!.cluster.singleton.start(Counter);
    const caller = cluster.nodes[1]!.cluster.singleton.ref(Caller);
    caller.tell({ counter });
    await cluster.until(() => journal.got.length === 1);
    assertEquals(journal.got, [7]);
  });
});

describe('binding', () => {
  test('R11: one cluster for one system; R14: an actor without a cluster is told so', async () => {
    const { cluster, node } = await alone();
    await assertRejects(() => Cluster.join(node.system, {}), Error, 'bound to a cluster already');
    const environment = new ManualEnvironment();
    const system = ActorSystem.create('lonely', { environment, logger: environment.log });
    let error: unknown;
    class Lonely extends Actor<unknown> {
      override preStart(): void {
        try {
          void this.cluster;
        } catch (caught) {
          error = caught;
        }
      }
      override onReceive(): void {}
    }
    system.spawn(Lonely, 'lonely');
    environment.runTurns();
    assert(error instanceof NoClusterError);
    void cluster;
  });

  test('R12: a role in the options beats the key; a conflicting second role warns and the oldest starter counts', async () => {
    const cluster = new MemoryCluster();
    await cluster.join({ roles: ['a'] });
    await cluster.join({ roles: ['b'] });
    await cluster.join({ roles: ['b'] });
    const journal = new Journal();
    const Counter = counterClass(journal, { role: 'a' });
    cluster.nodes[1]!.cluster.singleton.start(Counter, { role: 'b' });
    await cluster.until(() => journal.live === 1);
    cluster.nodes[2]!.cluster.singleton.start(Counter, { role: 'b' });
    assertEquals(
      await cluster.get(cluster.nodes[2]!.cluster.singleton.ref(Counter).ask('where')),
      cluster.nodes[1]!.address,
    );
    cluster.nodes[2]!.cluster.singleton.ref('counter');
    cluster.nodes[0]!.cluster.singleton.start(Counter);
    assert(warnings(cluster).some((message) => message.includes('started with role a')));
  });

  test('R54: what is told after this node has left is a dead letter at once', async () => {
    const { cluster, node, singleton } = await alone();
    const ref = singleton.start(Plain);
    await cluster.get(node.cluster.leave());
    ref.tell('where');
    assertEquals(node.system.deadLetters.countOf('terminated'), 1);
    assertThrows(() => singleton.start(Plain), Error, 'left the cluster');
  });
});
