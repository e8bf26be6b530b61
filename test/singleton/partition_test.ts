import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';

interface Handled {
  readonly host: string;
  readonly epoch: number;
  readonly at: number;
}

/** Handles a tick of its own every 20 ms: the gate must stop that too. */
function ticker(handled: Handled[]) {
  return class Ticker extends Actor<'tick' | 'where'> {
    static readonly singleton: SingletonKey<'tick' | 'where'> = SingletonKey.of('ticker');
    override preStart(): void {
      this.context.timers.startFixedDelay('tick', 'tick', 20);
    }
    override onReceive(message: 'tick' | 'where'): void {
      const { epoch } = this.context;
      handled.push({ host: this.cluster.address, epoch, at: this.context.system.environment.clock.now() });
      if (message === 'where') this.context.sender.tell(this.cluster.address);
    }
  };
}

async function split(settings = {}) {
  const handled: Handled[] = [];
  const Ticker = ticker(handled);
  const cluster = new MemoryCluster();
  await cluster.grow(3, settings);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Ticker));
  await cluster.until(() => handled.length > 0);
  const [a, b, c] = cluster.nodes.map((node) => node.address) as [string, string, string];
  cluster.network.cut(a, b);
  cluster.network.cut(a, c);
  return { handled, cluster, refs, a, b, c, cutAt: cluster.environment.clock.now() };
}

/** In the order of time the hosts follow each other: none comes back between the messages of another. */
function neverTwo(handled: readonly Handled[]): void {
  const order = [...handled].sort((one, other) => one.at - other.at).map((one) => one.host);
  const turns = order.filter((host, index) => host !== order[index - 1]);
  assertEquals(turns, [...new Set(turns)]);
}

test('rules 1 and 2: a host cut off from the majority stops handling, timers included, before the other side starts', async () => {
  const { handled, cluster, refs, a, b, cutAt } = await split();
  await cluster.until(() => handled.some((one) => one.host === b));
  neverTwo(handled);
  const lastOld = Math.max(...handled.filter((one) => one.host === a).map((one) => one.at));
  const firstNew = Math.min(...handled.filter((one) => one.host === b).map((one) => one.at));
  assert(lastOld - cutAt <= 1_500, `the gate window: ${lastOld - cutAt} ms`);
  assert(firstNew - cutAt < 10_000, `failover across machines: ${firstNew - cutAt} ms`);
  assert(firstNew - lastOld >= 1_000, 'the margin covers stopBound');
  const epochs = handled.map((one) => one.epoch);
  assertEquals(epochs, [...epochs].sort((x, y) => x - y), 'S5: epochs only grow');
  assertEquals(await cluster.get(refs[1]!.ask('where')), b);
});

test('rule 2: the gate covers the children of the instance, and they share its epoch', async () => {
  const handled: Handled[] = [];
  const Child = ticker(handled);
  class Parent extends Actor<'where'> {
    static readonly singleton: SingletonKey<'where'> = SingletonKey.of('parent');
    override preStart(): void {
      this.context.spawn(Child as never, 'child');
    }
    override onReceive(): void {
      this.context.sender.tell(this.context.epoch);
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Parent));
  await cluster.until(() => handled.length > 0);
  assertEquals(await cluster.get(refs[0]!.ask('where')), handled[0]!.epoch);
  const [a, b, c] = cluster.nodes.map((node) => node.address) as [string, string, string];
  cluster.network.cut(a, b);
  cluster.network.cut(a, c);
  await cluster.until(() => handled.some((one) => one.host === b));
  neverTwo(handled);
});

test('R18, A10: a cut that heals before it is decided moves nothing', async () => {
  const { handled, cluster, refs, a, b, c } = await split();
  await cluster.pass(3_000);
  cluster.network.heal(a, b);
  cluster.network.heal(a, c);
  const healed = cluster.environment.clock.now();
  await cluster.until(() => handled.some((one) => one.at > healed));
  await cluster.pass(8_000);
  assertEquals([...new Set(handled.map((one) => one.host))], [a]);
  assertEquals(await cluster.get(refs[2]!.ask('where')), a);
});

test('with manual downing an unreachable host keeps its instance and nobody else starts, until an operator decides', async () => {
  const { handled, cluster, a, b } = await split({ downing: 'manual' });
  await cluster.pass(9_000);
  assertEquals([...new Set(handled.map((one) => one.host))], [a]);
  cluster.nodes[0]!.cluster.down(a);
  cluster.nodes[1]!.cluster.down(a);
  await cluster.until(() => handled.some((one) => one.host === b));
  neverTwo(handled);
});
