/** What actors hold of what other nodes told them: counted, bounded, and given back in every way in which a message may end. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { LocalActorRef } from '../../src/actor/local_ref.ts';
import { RemoteMail } from '../../src/cluster/remote_mail.ts';
import { limits } from '../../src/limits.ts';
import { codes } from '../../src/wire/codes.ts';
import { B, type Node, pair, probe, remote } from './remoting_node.ts';

/** Handles nothing to its end until it is told to go on. */
class Slow extends Actor<any> {
  readonly got: unknown[] = [];
  go = () => {};
  override async onReceive(message: any): Promise<void> {
    this.got.push(message);
    if (message === 'stash') return void this.context.stash();
    if (message === 'throw') throw new Error('as it was told');
    await new Promise<void>((resolve) => this.go = resolve);
  }
}

function slow(node: Node, options = {}) {
  let actor: Slow | undefined;
  const ref = node.system.spawn(() => actor = new Slow(), 'slow', options);
  return { ref, actor: () => actor! };
}

const held = ({ remoting: { mail } }: Node) => [mail.messages, mail.bytes > 0];

describe('the account', () => {
  test('a peer has its part, all together have theirs, and what is released is free again', () => {
    const mail = new RemoteMail();
    const size = limits.remoteMailPeerBytes / 4;
    const shares = Array.from({ length: 4 }, () => mail.share('a', size)!);
    assertEquals([mail.share('a', 1), mail.bytes], [undefined, limits.remoteMailPeerBytes]);
    for (let n = 0; n < 4; n++) assert(mail.share('b', size) !== undefined);
    assertEquals([mail.bytes, mail.share('c', 1)], [limits.remoteMailBytes, undefined]);
    shares[0]!.release();
    assert(mail.share('c', 1) !== undefined);
    for (const share of shares.slice(1)) share.release();
    assert(mail.share('a', size) !== undefined);
  });

  test('small messages are bounded by their number', () => {
    const mail = new RemoteMail();
    for (let n = 0; n < limits.remoteMailPeerMessages; n++) mail.share('a', 1);
    assertEquals(mail.share('a', 1), undefined);
    for (let n = 0; n < limits.remoteMailPeerMessages; n++) mail.share('b', 1);
    assertEquals([mail.share('c', 1), mail.messages], [undefined, limits.remoteMailMessages]);
  });
});

describe('a slow actor', () => {
  test('what it is told from another node beyond the bound are dead letters, counted and warned about; then it goes on', async () => {
    const bounds = { messages: 1_000, bytes: 200_000, peerMessages: 500, peerBytes: 100_000 };
    const { env, a, b } = await pair(new RemoteMail(bounds));
    const { ref, actor } = slow(b);
    const there = remote(a, b, ref);
    const text = 'x'.repeat(1_000);
    const total = 120;
    for (let n = 0; n < total; n++) {
      there.tell({ n, text });
      await env.elapse(10);
    }
    const lost = b.system.deadLetters.countOf('mailbox-overflow');
    assert(lost > 20 && lost < 30, String(lost));
    assertEquals(b.remoting.refused, lost);
    assertEquals(
      env.logsAt('warn').filter((line) => line.includes('hold as much from other nodes as they may')).length,
      1,
    );
    assert(b.remoting.mail.bytes < bounds.peerBytes + 2 * text.length);
    const kept = actor().got.length + b.remoting.mail.messages - 1;
    assertEquals(kept, total - lost);
    ref.tell({ local: true });
    for (let n = 0; n < kept + 1; n++) {
      actor().go();
      await env.elapse(1);
    }
    assertEquals(held(b), [0, false]);
    assertEquals([actor().got.length, actor().got.at(-1)], [kept + 1, { local: true }]);
    there.tell('again');
    await env.elapse(10);
    assertEquals(actor().got.at(-1), 'again');
  });

  const ends: Record<string, (b: Node, ref: LocalActorRef<any>) => void> = {
    'is stopped': (_b, ref) => ref.stop(),
    'is killed in the middle of a handler': (_b, ref) => ref.kill(),
  };
  for (const [what, end] of Object.entries(ends)) {
    test(`that ${what} gives back the room of all it held`, async () => {
      const { env, a, b } = await pair();
      const { ref, actor } = slow(b);
      const there = remote(a, b, ref);
      for (const message of ['stash', 'throw', 'wait', 1, 2, 3]) there.tell(message);
      await env.elapse(100);
      assertEquals(held(b)[1], true);
      end(b, ref as LocalActorRef<any>);
      await env.elapse(100);
      actor().go();
      await env.elapse(100);
      assert((ref as LocalActorRef<any>).isTerminated);
      assertEquals(held(b), [0, false]);
      there.tell('too late');
      await env.elapse(100);
      assertEquals(held(b), [0, false]);
    });
  }

  test('with a bounded mailbox, or a full stash, gives back the room of what it gives up', async () => {
    const { env, a, b } = await pair();
    const { ref, actor } = slow(b, { mailbox: { capacity: 2, overflow: 'drop-oldest' }, stashCapacity: 1 });
    const there = remote(a, b, ref);
    there.tell('first');
    await env.elapse(100);
    for (let n = 0; n < 10; n++) there.tell(n);
    await env.elapse(100);
    assertEquals([held(b), b.system.deadLetters.countOf('mailbox-overflow')], [[3, true], 8]);
    for (let n = 0; n < 3; n++) {
      actor().go();
      await env.elapse(10);
    }
    assertEquals(held(b), [0, false]);
    for (let n = 0; n < 3; n++) {
      there.tell('stash');
      await env.elapse(10);
    }
    assertEquals(held(b), [1, true]);
  });
});

test('a peer that floods an actor that never answers leaves room for the other peers and for what is local', async () => {
  const bounds = { messages: 1_000, bytes: 200_000, peerMessages: 500, peerBytes: 100_000 };
  const { env, a, b } = await pair(new RemoteMail(bounds));
  const { ref } = slow(b);
  const open = probe(b, 'open');
  for (let round = 0; round < 6; round++) {
    for (let n = 0; n < 100; n++) a.peers.sendUser(B, [codes.tell, ref.path, null, n, 0]);
    await env.elapse(10);
  }
  assertEquals(b.remoting.mail.messages, bounds.peerMessages);
  assert(b.remoting.mail.share('another peer', 100) !== undefined);
  open.ref.tell('local');
  await env.elapse(10);
  assertEquals(open.actor.got, ['local']);
});
