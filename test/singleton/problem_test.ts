import { test } from 'node:test';
import { assertEquals, assertRejects } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

class Odd extends Actor<'ignore' | 'hang'> {
  static readonly singleton: SingletonKey<'ignore' | 'hang'> = SingletonKey.of<'ignore' | 'hang'>('odd');
  override onReceive(message: 'ignore' | 'hang'): void | Promise<void> {
    if (message === 'hang') return new Promise<void>(() => {});
  }
}

async function refusal(cluster: MemoryCluster, ref: ActorRef<any>, message: unknown = 'ignore'): Promise<unknown> {
  const error = await assertRejects(() => cluster.get(ref.ask(message, 1_000)));
  return (error as Error & { why?: string }).why;
}

test('an ask that gets no reply says why: nobody started it, no role, no answer, a stuck handler, a host out of reach', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const [first, second, third] = cluster.nodes as [MemoryNode, MemoryNode, MemoryNode];
  const ref = third.cluster.singleton.ref(Odd);
  assertEquals(await refusal(cluster, ref), 'no member has started it');
  second.cluster.singleton.start(Odd, { role: 'worker' });
  assertEquals(await refusal(cluster, ref), 'no member that has started it carries the role worker');
  second.cluster.singleton.stop(Odd);
  await cluster.pass(100);
  second.cluster.singleton.start(Odd);
  await cluster.pass(500);
  assertEquals(
    await refusal(cluster, ref),
    `its host ${second.address} has handled it and did not answer, or failed at it, which its log says`,
  );
  assertEquals(
    await refusal(cluster, ref, 'hang'),
    `its host ${second.address} has not handled 1 messages of this node`,
  );
  for (const other of [first, third]) cluster.network.cut(second.address, other.address);
  await cluster.until(() => third.cluster.getMembers().some((member) => !member.reachable));
  assertEquals(await refusal(cluster, ref), `its host ${second.address} is not reachable`);
});

test('an ask during a slow hand-over says that the host takes nothing', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const [first, second] = cluster.nodes as [MemoryNode, MemoryNode];
  class SlowStop extends Odd {
    override postStop(): Promise<void> {
      return new Promise<void>((resolve) => this.context.system.environment.timers.set(5_000, resolve));
    }
  }
  const key = SingletonKey.of<'ignore' | 'hang'>('slow-stop');
  for (const { cluster: { singleton } } of cluster.nodes) singleton.start(key, SlowStop);
  await cluster.pass(500);
  first.cluster.singleton.move('slow-stop', second.address);
  await cluster.pass(100);
  const ref = first.cluster.singleton.ref(key);
  assertEquals(await refusal(cluster, ref), `its host ${first.address} has not taken messages of this node yet`);
});
