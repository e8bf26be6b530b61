import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { codes } from '../../src/wire/codes.ts';
import { A, B, open, pair, probe, remote, start } from './remoting_node.ts';

describe('remoting: death watch', () => {
  async function watching() {
    const nodes = await pair();
    const there = probe(nodes.b, 'there');
    const here = probe(nodes.a, 'here');
    const ref = remote(nodes.a, nodes.b, there.ref);
    here.ref.tell({ do: 'watch', ref });
    await nodes.env.elapse(100);
    return { ...nodes, there, here, ref };
  }

  test('FB-134: one notice when the actor stops, after everything it had sent; nothing is left on either side', async () => {
    const { env, a, b, there, here, ref } = await watching();
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size], [1, 1]);
    for (let n = 0; n < 50; n++) there.ref.tell({ do: 'say', to: remote(b, a, here.ref), value: n });
    there.ref.tell({ do: 'stop' });
    let atNotice = -1;
    here.actor.onTerminated = (notice) => {
      atNotice = here.actor.got.length;
      here.actor.ended.push(notice);
    };
    await env.elapse(1_000);
    assertEquals(here.actor.ended.map((notice) => notice.cause), ['self']);
    assert(here.actor.ended[0]!.ref.equals(ref));
    assertEquals(atNotice, 51);
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size], [0, 0]);
  });

  test('FB-134: one notice when it had ended before the watch, or never was', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    there.ref.stop();
    await env.elapse(10);
    here.ref.tell({ do: 'watch', ref: remote(a, b, there.ref) });
    here.ref.tell({
      do: 'watch',
      ref: a.remoting.refTo({ address: B, uid: 'ub', localPath: '/user/never', incarnation: 0 }),
    });
    await env.elapse(100);
    assertEquals(here.actor.ended.map((notice) => notice.cause), ['no-such-actor', 'no-such-actor']);
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size], [0, 0]);
  });

  test('FB-134: one notice when its node is gone, also for later watches, and none twice', async () => {
    const { env, net, a, b, here, ref } = await watching();
    net.crash(B);
    await env.elapse(1_000);
    assertEquals(here.actor.ended.length, 0);
    a.remoting.nodeGone(B, 'ub');
    a.remoting.nodeGone(B, 'ub');
    await env.elapse(10);
    assertEquals(here.actor.ended.map((notice) => notice.cause), ['unreachable']);
    here.ref.tell({ do: 'watch', ref });
    await env.elapse(10);
    assertEquals(here.actor.ended.length, 2);
    assertEquals(a.remoting.outgoing.size, 0);
    b.remoting.nodeGone(A, 'ua');
    assertEquals(b.remoting.incoming.size, 0);
  });

  test('a watch outlives lost links; an actor that ended meanwhile is reported by the next one', async () => {
    const { env, a, b, there, here } = await watching();
    a.peers.disconnect(B, 4999, 'test');
    await env.elapse(50);
    assertEquals(b.remoting.incoming.size, 0);
    a.peers.connect(B);
    await env.elapse(50);
    assertEquals(b.remoting.incoming.size, 1);
    a.peers.disconnect(B, 4999, 'test');
    await env.elapse(50);
    there.ref.stop();
    await env.elapse(50);
    assertEquals(here.actor.ended.length, 0);
    a.peers.connect(B);
    await env.elapse(50);
    assertEquals(here.actor.ended.length, 1);
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size], [0, 0]);
  });

  test('the watch of a node that could not be reached is made up for when it can', async () => {
    const { env, net, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    const listener = net.nodes.get(B)!;
    net.nodes.delete(B);
    here.ref.tell({ do: 'watch', ref: remote(a, b, there.ref) });
    await env.elapse(3_000);
    net.nodes.set(B, listener);
    a.peers.connect(B);
    await env.elapse(100);
    there.ref.stop();
    await env.elapse(100);
    assertEquals(here.actor.ended.length, 1);
  });

  test('unwatch and the end of the watcher leave nothing behind; two watchers are told once each', async () => {
    const { env, a, b, there, here, ref } = await watching();
    const other = probe(a, 'other');
    other.ref.tell({ do: 'watch', ref });
    await env.elapse(100);
    here.ref.tell({ do: 'unwatch', ref });
    await env.elapse(100);
    assertEquals(b.remoting.incoming.size, 1);
    other.ref.stop();
    await env.elapse(100);
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size], [0, 0]);
    const third = probe(a, 'third');
    for (const watcher of [here, third]) watcher.ref.tell({ do: 'watch', ref });
    await env.elapse(100);
    there.ref.stop();
    await env.elapse(100);
    assertEquals([here.actor.ended.length, third.actor.ended.length], [1, 1]);
  });

  test('a notice counts only from the node it is about', async () => {
    const { env, net, a, b, there, here } = await watching();
    const c = start(env, net, '127.0.0.1:3', 'uc');
    await open(c);
    c.peers.sendUser(A, [codes.terminated, there.ref.path, there.ref.incarnation, 'stop']);
    await env.elapse(100);
    assertEquals(here.actor.ended.length, 0);
    b.peers.sendUser(A, [codes.terminated, there.ref.path, there.ref.incarnation, 'no such cause']);
    await env.elapse(100);
    assertEquals(here.actor.ended.map((notice) => notice.cause), ['stop']);
    assertEquals(a.remoting.outgoing.size, 0);
  });

  test('FB-133: 2000 rounds of ask, watch, end leave nothing', async () => {
    const { env, a, b } = await pair();
    const here = probe(a, 'here');
    for (let round = 0; round < 2_000; round++) {
      const there = probe(b, `r${round}`);
      const ref = remote(a, b, there.ref);
      here.ref.tell({ do: 'watch', ref });
      const answer = ref.ask({ do: 'reply', value: round });
      await env.elapse(20);
      assertEquals(await answer, round);
      there.ref.stop();
      await env.elapse(20);
    }
    assertEquals(here.actor.ended.length, 2_000);
    assertEquals([a.remoting.outgoing.size, b.remoting.incoming.size, a.system.asks.inFlight], [0, 0, 0]);
  });
});
