/** Bounds in bytes: at the sender, on the way, and at the host; and what is refused in either place. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { limits } from '../../src/limits.ts';
import { DeliveryHost, type Receipt } from '../../src/singleton/delivery_host.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { SenderStream, type StreamPort } from '../../src/singleton/sender_stream.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

const mib = 1024 * 1024;

/** A sender whose messages are numbers: their sizes, in MiB. */
function senderOf(bufferMiB: number, overflow: 'drop-newest' | 'drop-oldest') {
  const sent: unknown[] = [];
  const lost: [unknown, string, string][] = [];
  const port: StreamPort = {
    weigh: (message) => (message as number) * mib,
    transmit: (_target, _seq, message) => {
      sent.push(message);
      return (message as number) * mib;
    },
    lost: (message, _sender, reason, detail) => lost.push([message, reason, detail]),
  };
  const stream = new SenderStream(1_000, bufferMiB * mib, overflow);
  stream.attach(port);
  const open = () =>
    stream.opened({
      target: { uid: 'h', address: 'h:1', epoch: 1 },
      verdict: 'continued',
      next: 1,
      prefix: 0,
      exceptions: [],
    }, 'at-most-once');
  const check = () => {
    const { told, acknowledged, deadLettered, outcomeUnknown, buffered } = stream.ledger();
    assertEquals(told, acknowledged + deadLettered + outcomeUnknown + buffered);
  };
  return { stream, sent, lost, open, check };
}

describe('the sender', () => {
  test('R141: at most 16 MiB are on the way, the rest waits, and each acknowledgement lets more go', () => {
    const { stream, sent, lost, open, check } = senderOf(64, 'drop-newest');
    open();
    for (let n = 0; n < 40; n += 1) stream.tell(1, undefined);
    assertEquals([sent.length, stream.waiting, stream.ledger().windowFull], [16, 24, 1]);
    assertEquals(stream.ledger().bufferedBytes, 40 * mib);
    stream.acknowledged(10, []);
    stream.pump();
    assertEquals([sent.length, stream.waiting], [26, 14]);
    for (let n = 10; n < 40; n += 10) {
      stream.acknowledged(n + 10, []);
      stream.pump();
      check();
    }
    assertEquals([lost, stream.buffered, stream.ledger().bufferedBytes], [[], 0, 0]);
  });

  test('R141: the buffer is bounded in bytes too: the newest are dead letters, or the oldest', () => {
    for (const overflow of ['drop-newest', 'drop-oldest'] as const) {
      const { stream, lost, open, sent, check } = senderOf(5, overflow);
      for (const size of [1, 2, 1.5, 3, 0.25]) stream.tell(size, undefined);
      check();
      const kept = overflow === 'drop-newest' ? [1, 2, 1.5, 0.25] : [1.5, 3, 0.25];
      const gone = overflow === 'drop-newest' ? [3] : [1, 2];
      assertEquals(lost.map(([message, reason]) => [message, reason]), gone.map((size) => [size, 'buffer-overflow']));
      assertStringIncludes(lost[0]![2], `${5 * mib} bytes`);
      open();
      assertEquals(sent, kept);
      check();
    }
  });

  test('one message that is larger than the buffer, or than what may be on the way, goes all the same', () => {
    const { stream, sent, open, lost } = senderOf(1, 'drop-newest');
    stream.tell(20, undefined);
    open();
    assertEquals([sent, lost], [[20], []]);
    stream.tell(1, undefined);
    assertEquals(sent, [20]);
    stream.acknowledged(1, []);
    stream.pump();
    assertEquals(sent, [20, 1]);
  });
});

