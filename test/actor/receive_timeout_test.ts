import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/mod.ts';
import { acting, deferred, fixture } from './system_fixture.ts';

function idling(timeoutMs: number, handler?: (message: string) => unknown) {
  const { env, system } = fixture();
  const seen: string[] = [];
  const ref = system.spawn(
    acting<string>((message, context) => {
      if (message === 'setup') return context.setReceiveTimeout(timeoutMs, 'idle');
      if (message === 'cancel') return context.cancelReceiveTimeout();
      seen.push(`${message} ${env.clock.now()}`);
      return handler?.(message);
    }),
    'a',
  );
  ref.tell('setup');
  env.runTurns();
  return { env, ref, seen };
}

describe('receive timeout', () => {
  test('comes when nothing came, and again while nothing comes', () => {
    const { env, seen } = idling(100);
    env.advance(350);
    assertEquals(seen, ['idle 100', 'idle 200', 'idle 300']);
  });

  test('each message puts it off, with one timer for all of them', () => {
    const { env, ref, seen } = idling(100);
    for (let i = 0; i < 10; i += 1) {
      env.advance(60);
      ref.tell('x');
    }
    env.runTurns();
    assertEquals(env.timerCount, 1);
    env.advance(100);
    assertEquals(seen.at(-1), 'idle 700');
    assertEquals(seen.length, 11);
  });

  test('counts from the end of a long handler', async () => {
    const end = deferred();
    const { env, ref, seen } = idling(100, (message) => message === 'long' ? end.promise : undefined);
    ref.tell('long');
    await env.elapse(500);
    end.resolve();
    await env.elapse(99);
    assertEquals(seen, ['long 0']);
    await env.elapse(1);
    assertEquals(seen, ['long 0', 'idle 600']);
  });

  test('a message that was ahead of it in the mailbox counts', async () => {
    const end = deferred();
    const { env, ref, seen } = idling(100, (message) => message === 'long' ? end.promise : undefined);
    ref.tell('long');
    await env.settle();
    ref.tell('behind');
    await env.elapse(150);
    end.resolve();
    await env.elapse(0);
    assertEquals(seen, ['long 0', 'behind 150']);
    await env.elapse(100);
    assertEquals(seen.at(-1), 'idle 250');
  });

  test('ends when cancelled and when the actor stops', () => {
    const { env, ref, seen } = idling(100);
    ref.tell('cancel');
    env.advance(1_000);
    assertEquals([seen, env.timerCount], [[], 0]);
    ref.tell('setup');
    env.runTurns();
    assertEquals(env.timerCount, 1);
    ref.stop();
    env.advance(1_000);
    assertEquals([seen, env.timerCount], [[], 0]);
  });

  test('setting it again replaces it', () => {
    const { env, ref, seen } = idling(100);
    env.advance(50);
    ref.tell('setup');
    env.advance(99);
    assertEquals(seen, []);
    env.advance(1);
    assertEquals(seen, ['idle 150']);
  });

  for (const timeoutMs of [0, -1, NaN, Infinity]) {
    test(`${timeoutMs} ms is refused`, () => {
      const { env, system } = fixture();
      let refused = false;
      const ref = system.spawn(
        acting<string>((_message, context) => {
          assertThrows(() => context.setReceiveTimeout(timeoutMs, 'idle'), OptionsError);
          refused = true;
        }),
        'a',
      );
      ref.tell('x');
      env.runTurns();
      assertEquals(refused, true);
    });
  }
});
