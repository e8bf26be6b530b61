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

interface Block {
  readonly slots: readonly unknown[];
  readonly next: Block | undefined;
}

/** The chain, and what is kept for later. */
function blocks(mailbox: Mailbox): Block[] {
  const inside = mailbox as unknown as { first: Block; spare: Block | undefined };
  const all: Block[] = inside.spare === undefined ? [] : [inside.spare];
  for (let block: Block | undefined = inside.first; block !== undefined; block = block.next) all.push(block);
  return all;
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
      if (choice < 0.6) {
        mailbox.push(i, undefined, i);
        model.push(i);
      } else if (choice < 0.65) {
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

  test('a long queue gives its memory back as it drains, but for one block, and works on', () => {
    const mailbox = new Mailbox();
    for (let i = 0; i < 10_000; i += 1) mailbox.push(i, undefined, undefined);
    assert(blocks(mailbox).length >= 9);
    for (let i = 0; i < 9_500; i += 1) mailbox.drop();
    assert(blocks(mailbox).length <= 2);
    assertEquals(takeAll(mailbox).length, 500);
    assertEquals(blocks(mailbox).length, 1);
    mailbox.push('again', undefined, undefined);
    assertEquals(takeAll(mailbox), ['again']);
  });

  test('keeps its order where blocks are joined at either end', () => {
    const mailbox = new Mailbox();
    const model: number[] = [];
    for (let i = 0; i < 3_000; i += 1) {
      mailbox.push(i, undefined, undefined);
      model.push(i);
    }
    for (let i = 0; i < 3_000; i += 1) {
      mailbox.unshift(-i, undefined, undefined);
      model.unshift(-i);
    }
    assertEquals(mailbox.length, model.length);
    assertEquals(takeAll(mailbox), model);
  });

  test('does not keep what it gave out', () => {
    const mailbox = new Mailbox();
    for (let i = 0; i < 5_000; i += 1) mailbox.push({ big: i }, undefined, {});
    takeAll(mailbox);
    assert(blocks(mailbox).every(({ slots }) => slots.every((slot) => slot === undefined)));
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
