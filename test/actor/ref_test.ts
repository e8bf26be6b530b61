import { describe, test } from 'node:test';
import { assertEquals, assertRejects, assertThrows } from '@std/assert';
import { ActorRef, FencedError } from '../../src/mod.ts';
import { admitSender, FencedRef, running } from '../../src/actor/ref.ts';

class Plain extends ActorRef<unknown> {
  readonly path: string;
  readonly incarnation: number;
  readonly got: unknown[] = [];

  constructor(path: string, incarnation: number) {
    super();
    this.path = path;
    this.incarnation = incarnation;
  }

  override tell(message: unknown): void {
    this.got.push(message);
  }

  override ask<R>(message: unknown): Promise<R> {
    return Promise.resolve(message as R);
  }

  override stop(): void {
    this.got.push('stop');
  }
}

describe('refs', () => {
  test('are equal by path and incarnation', () => {
    const ref = new Plain('/user/a', 1);
    assertEquals(ref.equals(new Plain('/user/a', 1)), true);
    assertEquals(ref.equals(new Plain('/user/a', 2)), false);
    assertEquals(ref.equals(new Plain('/user/b', 1)), false);
    assertEquals(String(ref), '/user/a#1');
    assertEquals(ref.underlying() === ref, true);
  });

  test('a fenced ref passes everything on until the fence falls', async () => {
    let fenced = false;
    const target = new Plain('/user/a', 7);
    const ref = new FencedRef(target, '/user/owner', () => fenced);
    ref.tell(1);
    assertEquals(await ref.ask(2), 2);
    ref.stop();
    assertEquals([target.got, ref.path, ref.incarnation, ref.underlying() === target], [
      [1, 'stop'],
      '/user/a',
      7,
      true,
    ]);
    fenced = true;
    assertThrows(() => ref.tell(3), FencedError, '/user/owner');
    assertThrows(() => ref.stop(), FencedError);
    await assertRejects(async () => await ref.ask(4), FencedError);
    assertEquals(target.got.length, 2);
  });

  test('a sender is admitted as the receiver should see it', () => {
    const target = new Plain('/user/a', 7);
    let fenced = false;
    const guarded = new FencedRef(target, '/user/owner', () => fenced);
    assertEquals(admitSender(undefined), undefined);
    assertEquals(admitSender(target) === target, true);
    assertEquals(admitSender(guarded) === target, true);
    fenced = true;
    assertThrows(() => admitSender(guarded), FencedError);
  });

  test('while a fenced actor runs, nothing is admitted', () => {
    running.fence = () => true;
    running.path = '/user/runner';
    try {
      assertThrows(() => admitSender(undefined), FencedError, '/user/runner');
    } finally {
      running.fence = undefined;
    }
    assertEquals(admitSender(undefined), undefined);
  });
});
