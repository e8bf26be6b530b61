import { assertEquals, assertRejects, assertThrows } from '@std/assert';
import { describe, test } from 'node:test';
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import { TestKit } from '../../src/testkit/test_kit.ts';
import { ProbeError } from '../../src/testkit/test_probe.ts';

interface Question {
  readonly replyTo: ActorRef<string>;
  readonly afterMs: number;
}

class Answerer extends Actor<Question> {
  override onReceive({ replyTo, afterMs }: Question): void {
    if (afterMs === 0) replyTo.tell('now', this.context.self);
    else this.context.timers.startSingle('later', { replyTo, afterMs: 0 }, afterMs);
  }
}

describe('TestProbe', () => {
  test('receives, compares by value, and lets virtual time pass until the message is there', async () => {
    const kit = new TestKit();
    const probe = kit.probe<string>();
    const actor = kit.system.spawn(Answerer, 'answerer');
    actor.tell({ replyTo: probe.ref, afterMs: 0 });
    assertEquals(await probe.expectMessage('now'), 'now');
    assertEquals(probe.lastSender.equals(actor), true);
    actor.tell({ replyTo: probe.ref, afterMs: 700 });
    await probe.expectNoMessage(600);
    assertEquals(await probe.receiveMessage(), 'now');
    await kit.shutdown();
  });

  test('fails with what it expected and what it got', async () => {
    const kit = new TestKit();
    const probe = kit.probe<unknown>('probe');
    probe.ref.tell({ a: [1, 2] });
    await assertRejects(
      () => probe.expectMessage({ a: [1, 3] }),
      ProbeError,
      'probe probe expected {"a":[1,3]}, got {"a":[1,2]}',
    );
    await assertRejects(() => probe.receiveMessage(50), ProbeError, 'got nothing within 50 ms');
    probe.ref.tell(1);
    await assertRejects(() => probe.expectNoMessage(), ProbeError, 'expected nothing, got 1');
    await assertRejects(
      () => probe.expectMessageWhich('a text', (message) => typeof message === 'string'),
      ProbeError,
      'a text',
    );
    assertThrows(() => kit.probe('other').lastSender, ProbeError, 'has received nothing');
    await kit.shutdown();
  });

  test('fishes for a message and says what it skipped', async () => {
    const kit = new TestKit();
    const probe = kit.probe<number>();
    for (const n of [1, 2, 3]) probe.ref.tell(n);
    assertEquals(await probe.fishForMessage('two', (n) => n === 2), 2);
    assertEquals(probe.waiting, [3]);
    await assertRejects(
      () => probe.fishForMessage('nine', (n) => n === 9, 20),
      ProbeError,
      'saw no nine within 20 ms, but 3',
    );
    await kit.shutdown();
  });

  test('replies to the sender, and sees watched actors end', async () => {
    const kit = new TestKit();
    const probe = kit.probe<string>();
    const answer = probe.ref.ask<string>('ping');
    await probe.expectMessage('ping');
    probe.reply('pong');
    await kit.settle();
    assertEquals(await answer, 'pong');
    const actor = kit.system.spawn(Answerer, 'short-lived');
    await probe.watch(actor);
    await assertRejects(() => probe.expectTerminated(actor, 50), ProbeError, 'has not ended');
    actor.stop();
    await probe.expectTerminated(actor);
    await kit.shutdown();
  });
});
