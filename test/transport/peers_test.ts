import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { fastPaths } from '../../src/fast_paths.ts';
import { limits } from '../../src/limits.ts';
import { addressOf, type PeersNode, world } from './peers_node.ts';

const A = addressOf(1);
const B = addressOf(2);

/** Numbers received in messages [1, n]. */
function numbers(node: PeersNode, code = 1): number[] {
  return node.got.filter((envelope) => envelope[0] === code).map((envelope) => envelope[1] as number);
}

function range(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

describe('peers: sending', () => {
  test('dials on demand; one link serves both directions', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    assertEquals(a.peers.sendUser(B, [1, 0, { text: 'hi' }]), undefined);
    env.advance(10);
    assertEquals(b.got, [[1, 0, { text: 'hi' }]]);
    b.peers.sendUser(A, [1, 1]);
    env.advance(10);
    assertEquals(a.got, [[1, 1]]);
    assertEquals([a.events, b.events], [['+b'], ['+a']]);
    assertEquals([a.peers.counters.dials, b.peers.counters.dials], [1, 0]);
    assertEquals([a.peers.connected(B)?.uid, b.peers.connected(A)?.uid], ['b', 'a']);
  });

  test('works whichever side has the smaller uid', async () => {
    for (const [uidA, uidB] of [['x', 'y'], ['y', 'x']] as const) {
      const { env, node } = world({ delay: () => 3 });
      const a = await node(1, uidA);
      const b = await node(2, uidB);
      for (const n of range(50)) a.peers.sendUser(B, [1, n]);
      env.advance(100);
      assertEquals(numbers(b), range(50));
    }
  });

  for (const joint of [true, false]) {
    test(`messages of one turn share ${joint ? 'a frame' : 'a frame of each lane'}; system messages go first`, async () => {
      fastPaths.jointFrames = joint;
      try {
        const { env, node } = world();
        const a = await node(1, 'a');
        const b = await node(2, 'b');
        a.peers.connect(B);
        env.advance(10);
        for (const n of range(100)) a.peers.sendUser(B, [1, n]);
        a.peers.sendSystem(B, [13, 'beat']);
        env.advance(10);
        assertEquals(b.got[0], [13, 'beat']);
        assertEquals(numbers(b), range(100));
        const { out } = a.peers.counters;
        assertEquals([out.user.frames, out.system.frames], joint ? [1, 0] : [1, 1]);
        assertEquals([out.user.messages, b.peers.counters.in.user.messages], joint ? [101, 101] : [100, 100]);
      } finally {
        fastPaths.jointFrames = true;
      }
    });
  }

  test('system messages do not wait in one frame with many user messages', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    for (let n = 0; n < 20; n++) a.peers.sendUser(B, [1, 'x'.repeat(1_000)]);
    a.peers.sendSystem(B, [13, 'beat']);
    env.advance(10);
    assertEquals([a.peers.counters.out.user.frames, a.peers.counters.out.system.frames], [1, 1]);
    assertEquals(b.got.slice(0, 2).map(([code]) => code), [13, 1]);
  });

  test('what nodes say among themselves may be larger than what users tell; neither is without bound', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    const large = new Uint8Array(limits.messageBytes + 1);
    a.peers.sendSystem(B, [13, large]);
    a.peers.sendSystem(B, [14, new Uint8Array(limits.systemMessageBytes)]);
    assertEquals(a.peers.sendUser(B, [1, large])?.reason, 'too-large');
    env.advance(10);
    assertEquals(b.got.map(([code, bytes]) => [code, (bytes as Uint8Array).length]), [[13, large.length]]);
    assertEquals(a.peers.counters.dropped.get('unserializable'), 1);
  });

  for (const largeFrames of [true, false]) {
    test(`large and small messages keep their order, large ones ${largeFrames ? 'in' : 'without'} frames of their own`, async () => {
      fastPaths.largeFrames = largeFrames;
      fastPaths.onTheSpot = false;
      try {
        const { env, node } = world();
        const a = await node(1, 'a');
        const b = await node(2, 'b');
        a.peers.connect(B);
        env.advance(10);
        const sizes = [10, 16_000, 20_000, 10, 60_000, 17_000, 10];
        sizes.forEach((size, n) => a.peers.sendUser(B, [n + 1, new Uint8Array(size).fill(n)]));
        env.advance(10);
        assertEquals(b.got.map(([code, bytes]) => [code, (bytes as Uint8Array).length, (bytes as Uint8Array).at(-1)]), [
          ...sizes.map((size, n) => [n + 1, size, n]),
        ]);
        const { frames, messages } = a.peers.counters.out.user;
        assertEquals([frames, messages], [largeFrames ? 6 : 3, sizes.length]);
      } finally {
        fastPaths.largeFrames = fastPaths.onTheSpot = true;
      }
    });
  }

  test('large messages leave on the spot, behind what was sent before them and as what they were', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    const body = new Uint8Array(100_000);
    a.peers.sendUser(B, [1, 'small']);
    for (let n = 2; n < 30; n++) {
      a.peers.sendUser(B, [n, body.fill(n)]);
      assertEquals(a.peers.counters.out.user.messages, Math.min(n, 12));
    }
    a.peers.sendUser(B, [30, 'small']);
    body.fill(0);
    env.advance(100);
    assertEquals(b.got.map(([code, bytes]) => [code, bytes instanceof Uint8Array ? bytes.at(-1) : bytes]), [
      [1, 'small'],
      ...Array.from({ length: 28 }, (_, n) => [n + 2, n + 2]),
      [30, 'small'],
    ]);
  });

  test('what is sent before a flush leaves with it, and one that throws keeps nothing back', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    let runs = 0;
    a.peers.sendUser(B, [1, 1]);
    a.peers.beforeFlush(() => {
      throw new Error('broken');
    });
    a.peers.beforeFlush(() => {
      runs += 1;
      a.peers.sendSystem(B, [13, 'late']);
    });
    env.advance(10);
    assertEquals([b.got, runs], [[[13, 'late'], [1, 1]], 1]);
    assertEquals([a.peers.counters.out.user.frames, a.peers.counters.out.system.frames], [1, 0]);
    a.peers.beforeFlush(() => runs += 1);
    env.advance(10);
    assertEquals(runs, 2);
  });

  test('a full batch leaves before the turn ends; flush leaves at once', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    fastPaths.onTheSpot = false;
    for (let i = 0; i < 3; i++) a.peers.sendUser(B, [1, 'x'.repeat(limits.batchBytes / 2)]);
    fastPaths.onTheSpot = true;
    assert(a.peers.counters.out.user.frames >= 1);
    const before = a.peers.counters.out.user.frames;
    a.peers.flush();
    assertEquals(a.peers.counters.out.user.messages, 3);
    assert(a.peers.counters.out.user.frames > before);
  });

  test('what is sent is what it was when it was sent', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    const body = { n: 1 };
    a.peers.sendUser(B, [1, body]);
    body.n = 2;
    env.advance(10);
    assertEquals(b.got, [[1, { n: 1 }]]);
  });

  test('R111, FB-091: messages up to the limit arrive, in order with small ones; larger ones fail at the sender', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.sendUser(B, [1, 1]);
    a.peers.sendUser(B, [2, new Uint8Array(limits.messageBytes - 100).fill(5)]);
    a.peers.sendUser(B, [1, 3]);
    const refused = a.peers.sendUser(B, [1, new Uint8Array(limits.messageBytes)]);
    assertEquals(refused?.reason, 'too-large');
    assert(refused!.detail.includes(String(limits.messageBytes)));
    env.advance(1000);
    assertEquals(b.got.map((envelope) => envelope[0]), [1, 2, 1]);
    assertEquals((b.got[1]![1] as Uint8Array).length, limits.messageBytes - 100);
    assertEquals(b.peers.counters.malformed, 0);
  });

  test('R121: what cannot be sent fails at its sender and costs nobody else', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.sendUser(B, [1, 0]);
    const failure = a.peers.sendUser(B, [1, { list: [() => 1] }]);
    assertEquals(failure?.reason, 'unserializable');
    assert(failure!.detail.includes('list[0]'));
    a.peers.sendUser(B, [1, 1]);
    env.advance(10);
    assertEquals(numbers(b), [0, 1]);
    assertEquals(a.peers.counters.dropped.get('unserializable'), 1);
  });

  test('the own address is refused, not dialled', async () => {
    const { node } = world();
    const a = await node(1, 'a');
    assertEquals(a.peers.sendUser(A, [1])?.reason, 'closed');
    a.peers.sendSystem(A, [13]);
    a.peers.connect(A);
    assertEquals(a.peers.counters.dials, 0);
  });

  test('FB-087: a peer that reads nothing costs bounded memory, and system messages still pass', async () => {
    const { env, node, network } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    network.cut(A, B);
    const chunk = 'x'.repeat(60_000);
    let refused = 0;
    for (const n of range(1500)) if (a.peers.sendUser(B, [1, n, chunk]) !== undefined) refused++;
    env.advance(20);
    assert(refused > 0 && refused < 600, String(refused));
    assert(a.peers.congested(B));
    assertEquals(a.peers.counters.dropped.get('queue-full'), refused);
    const sentBefore = a.peers.counters.out.user.bytes;
    assert(sentBefore <= limits.socketBufferBytes + limits.frameBytes);
    a.peers.sendSystem(B, [13]);
    env.advance(5);
    assertEquals(a.peers.counters.out.system.messages, 1);
    assertEquals(a.peers.counters.out.user.bytes, sentBefore);
    network.heal(A, B);
    env.advance(5_000);
    assertEquals(numbers(b), range(1500 - refused));
    assert(!a.peers.congested(B));
  });

  test('the number of waiting messages is bounded per lane', async () => {
    const { env, node, network } = world();
    const a = await node(1, 'a');
    await node(2, 'b');
    network.cut(A, B);
    network.cut(B, A);
    for (const n of range(limits.peerQueueMessages)) a.peers.sendUser(B, [1, n]);
    assertEquals(a.peers.sendUser(B, [1, -1])?.reason, 'queue-full');
    for (const n of range(limits.peerSystemQueue + 5)) a.peers.sendSystem(B, [13, n]);
    assertEquals(a.peers.counters.dropped.get('system-queue-full'), 5);
    env.advance(1);
  });
});

describe('peers: dials that fail', () => {
  test('no silent loss: what was queued comes back, and the next send dials again', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    a.peers.sendUser(B, [1, 'one']);
    a.peers.sendSystem(B, [13]);
    env.advance(10);
    assertEquals(a.undelivered, [{ reason: 'unreachable', envelope: [1, 'one'] }]);
    assertEquals(a.peers.counters.dropped.get('unreachable'), 2);
    assertEquals(a.failures.map((failure) => failure.reason), ['refused']);
    const b = await node(2, 'b');
    a.peers.sendUser(B, [1, 'two']);
    env.advance(200);
    assertEquals(b.got, [[1, 'two']]);
  });

  test('dials of a dead address are spaced out, however much is sent; connect does not wait', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    for (let i = 0; i < 1000; i++) {
      a.peers.sendUser(B, [1, i]);
      env.advance(10);
    }
    assert(a.peers.counters.dials < 25, String(a.peers.counters.dials));
    env.advance(5_000);
    assertEquals(a.undelivered.length, 1000);
    const before = a.peers.counters.dials;
    a.peers.connect(B);
    assertEquals(a.peers.counters.dials, before + 1);
  });
});