describe('the host', () => {
  test('R141: beyond its bound it turns senders away, and calls them when half is handled; nothing is lost or reordered', () => {
    const inbox: [unknown, Receipt][] = [];
    const resumed: string[] = [];
    const host = new DeliveryHost({
      deliver: (message, _sender, receipt) => inbox.push([message, receipt]),
      acknowledge: () => {},
      resume: (stream) => resumed.push(stream),
      wantsFlush: () => {},
    });
    host.begin(1, 1, []);
    const bytes = limits.hostHeldBytes / 8;
    const streams = ['a', 'b', 'c'];
    for (const stream of streams) {
      host.open(stream, { name: 'x', base: 1, next: 1, lastSentEpoch: 0, repeat: false });
    }
    const offer = (stream: string, seq: number) =>
      host.offer(stream, { seq, message: `${stream}${seq}`, sender: undefined, bytes, repeat: false });
    for (let seq = 1; seq <= 4; seq += 1) assertEquals([offer('a', seq), offer('b', seq)], ['accepted', 'accepted']);
    assertEquals([offer('a', 5), offer('a', 6), offer('c', 1)], ['full', 'ignored', 'full']);
    assertEquals([host.held, host.heldBytes, host.full], [8, limits.hostHeldBytes, 2]);
    const handled: unknown[] = [];
    const handle = () => {
      const [message, receipt] = inbox.shift()!;
      handled.push(message);
      host.settled(receipt, false);
    };
    for (let n = 0; n < 3; n += 1) handle();
    assertEquals(resumed, []);
    handle();
    assertEquals(resumed, ['a', 'c']);
    assertEquals([offer('a', 5), offer('a', 6), offer('c', 1)], ['accepted', 'accepted', 'accepted']);
    while (inbox.length > 0) handle();
    assertEquals([host.held, host.heldBytes], [0, 0]);
    for (const stream of streams) {
      const own = handled.filter((message) => (message as string).startsWith(stream));
      assertEquals(own, own.map((_, at) => `${stream}${at + 1}`));
    }
  });

  test('what an instance held that is gone does not count against the next', () => {
    const receipts: Receipt[] = [];
    const host = new DeliveryHost({
      deliver: (_message, _sender, receipt) => receipts.push(receipt),
      acknowledge: () => {},
      resume: () => {},
      wantsFlush: () => {},
    });
    host.begin(1, 1, []);
    host.open('a', { name: 'x', base: 1, next: 1, lastSentEpoch: 0, repeat: false });
    host.offer('a', { seq: 1, message: 1, sender: undefined, bytes: 5, repeat: false });
    host.beginAgain(2);
    assertEquals(host.heldBytes, 0);
    host.settled(receipts[0]!, false);
    assertEquals([host.held, host.heldBytes], [0, 0]);
  });
});

/** Takes its time with each message. */
class Slow extends Actor<Uint8Array> {
  static readonly singleton: SingletonKey<Uint8Array> = SingletonKey.of<Uint8Array>('slow');
  static handled = 0;
  override async onReceive(): Promise<void> {
    const { timers } = this.context.system.environment;
    await new Promise<void>((resolve) => timers.set(20, resolve));
    Slow.handled += 1;
  }
}

test('R141: a flood of 1 MiB messages to a slow host stays bounded on both ends, and every one is accounted for', async () => {
  Slow.handled = 0;
  const cluster = new MemoryCluster();
  await cluster.grow(3);
  const refs = cluster.nodes.map(({ cluster: { singleton } }) => singleton.start(Slow, { bufferBytes: 8 * mib }));
  const ends = cluster.nodes.map(({ cluster: { singleton } }) => singleton.find('slow')!);
  await cluster.until(() => ends[0]!.manager.state.phase.kind === 'hosting');
  let letters = 0;
  for (const { system } of cluster.nodes) system.deadLetters.subscribe(() => letters += 1);
  const body = new Uint8Array(mib);
  const most = { sender: 0, host: 0 };
  for (let round = 0; round < 12; round += 1) {
    for (const ref of refs) for (let n = 0; n < 5; n += 1) ref.tell(body);
    await cluster.pass(5);
    for (const { proxy } of ends) most.sender = Math.max(most.sender, proxy.stream.ledger().bufferedBytes);
    most.host = Math.max(most.host, ends[0]!.manager.host.heldBytes);
  }
  assert(most.sender > 20 * mib && most.sender <= (8 + 16 + 2) * mib, `${most.sender / mib} MiB at a sender`);
  assert(most.host > 40 * mib && most.host <= 3 * 17 * mib, `${most.host / mib} MiB at the host`);
  await cluster.until(() => ends.every(({ proxy }) => proxy.stream.buffered === 0));
  const books = ends.map(({ proxy }) => proxy.stream.ledger());
  const sum = (field: 'told' | 'acknowledged' | 'deadLettered' | 'dropped') =>
    books.reduce((total, book) => total + book[field], 0);
  assertEquals(sum('told'), 180);
  assertEquals([sum('acknowledged'), sum('deadLettered')], [Slow.handled, letters]);
  assertEquals([sum('told'), sum('dropped')], [Slow.handled + letters, letters]);
  assert(letters > 50 && books.every(({ windowFull, bufferedBytes }) => windowFull > 0 && bufferedBytes === 0));
});

const leaves: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => -0,
  () => NaN,
  () => 2n ** 70n,
  () => 'äx€',
  () => new Date(5),
  () => new Uint8Array([1, 2, 3]),
  () => new Float64Array([0.5]),
  () => /a+/gi,
  () => new URL('http://a/b'),
];

function randomValue(random: { next(): number }, depth: number): unknown {
  const below = (count: number) => Math.floor(random.next() * count);
  const kind = depth === 0 ? 4 : below(6);
  const items = () => Array.from({ length: below(4) }, () => randomValue(random, depth - 1));
  if (kind === 0) return items();
  if (kind === 1) return new Map(items().map((item, at) => [at % 2 === 0 ? `k${at}` : at, item]));
  if (kind === 2) return new Set(items());
  if (kind === 3) return Object.fromEntries(items().map((item, at) => [`f${at}`, item]));
  return leaves[below(leaves.length)]!();
}

