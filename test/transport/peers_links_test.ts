import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { ManualEnvironment, seededRandom } from '../../src/testkit/manual_environment.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';
import { createPeers, type LinkedPeers } from '../../src/transport/peers.ts';
import { Codec } from '../../src/wire/codec.ts';
import type { Envelope } from '../../src/transport/peers_contract.ts';
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

describe('peers: crossing dials', () => {
  for (const [uidA, uidB] of [['a', 'b'], ['b', 'a']] as const) {
    test(`R114: 60 different timings, ${uidA} dials ${uidB}: one link, nothing lost, doubled or reordered`, async () => {
      const random = seededRandom(uidA === 'a' ? 3 : 4);
      for (let round = 0; round < 60; round++) {
        const { env, node } = world({
          delay: () => 1 + Math.floor(random.next() * 100),
          diallerFirst: () => random.next() < 0.5,
        });
        const a = await node(1, uidA);
        const b = await node(2, uidB);
        const counts = { [A]: 0, [B]: 0 };
        const send = (from: PeersNode, to: string) => {
          const n = counts[to]!++;
          assertEquals(from.peers.sendUser(to, [1, n]), undefined);
          from.peers.sendSystem(to, [13, n]);
        };
        for (let step = 0; step < 120; step++) {
          if (random.next() < 0.7) send(a, B);
          if (random.next() < 0.7) send(b, A);
          env.advance(Math.floor(random.next() * 10));
        }
        env.advance(5_000);
        for (const code of [1, 13]) {
          assertEquals(numbers(a, code), range(counts[A]!), `round ${round}`);
          assertEquals(numbers(b, code), range(counts[B]!), `round ${round}`);
        }
        assertEquals([a.events, b.events], [[`+${uidB}`], [`+${uidA}`]]);
        assertEquals([a.undelivered.length, b.undelivered.length], [0, 0]);
        assert(a.peers.counters.dials + b.peers.counters.dials <= 4);
      }
    });
  }

  test('FB-081: after a lost link both redial at once and agree again', async () => {
    const { env, node } = world({ delay: () => 20 });
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(200);
    for (let round = 0; round < 20; round++) {
      a.peers.disconnect(B, 4999, 'test');
      env.advance(100);
      a.peers.sendUser(B, [1, round]);
      b.peers.sendUser(A, [1, round]);
      env.advance(500);
    }
    assertEquals([numbers(a), numbers(b)], [range(20), range(20)]);
    assertEquals([a.peers.connected(B)?.uid, b.peers.connected(A)?.uid], ['b', 'a']);
    assertEquals(a.events.length, 41);
  });

  for (const [uidA, uidB] of [['a', 'b'], ['b', 'a']] as const) {
    test(`FB-092: ${uidA} lost a link that ${uidB} believes alive: the new one takes its place`, async () => {
      const { env, node, network } = world({ delay: () => 5 });
      const a = await node(1, uidA);
      const b = await node(2, uidB);
      a.peers.sendUser(B, [1, 0]);
      b.peers.sendUser(A, [1, 0]);
      env.advance(100);
      // The connection forgets everything, the close included: nobody is told.
      network.hang(A, B);
      a.peers.disconnect(B, 4999, 'test');
      env.advance(50);
      a.peers.sendUser(B, [1, 1]);
      env.advance(200);
      b.peers.sendUser(A, [1, 1]);
      env.advance(200);
      assertEquals([numbers(a), numbers(b)], [[0, 1], [0, 1]]);
      assertEquals(b.events.length, 3);
      assert(b.events[1]!.startsWith(`-${uidA} `));
      assertEquals(b.peers.connected(A)?.uid, uidA);
    });
  }
});

