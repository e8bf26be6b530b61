import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { WarmHandOverActor } from '../../src/singleton/warm_hand_over.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';

const never = (): Promise<void> => new Promise(() => {});
const warnings = (cluster: MemoryCluster, text: string): number =>
  cluster.environment.logged.filter((entry) => entry.level !== 'debug' && entry.message.includes(text)).length;

async function startedOn(cluster: MemoryCluster, type: never, settings = {}) {
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start<any>(type, settings));
  await cluster.get(refs[0]!.ask('where', 60_000));
  return refs;
}

test('a postStop that never settles is killed after stopTimeoutMs, and the successor starts', async () => {
  class Stuck extends Actor<'where'> {
    static readonly singleton: SingletonKey<'where'> = SingletonKey.of('stuck');
    override onReceive(): void {
      this.context.sender.tell(this.cluster.address);
    }
    override postStop(): Promise<void> {
      return never();
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const refs = await startedOn(cluster, Stuck as never, { stopTimeoutMs: 2_000 });
  const at = cluster.environment.clock.now();
  cluster.nodes[1]!.cluster.singleton.move('stuck');
  await cluster.pass(1_500);
  assertEquals(await cluster.get(refs[0]!.ask('where', 60_000)), cluster.nodes[1]!.address);
  assert(cluster.environment.clock.now() - at >= 2_000);
  assertEquals(warnings(cluster, 'did not stop in time and is killed'), 1);
});

test('a handler that never settles is abandoned by the kill; its message is not handled again, the others are', async () => {
  const begun: string[] = [];
  class Hanging extends Actor<string> {
    static readonly singleton: SingletonKey<string> = SingletonKey.of('hanging');
    override onReceive(message: string): void | Promise<void> {
      if (message === 'where') return this.context.sender.tell(this.cluster.address);
      begun.push(message);
      return message === 'hang' ? never() : undefined;
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const refs = await startedOn(cluster, Hanging as never, { stopTimeoutMs: 1_000 });
  for (const message of ['a', 'hang', 'b', 'c']) refs[1]!.tell(message);
  await cluster.until(() => begun.includes('hang'));
  cluster.nodes[0]!.cluster.singleton.move('hanging');
  await cluster.until(() => begun.includes('c'));
  assertEquals(begun, ['a', 'hang', 'b', 'c']);
  await cluster.pass(1_000);
  const { told, acknowledged, buffered } = cluster.nodes[1]!.cluster.singleton.find('hanging')!.proxy.stream.ledger();
  assertEquals([told, buffered], [acknowledged, 0]);
});

test('S3: what reaches an instance that is stuck in postStop is handled by its successor, after the kill too', async () => {
  const handled: string[] = [];
  class Stuck extends Actor<string> {
    static readonly singleton: SingletonKey<string> = SingletonKey.of('stuck-late');
    override async onReceive(message: string): Promise<void> {
      if (message === 'where') return this.context.sender.tell(this.cluster.address);
      if (message === 'slow') await new Promise<void>((resolve) => release = resolve);
      handled.push(message);
    }
    override postStop(): Promise<void> {
      return never();
    }
  }
  let release = (): void => {};
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const refs = await startedOn(cluster, Stuck as never, { stopTimeoutMs: 5_000 });
  for (const message of ['slow', 'queued']) refs[1]!.tell(message);
  await cluster.pass(200);
  cluster.nodes[0]!.cluster.singleton.move('stuck-late');
  await cluster.pass(200);
  release();
  await cluster.pass(200);
  assertEquals(handled, ['slow']);
  refs[0]!.tell('here, while it is stuck');
  refs[1]!.tell('there, while it is stuck');
  await cluster.pass(20_000);
  assertEquals(warnings(cluster, 'did not stop in time and is killed'), 1);
  assertEquals(handled.toSorted(), ['here, while it is stuck', 'queued', 'slow', 'there, while it is stuck']);
  for (const { cluster: { singleton } } of cluster.nodes) {
    const { told, acknowledged, buffered } = singleton.find('stuck-late')!.proxy.stream.ledger();
    assertEquals([told, buffered], [acknowledged, 0]);
  }
});

test('a constructor or preStart that throws is retried with backoff until it works, and then moves on or runs', async () => {
  let failures = 0;
  class Flaky extends Actor<'where'> {
    static readonly singleton: SingletonKey<'where'> = SingletonKey.of('flaky');
    constructor() {
      super();
      if (failures++ < 15) throw new Error('not yet');
    }
    override onReceive(): void {
      this.context.sender.tell(this.cluster.address);
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const ref = cluster.nodes[0]!.cluster.singleton.start(Flaky);
  assertEquals(await cluster.get(ref.ask('where', 60_000)), cluster.nodes[0]!.address);
  assertEquals(failures, 16);
});

test('R43, A12: serializers and restorers that throw, wrong types, states over the limit: cold starts with a warning', async () => {
  for (
    const [what, serialized] of [['throws', 'throw'], ['a string', 'text'], ['too large', new Uint8Array(11)]] as const
  ) {
    class Warm extends WarmHandOverActor<'where'> {
      static readonly singleton: SingletonKey<'where'> = SingletonKey.of('warm');
      override onReceive(): void {
        this.context.sender.tell(this.cluster.address);
      }
      serializeForHandOver(): Uint8Array {
        if (serialized === 'throw') throw new Error('no');
        return serialized as Uint8Array;
      }
      restoreFromHandOver(): void {
        throw new Error('nothing to restore was expected');
      }
    }
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const refs = await startedOn(cluster, Warm as never, { maxHandOverStateBytes: 10 });
    cluster.nodes[1]!.cluster.singleton.move('warm');
    await cluster.pass(500);
    assertEquals(await cluster.get(refs[0]!.ask('where')), cluster.nodes[1]!.address, what);
    assertEquals(warnings(cluster, 'cold start'), 1, what);
  }
});

test('R42: a state of 64 MiB moves in chunks, and heartbeats are not disturbed', async () => {
  const size = 64 * 1024 * 1024;
  let restored: Uint8Array | undefined;
  class Big extends WarmHandOverActor<'where'> {
    static readonly singleton: SingletonKey<'where'> = SingletonKey.of('big');
    override onReceive(): void {
      this.context.sender.tell(this.cluster.address);
    }
    serializeForHandOver(): Uint8Array {
      return new Uint8Array(size).fill(7);
    }
    restoreFromHandOver(state: Uint8Array): void {
      restored = state;
    }
  }
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const refs = await startedOn(cluster, Big as never, { maxHandOverStateBytes: size });
  await cluster.leave(cluster.nodes[0]!);
  assertEquals(await cluster.get(refs[1]!.ask('where')), cluster.nodes[0]!.address);
  assertEquals([restored?.length, restored?.[size - 1]], [size, 7]);
  assertEquals(warnings(cluster, 'unreachable'), 0);
});