class Keeper extends Actor<any> {
  static readonly singleton: SingletonKey<any> = SingletonKey.of<any>('keeper');
  static got: any[] = [];
  override onReceive(message: any): void {
    Keeper.got.push(message);
  }
}

test('senders that go on telling singletons what cannot be sent share one budget of log lines', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(1);
  const [{ cluster: { singleton }, system }] = cluster.nodes as [MemoryNode];
  let letters = 0;
  system.deadLetters.subscribe(() => letters++);
  const refs = ['a', 'b'].map((name) => singleton.start(SingletonKey.of<unknown>(name), () => new Keeper()));
  for (let n = 0; n < 500; n++) for (const ref of refs) ref.tell({ run: () => n });
  await cluster.pass(100);
  const lines = cluster.environment.logged.filter(({ message }) => message.includes('cannot be sent'));
  assertEquals([letters, lines.length], [1_000, 20]);
});

describe('R150: a message does not depend on where the host is', () => {
  for (const localMessages of ['shared', 'copied'] as const) {
    test(`what cannot be sent is refused everywhere, and what can arrives alike (${localMessages})`, async () => {
      Keeper.got = [];
      const cluster = new MemoryCluster();
      await cluster.grow(2);
      const refs = cluster.nodes.map(({ cluster: { singleton } }) => singleton.start(Keeper, { localMessages }));
      const letters = cluster.nodes.map(({ system }) => {
        const reasons: string[] = [];
        system.deadLetters.subscribe(({ reason, detail }) => reasons.push(`${reason}: ${detail}`));
        return reasons;
      });
      const cycle: Record<string, unknown> = {};
      cycle['self'] = cycle;
      const refused = [{ run: () => 1 }, Symbol('s'), { deep: [new (class Own {})()] }, cycle, Promise.resolve(1)];
      const tooLarge = new Uint8Array(limits.messageBytes + 1);
      const told = { map: new Map([['k', [1n]]]), at: new Date(5), bytes: new Uint8Array([1, 2]) };
      for (const ref of refs) {
        for (const message of [...refused, tooLarge]) ref.tell(message);
        ref.tell(told);
      }
      await cluster.until(() => Keeper.got.length === 2);
      await cluster.pass(100);
      assertEquals(letters[0], letters[1]);
      assertEquals(letters[0]!.map((text) => text.split(':')[0]), [
        ...refused.map(() => 'unserializable'),
        'too-large',
      ]);
      for (const got of Keeper.got) assertEquals(got, told);
      const [shared] = Keeper.got.filter((got) => got === told);
      assertEquals(shared !== undefined, localMessages === 'shared');
      for (const { cluster: { singleton } } of cluster.nodes) {
        const { told: all, acknowledged, deadLettered } = singleton.find('keeper')!.proxy.stream.ledger();
        assertEquals([all, acknowledged, deadLettered], [7, 1, 6]);
      }
    });
  }

  test('random messages arrive alike from the same node and from another, what occurs twice in them included', async () => {
    Keeper.got = [];
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const refs = cluster.nodes.map(({ cluster: { singleton } }) =>
      singleton.start(Keeper, { localMessages: 'copied' })
    );
    const random = seededRandom(150);
    const count = 300;
    const told = Array.from({ length: count }, () => {
      const twice = randomValue(random, 3);
      return { once: randomValue(random, 4), twice, again: [twice, new Map([['k', twice]])] };
    });
    for (const message of told) {
      refs[0]!.tell(message);
      await cluster.until(() => Keeper.got.length % 2 === 1);
      refs[1]!.tell(message);
      await cluster.until(() => Keeper.got.length % 2 === 0);
    }
    assertEquals(Keeper.got.length, 2 * count);
    for (const [at, message] of told.entries()) {
      const [local, remote] = [Keeper.got[2 * at], Keeper.got[2 * at + 1]];
      assertEquals(local, remote);
      assertEquals(local, message);
      for (const got of [local, remote]) {
        assert(got !== message && Object.is(got.again[0], got.twice) && Object.is(got.again[1].get('k'), got.twice));
      }
    }
  });

  test('also while nobody hosts: it is a dead letter at once', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(1);
    const [node] = cluster.nodes as [(typeof cluster.nodes)[0]];
    const reasons: string[] = [];
    node.system.deadLetters.subscribe(({ reason }) => reasons.push(reason));
    node.cluster.singleton.ref<unknown>('nobody').tell({ run: () => 1 });
    assertEquals(reasons, ['unserializable']);
  });
});