describe('peers: other transports', () => {
  test('frames that come before the dial is answered are not lost', async () => {
    // The network in memory tells the accepting side first, whose `use` then overtakes the answer.
    const env = new ManualEnvironment();
    const network = new MemoryNetwork({ environment: env });
    const got: Envelope[] = [];
    const [a, b] = (['z', 'a'] as const).map((uid, i) =>
      createPeers({
        environment: env,
        transport: network.transport({ address: addressOf(i + 1), uid, clusterName: 'test' }),
        codec: new Codec(),
        uid,
        events: {
          connected: () => {},
          disconnected: () => {},
          dialFailed: () => {},
          message: (_peer, envelope) => void got.push(envelope),
          listenerLost: () => {},
        },
      })
    ) as [LinkedPeers, LinkedPeers];
    await a.start();
    await b.start();
    a.sendUser(B, [1, 0]);
    env.advance(10);
    b.sendUser(A, [1, 1]);
    env.advance(10);
    assertEquals(got, [[1, 0], [1, 1]]);
    assertEquals([a.counters.dials, b.counters.dials], [1, 0]);
  });
});

describe('peers: incarnations', () => {
  test('a new process at the address: disconnected, then connected; old-process messages come back', async () => {
    const { env, node, network } = world({ delay: () => 5 });
    const a = await node(1, 'a');
    await node(2, 'b1');
    a.peers.sendUser(B, [1, 0]);
    env.advance(100);
    network.crash(B);
    env.advance(20);
    assertEquals(a.events.length, 2);
    a.peers.sendUser(B, [1, 'for the old one'], 'b1');
    a.peers.sendUser(B, [1, 'for anyone']);
    const b2 = await node(2, 'b2');
    env.advance(500);
    assertEquals(a.undelivered, [{ reason: 'restarted', envelope: [1, 'for the old one'] }]);
    assertEquals(b2.got, [[1, 'for anyone']]);
    assertEquals(a.peers.sendUser(B, [1, 'late'], 'b1')?.reason, 'closed');
    assertEquals(a.peers.sendUser(B, [1, 'now'], 'b2'), undefined);
    assertEquals(a.events.map((event) => event.slice(0, 3)), ['+b1', '-b1', '+b2']);
  });

  test('the new process dials in while the link to the old one still looks alive', async () => {
    const { env, node, network } = world({ delay: () => 5 });
    const a = await node(1, 'm');
    const b1 = await node(2, 'b1');
    a.peers.connect(B);
    env.advance(100);
    network.hang(A, B);
    network.crash(B);
    env.advance(20);
    assertEquals(a.events, ['+b1']);
    const b2 = await node(2, 'z2');
    b2.peers.sendUser(A, [1, 7]);
    env.advance(100);
    assertEquals(a.events.map((event) => event.slice(0, 3)), ['+b1', '-b1', '+z2']);
    assertEquals(numbers(a), [7]);
    assertEquals(b1.got, []);
  });
});

