import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Inbox, noInbox } from '../../src/actor/inbox.ts';
import { SelfMessage } from '../../src/actor/mailbox.ts';
import type { LocalActorRef } from '../../src/actor/local_ref.ts';
import { fastPaths } from '../../src/fast_paths.ts';
import { acting, deferred, fixture, spawnManaged } from './system_fixture.ts';

const nobody = { resume: (): void => {} };

class Own extends SelfMessage {
  override live(): boolean {
    return true;
  }
  override handled(): void {}
}

const inboxOf = (ref: unknown): Inbox => (ref as { cell: { inbox: Inbox } }).cell.inbox;

describe('inbox', () => {
  test('what is taken in hand is held until it is let go', () => {
    const inbox = new Inbox();
    inbox.push('a', undefined, 1);
    inbox.push('b', undefined, 2);
    inbox.take();
    assertEquals([inbox.handling, inbox.heldMessage, inbox.heldReceipt, inbox.length], [true, 'a', 1, 1]);
    inbox.stashed = true;
    inbox.letGo();
    assertEquals([inbox.handling, inbox.heldMessage, inbox.heldReceipt, inbox.stashed], [
      false,
      undefined,
      undefined,
      false,
    ]);
  });

  test("the oldest message from outside is given up, never what is the actor's own", () => {
    const inbox = new Inbox();
    const given: unknown[] = [];
    inbox.push('tick', undefined, new Own());
    assertEquals(inbox.dropOldest((message) => given.push(message)), false);
    inbox.push('old', undefined, undefined);
    inbox.push('new', undefined, undefined);
    assertEquals(inbox.dropOldest((message) => given.push(message)), true);
    assertEquals([given, inbox.length], [['old'], 2]);
  });

  test('it resumes its owner with what the handler came to, and uses its callbacks again', async () => {
    const inbox = Inbox.open({ resume: (error, failed) => seen.push(failed ? error : 'done') }, 10);
    const seen: unknown[] = [];
    const works = deferred();
    const fails = deferred();
    inbox.await(works.promise);
    works.resolve();
    await works.promise;
    inbox.await(fails.promise);
    fails.reject('broken');
    await fails.promise.catch(() => {});
    inbox.await({ then: (done) => Promise.resolve(done?.(undefined as never)) as never });
    await new Promise((resolve) => setTimeout(resolve, 1));
    assertEquals(seen, ['done', 'broken', 'done']);
  });

  test('the pool is bounded in number, and in the messages that it has room for', () => {
    const open = (count: number): Inbox[] => Array.from({ length: count }, () => Inbox.open(nobody, 10));
    const drained = open(5_000);
    drained.forEach((inbox) => assert(Inbox.close(inbox)));
    const known = new Set(drained);
    assertEquals(open(5_000).filter((inbox) => known.has(inbox)).length, 2_048);
    const large = open(200).map((inbox) => {
      for (let n = 0; n < 1_024; n += 1) inbox.push(n, undefined, undefined);
      while (inbox.length > 0) inbox.drop();
      return inbox;
    });
    large.forEach((inbox) => Inbox.close(inbox));
    const kept = new Set(large);
    const again = open(200).filter((inbox) => kept.has(inbox)).length;
    assert(again > 32 && again <= 64, `${again} inboxes of 1024 messages were kept`);
  });
});

describe('actors and their inboxes', () => {
  for (const shared of [true, false]) {
    test(`an idle actor ${shared ? 'holds none' : 'keeps its own without the fast path'}`, async () => {
      fastPaths.sharedInboxes = shared;
      try {
        const { env, system } = fixture();
        const end = deferred();
        const seen: string[] = [];
        const source = acting<string>(async (message) => {
          await end.promise;
          seen.push(message);
        });
        const ref = system.spawn(source, 'a');
        ref.tell('x');
        ref.tell('y');
        await env.settle();
        assert(inboxOf(ref) !== noInbox && inboxOf(ref).handling);
        end.resolve();
        await env.settle();
        assertEquals(seen, ['x', 'y']);
        assertEquals(inboxOf(ref) === noInbox, shared);
      } finally {
        fastPaths.sharedInboxes = true;
      }
    });
  }

  test('a handler that was abandoned comes back to nobody who uses an inbox since', async () => {
    const { env, system } = fixture();
    const ends = [deferred(), deferred()];
    const seen: string[] = [];
    const start = (k: number): LocalActorRef<string> =>
      spawnManaged(
        system,
        `a${k}`,
        acting<string>(async (message) => {
          await ends[k]?.promise;
          seen.push(message);
        }),
        {},
      );
    const first = start(0);
    first.tell('abandoned');
    await env.settle();
    first.kill();
    const second = start(1);
    second.tell('one');
    second.tell('two');
    await env.settle();
    ends[0]?.resolve();
    await env.settle();
    assertEquals([seen, inboxOf(second).handling, inboxOf(second).length], [['abandoned'], true, 1]);
    ends[1]?.resolve();
    await env.settle();
    assertEquals(seen, ['abandoned', 'one', 'two']);
  });
});
