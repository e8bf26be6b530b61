import { describe, test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import { RemoteRef } from '../../src/cluster/remote_ref.ts';
import { limits } from '../../src/limits.ts';
import { codes } from '../../src/wire/codes.ts';
import { B, open, pair, probe, remote, start } from './remoting_node.ts';

describe('remoting: messages', () => {
  test('tell reaches the actor, in order, with a sender that can be answered', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    const ref = remote(a, b, there.ref);
    for (let n = 0; n < 20; n++) ref.tell({ n }, here.ref);
    await env.elapse(100);
    assertEquals(there.actor.got, Array.from({ length: 20 }, (_, n) => ({ n })));
    there.actor.senders[0]!.tell('back', there.ref);
    await env.elapse(100);
    assertEquals(here.actor.got, ['back']);
    assertEquals(here.actor.senders[0]!.path, ref.path);
    assert(here.actor.senders[0]!.equals(ref));
  });

  test('ask works over the wire', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const answer = remote(a, b, there.ref).ask({ do: 'reply', value: new Map([[1, 'x']]) });
    await env.elapse(100);
    assertEquals(await answer, new Map([[1, 'x']]));
    assertEquals(a.system.asks.inFlight, 0);
  });

  test('R121: refs anywhere in a message are refs on arrival, and home again they are the local actor', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    remote(a, b, there.ref).tell({ list: [here.ref], map: new Map([[here.ref, new Set([there.ref])]]) });
    await env.elapse(100);
    const body = there.actor.got[0] as { list: ActorRef<any>[]; map: Map<ActorRef<any>, Set<unknown>> };
    assertInstanceOf(body.list[0], RemoteRef);
    assertStrictEquals([...body.map.keys()][0], body.list[0]);
    body.list[0]!.tell({ mine: body.list[0], yours: remote(a, b, there.ref) });
    await env.elapse(100);
    const back = here.actor.got[0] as { mine: ActorRef<any>; yours: ActorRef<any> };
    assertEquals(back.mine.path, '/user/here');
    assert(back.mine.equals(here.ref));
    assertInstanceOf(back.yours, RemoteRef);
    // `yours` was made as a ref of node a; on its way through b it became b's own actor, and a's remote one again.
    assertEquals(back.yours.path, remote(a, b, there.ref).path);
  });

  test('stop does what it does to a local actor, in the order of sending', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const ref = remote(a, b, there.ref);
    ref.tell(1);
    await env.elapse(100);
    ref.tell(2);
    ref.stop();
    ref.tell(3);
    await env.elapse(100);
    assertEquals(there.actor.got, [1]);
    assertEquals(b.system.resolve('/user/there'), undefined);
    assertEquals(b.system.deadLetters.recent.map((letter) => letter.message).sort(), [2, 3]);
  });

  test('R121: what cannot be sent is a dead letter with payload, sender and reason, an error log, and no throw', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    const message = { fn: () => 1 };
    remote(a, b, there.ref).tell(message, here.ref);
    const letter = a.system.deadLetters.recent[0]!;
    assertStrictEquals(letter.message, message);
    assertStrictEquals(letter.sender, here.ref);
    assertEquals(letter.reason, 'unserializable');
    assert(letter.detail!.includes("'fn'") || letter.detail!.includes('fn'), letter.detail);
    assertEquals(env.logsAt('error').length, 1);
    remote(a, b, there.ref).tell(new Uint8Array(limits.messageBytes));
    assertEquals(a.system.deadLetters.recent[1]!.reason, 'too-large');
    await assertRejects(() => remote(a, b, there.ref).ask(message), Error, 'unserializable');
  });

  test('a sender that goes on telling what cannot be sent fills no log: every message is a dead letter all the same', async () => {
    const { env, a, b } = await pair();
    const ref = remote(a, b, probe(b, 'there').ref);
    let letters = 0;
    a.system.deadLetters.subscribe(() => letters++);
    for (let n = 0; n < 5_000; n++) ref.tell({ fn: () => n });
    assertEquals([letters, env.logsAt('error').length], [5_000, 20]);
    await env.elapse(60_000);
    ref.tell({ fn: () => 1 });
    assertEquals(env.logged.findLast(({ level }) => level === 'error')?.fields?.['leftOut'], 4_980);
  });

  test('S3: a message to a node that cannot be reached is a dead letter, and a question fails at once', async () => {
    const { env, net, a, b } = await pair();
    const there = probe(b, 'there');
    const here = probe(a, 'here');
    const ref = remote(a, b, there.ref);
    net.crash(B);
    ref.tell({ n: 1 }, here.ref);
    const question = assertRejects(() => ref.ask('anyone?', 60_000), Error, 'unreachable');
    await env.elapse(1_000);
    await question;
    const letter = a.system.deadLetters.recent[0]!;
    assertEquals([letter.message, letter.reason], [{ n: 1 }, 'unreachable']);
    assertStrictEquals(letter.sender, here.ref);
  });

  test('a ref means one process and one actor: later ones of the same name are others', async () => {
    const { env, net, a, b } = await pair();
    const there = probe(b, 'there');
    const ref = remote(a, b, there.ref);
    ref.tell(1);
    await env.elapse(100);
    // A later actor of the same process.
    there.ref.stop();
    await env.elapse(100);
    const second = probe(b, 'there');
    ref.tell(2);
    await env.elapse(100);
    assertEquals(second.actor.got, []);
    assertEquals(b.system.deadLetters.recent.at(-1)!.message, 2);
    // A later process at the same address.
    net.crash(B);
    await env.elapse(100);
    const b2 = start(env, net, B, 'ub2');
    await open(b2);
    const third = probe(b2, 'there');
    remote(a, b, second.ref).tell(3);
    remote(a, b2, third.ref).tell(4);
    await env.elapse(2_000);
    remote(a, b, second.ref).tell(5);
    await env.elapse(100);
    assertEquals(third.actor.got, [4]);
    assertEquals(a.system.deadLetters.recent.map((letter) => letter.message), [3, 5]);
  });
});