describe('peers: bad peers and bad handlers', () => {
  test('R115: a handler that throws is logged and counted; the link and the other messages live', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    b.onMessage = (_peer, envelope) => {
      if (envelope[1] === 1) throw new Error('boom');
    };
    for (const n of range(3)) a.peers.sendUser(B, [1, n]);
    env.advance(10);
    assertEquals(numbers(b), range(3));
    assertEquals([b.peers.counters.handlerErrors, env.logsAt('error').length], [1, 1]);
    assertEquals(a.events, ['+b']);
  });

  test('S7: a malformed frame closes the link with a code, is counted, and warned of once a minute', async () => {
    const { env, node, network } = world();
    const b = await node(2, 'b');
    const closes: number[] = [];
    const raw = network.transport(A, 'raw');
    await raw.start({
      accepted() {},
      frame() {},
      closed: (_link, close) => closes.push(close.code),
      listenerLost() {},
    });
    for (let round = 0; round < 5; round++) {
      raw.dial(B, (link) => 'peer' in link && link.send(new Uint8Array([1, 2, 3, 4, 5])));
      env.advance(10);
    }
    assertEquals(closes, [4103, 4103, 4103, 4103, 4103]);
    assertEquals([b.peers.counters.malformed, env.logsAt('warn').length], [5, 1]);
    env.advance(60_000);
    raw.dial(B, (link) => 'peer' in link && link.send(new Uint8Array(0)));
    env.advance(10);
    assertEquals(env.logsAt('warn').length, 2);
  });

  test('messages before the agreement, and links never agreed on, are closed', async () => {
    const { env, node, network } = world();
    // 'z' leaves the choice to its peers.
    const b = await node(2, 'z');
    const closes: number[] = [];
    const raw = network.transport(A, 'raw');
    await raw.start({
      accepted() {},
      frame() {},
      closed: (_link, close) => closes.push(close.code),
      listenerLost() {},
    });
    raw.dial(B, (link) => 'peer' in link && link.send(new Uint8Array([0x53, 1, 1, 0, 0x81, 0x01])));
    env.advance(10);
    assertEquals([closes, b.got], [[4104], []]);
    raw.dial(B, () => {});
    env.advance(limits.handshakeMs + 100);
    assertEquals([closes, b.events], [[4104, 4104], []]);
  });

  test('FB-099: unknown codes and further fields get through; numbers of lanes and kinds are ours', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    const envelope: Envelope = [9_999, 'from a newer version', { more: true }];
    a.peers.sendSystem(B, envelope);
    env.advance(10);
    assertEquals(b.got, [envelope]);
  });
});

describe('peers: ending', () => {
  test('disconnect sends what is queued, then closes', async () => {
    const { env, node } = world({ delay: () => 5 });
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(100);
    for (const n of range(10)) a.peers.sendUser(B, [1, n]);
    a.peers.disconnect(B, 4200, 'leaving');
    env.advance(100);
    assertEquals(numbers(b), range(10));
    assertEquals(b.events[1], '-a clean: leaving');
    assertEquals(a.peers.connected(B), undefined);
  });

  test('disconnect from a stuck peer ends in time, and what was not sent comes back', async () => {
    const { env, node, network } = world();
    const a = await node(1, 'a');
    await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    network.cut(A, B);
    for (const n of range(100)) a.peers.sendUser(B, [1, n, 'x'.repeat(60_000)]);
    env.advance(10);
    a.peers.disconnect(B, 4200, 'leaving');
    env.advance(limits.disconnectFlushMs + 10);
    assertEquals(a.peers.connected(B), undefined);
    assert(a.undelivered.length > 50 && a.undelivered.every(({ reason }) => reason === 'closed'));
    assertEquals(a.peers.counters.out.user.messages + a.undelivered.length, 100);
  });

  test('stop sends what is queued, gives back the rest, and refuses what comes after; nothing is left running', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    a.peers.connect(B);
    env.advance(10);
    for (const n of range(10)) a.peers.sendUser(B, [1, n]);
    a.peers.sendUser(addressOf(3), [1, 'nowhere']);
    const stopped = a.peers.stop();
    env.advance(10);
    await stopped;
    assertEquals(numbers(b), range(10));
    assertEquals(a.undelivered, [{ reason: 'closed', envelope: [1, 'nowhere'] }]);
    assertEquals(a.peers.sendUser(B, [1])?.reason, 'closed');
    await b.peers.stop();
    env.advance(10);
    assertEquals(env.timerCount, 0);
  });

  test('FB-133: 300 reconnects leave no timers behind', async () => {
    const { env, node } = world();
    const a = await node(1, 'a');
    const b = await node(2, 'b');
    for (let round = 0; round < 300; round++) {
      a.peers.sendUser(B, [1, round]);
      env.advance(5);
      (round % 2 === 0 ? a : b).peers.disconnect(round % 2 === 0 ? B : A, 4200, 'test');
      env.advance(5);
    }
    assertEquals(numbers(b), range(300));
    assertEquals(env.timerCount, 0);
  });
});
