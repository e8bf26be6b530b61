import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Mailbox, SelfMessage } from '../../src/actor/mailbox.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';

function takeAll(mailbox: Mailbox): unknown[] {
  const taken: unknown[] = [];
  while (mailbox.length > 0) {
    taken.push(mailbox.message());
    mailbox.drop();
  }
  return taken;
}

describe('mailbox', () => {
  test('keeps message, sender and receipt together', () => {
    const mailbox = new Mailbox();
    mailbox.push('m', undefined, 7);
    assertEquals([mailbox.message(), mailbox.sender(), mailbox.receipt()], ['m', undefined, 7]);
    mailbox.drop();
    assertEquals([mailbox.length, mailbox.message(), mailbox.receipt()], [0, undefined, undefined]);
  });

  test('is first in, first out through growth and wrap-around', () => {
    const mailbox = new Mailbox();
    const model: number[] = [];
    const random = seededRandom(7);
    for (let i = 0; i < 20_000; i += 1) {
      const choice = random.next();
      if (choice < 0.5) {
        mailbox.push(i, undefined, i);
        model.push(i);
      } else if (choice < 0.55) {
        mailbox.unshift(i, undefined, i);
        model.unshift(i);
      } else if (model.length > 0) {
        assertEquals(mailbox.message(), model.shift());
        assertEquals(mailbox.receipt(), mailbox.message());
        mailbox.drop();
      }
      assertEquals(mailbox.length, model.length);
    }
    assertEquals(takeAll(mailbox), model);
  });

  test('prepend puts another queue in front, in its order, and empties it', () => {
    const stash = new Mailbox();
    const mailbox = new Mailbox();
    for (const message of [1, 2, 3]) stash.push(message, undefined, undefined);
    for (const message of [4, 5]) mailbox.push(message, undefined, undefined);
    mailbox.prepend(stash);
    assertEquals(stash.length, 0);
    assertEquals(takeAll(mailbox), [1, 2, 3, 4, 5]);
    stash.push(6, undefined, undefined);
    assertEquals(takeAll(stash), [6]);
  });

  test('gives the memory of a long queue back when it is empty, and works on', () => {
    const mailbox = new Mailbox();
    for (let i = 0; i < 10_000; i += 1) mailbox.push(i, undefined, undefined);
    const slots = (): number => (mailbox as unknown as { slots: unknown[] }).slots.length;
    assert(slots() >= 30_000);
    assertEquals(takeAll(mailbox).length, 10_000);
    assertEquals(slots(), 0);
    mailbox.push('again', undefined, undefined);
    assertEquals(takeAll(mailbox), ['again']);
  });

  test('does not keep what it gave out', () => {
    const mailbox = new Mailbox();
    mailbox.push({ big: true }, undefined, {});
    mailbox.drop();
    assert((mailbox as unknown as { slots: unknown[] }).slots.every((slot) => slot === undefined));
  });

  test('a message of the runtime is told apart from any receipt', () => {
    class Own extends SelfMessage {
      override live(): boolean {
        return true;
      }
      override handled(): void {}
    }
    const mailbox = new Mailbox();
    mailbox.push('tick', undefined, new Own());
    assert(mailbox.receipt() instanceof SelfMessage);
  });
});