describe('remoting: what may be reached', () => {
  test('FB-100: /system cannot be reached, however it is spelled', async () => {
    const { env, a, b } = await pair();
    let got = 0;
    b.system.spawnSystem(['inner'], () =>
      new (class extends Actor<unknown> {
        override onReceive(): void {
          got++;
        }
      })());
    a.peers.connect(B);
    await env.elapse(100);
    const paths = [
      '/system/inner',
      '//system/inner',
      '/user/../system/inner',
      '/user//../system/inner',
      'system/inner',
      '/user',
      '/',
      '',
      '/system',
      '/user/',
      '/USER/../system/inner',
      '/user/%2e%2e/system/inner',
      '/temp/../system/inner',
      '/temp/',
      '\u0000/system/inner',
    ];
    for (const path of paths) {
      for (const incarnation of [0, 1]) {
        a.peers.sendUser(B, [codes.tell, path, null, 'x', incarnation]);
        a.peers.sendUser(B, [codes.stop, path, incarnation]);
        a.peers.sendSystem(B, [codes.watch, path, incarnation]);
      }
    }
    await env.elapse(100);
    assertEquals(got, 0);
    assert(b.system.resolve('/system/inner') !== undefined);
    assert(b.remoting.refused > 40, String(b.remoting.refused));
    assertEquals(env.logsAt('warn').length, 1);
    assertEquals(b.remoting.incoming.size, 0);
  });

  test('a forged ref or sender cannot make an actor here speak to /system', async () => {
    const { env, a, b } = await pair();
    let got = 0;
    const inner = b.system.spawnSystem(['inner'], () =>
      new (class extends Actor<unknown> {
        override onReceive(): void {
          got++;
        }
      })());
    const there = probe(b, 'there');
    const forged = a.remoting.refTo({ address: B, uid: 'ub', localPath: inner.path, incarnation: 0 });
    remote(a, b, there.ref).tell({ do: 'reply', value: 1 }, forged);
    remote(a, b, there.ref).tell({ do: 'say', to: forged, value: 1 });
    await env.elapse(100);
    assertEquals(there.actor.got.length, 2);
    assertEquals(got, 0);
    assertEquals(b.system.deadLetters.recent.map((letter) => letter.recipient), ['/system/inner', '/system/inner']);
  });

  test('FB-101: envelopes of wrong shape are counted and change nothing', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    a.peers.connect(B);
    await env.elapse(100);
    const odd = [undefined, null, -1, 1.5, NaN, 'x', {}, [], '/user/there', 2n, new Map()];
    for (const code of [codes.tell, codes.watch, codes.unwatch, codes.terminated, codes.stop]) {
      for (const first of odd) {
        for (const second of odd) {
          if (code === codes.tell && first === '/user/there') continue;
          a.peers.sendUser(B, [code, first, second, second, second]);
        }
      }
    }
    await env.elapse(100);
    assertEquals(there.actor.got, []);
    assertEquals(b.peers.counters.handlerErrors, 0);
    assert(b.remoting.refused > 300);
    assert(b.system.resolve('/user/there') !== undefined);
  });

  test('the path of a remote ref can be passed as text', async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const text = b.remoting.qualify(there.ref);
    assertEquals(text, `singlet://ub@${B}/user/there#${there.ref.incarnation}`);
    a.remoting.resolve(text)!.tell('by text');
    await env.elapse(100);
    assertEquals(there.actor.got, ['by text']);
    assertStrictEquals(b.remoting.resolve(text), there.ref);
    assertEquals(b.remoting.resolve(`singlet://ub@${B}/user/there#1`), undefined);
    for (const bad of ['', '#1', 'singlet://', 'singlet://ub@', '/user//there']) {
      assertEquals(a.remoting.resolve(bad), undefined);
    }
  });

  test("virtual refs travel by name and become the receiver's own", async () => {
    const { env, a, b } = await pair();
    const there = probe(b, 'there');
    const own = new Map([[a, probe(a, 'proxy').ref], [b, probe(b, 'proxy').ref]]);
    for (const node of [a, b]) {
      node.remoting.addVirtualRefs({
        scheme: 'singleton',
        nameOf: (ref) => (ref === own.get(node) ? 'jobs' : undefined),
        refFor: (name) => (name === 'jobs' ? own.get(node) : undefined),
      });
    }
    remote(a, b, there.ref).tell({ jobs: own.get(a) }, own.get(a));
    await env.elapse(100);
    assertStrictEquals((there.actor.got[0] as { jobs: unknown }).jobs, own.get(b));
    assertStrictEquals(there.actor.senders[0], own.get(b));
    assertStrictEquals(b.remoting.resolve(a.remoting.qualify(own.get(a)!)), own.get(b));
  });
});
