import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { type ActorContext, OptionsError, SupervisorStrategy } from '../../src/mod.ts';
import type { Handler } from './system_fixture.ts';
import { acting, deferred, fixture } from './system_fixture.ts';

/** An actor that sets its timers on 'setup' and writes down when it got what. */
function timed(setup: (context: ActorContext<string>) => void, handler?: Handler<string>) {
  const { env, system } = fixture();
  const seen: string[] = [];
  const ref = system.spawn(
    acting<string>((message, context) => {
      if (message === 'setup') return setup(context);
      seen.push(`${message} ${env.clock.now()}`);
      return handler?.(message, context);
    }),
    'a',
  );
  ref.tell('setup');
  env.runTurns();
  return { env, system, ref, seen };
}

describe('timers', () => {
  test('single: once, after its delay', () => {
    const { env, seen } = timed(({ timers }) => timers.startSingle('t', 'tick', 100));
    env.advance(99);
    assertEquals(seen, []);
    env.advance(1_000);
    assertEquals(seen, ['tick 100']);
  });

  test('fixed rate: on its grid', () => {
    const { env, seen } = timed(({ timers }) => timers.startFixedRate('t', 'tick', 100, 50));
    env.advance(400);
    assertEquals(seen, ['tick 50', 'tick 150', 'tick 250', 'tick 350']);
  });

  test('fixed delay: counted from the end of the handler', async () => {
    let end = deferred();
    const { env, seen } = timed(({ timers }) => timers.startFixedDelay('t', 'tick', 100), () => end.promise);
    await env.elapse(130);
    assertEquals(seen, ['tick 100']);
    end.resolve();
    end = deferred();
    await env.elapse(99);
    assertEquals(seen.length, 1);
    await env.elapse(1);
    assertEquals(seen, ['tick 100', 'tick 230']);
  });

  for (const kind of ['startFixedDelay', 'startFixedRate'] as const) {
    test(`FB-132: ${kind} has at most one tick queued, whatever the handler takes`, async () => {
      let end = deferred();
      const { env, ref, seen } = timed(({ timers }) => timers[kind]('t', 'tick', 100), () => end.promise);
      await env.elapse(100);
      for (let i = 0; i < 9; i += 1) {
        await env.elapse(1_000);
        const ended = end;
        end = deferred();
        // A user message told meanwhile is next after at most one tick.
        const before = seen.length;
        ref.tell('user');
        ended.resolve();
        await env.settle();
        const blocked = end;
        end = deferred();
        blocked.resolve();
        await env.settle();
        const last = end;
        end = deferred();
        last.resolve();
        await env.settle();
        const added = seen.slice(before).map((entry) => entry.split(' ')[0]);
        assertEquals(added.filter((entry) => entry === 'tick').length <= 2, true, added.join());
        assertEquals(added.indexOf('user') <= 1 && added.includes('user'), true, added.join());
      }
    });
  }

  test('FB-130: after a suspend there is one tick, and the grid is kept', () => {
    const { env, seen } = timed(({ timers }) => timers.startFixedRate('t', 'tick', 100));
    env.advance(100);
    env.jump(600_050);
    env.advance(0);
    assertEquals(seen, ['tick 100', 'tick 600150']);
    env.advance(150);
    assertEquals(seen.slice(2), ['tick 600200', 'tick 600300']);
  });

  test('a timer under the same key replaces the first; others are not touched', () => {
    const { env, seen } = timed(({ timers }) => {
      timers.startSingle('t', 'first', 100);
      timers.startSingle('other', 'other', 100);
      timers.startSingle('t', 'second', 200);
    });
    env.advance(1_000);
    assertEquals(seen, ['other 100', 'second 200']);
  });

  test('a cancelled timer is silent, also when its tick waits in the mailbox already', async () => {
    const end = deferred();
    const { env, ref, seen } = timed(
      ({ timers }) => timers.startSingle('t', 'tick', 100),
      (message, context) => {
        if (message !== 'wait') return;
        return end.promise.then(() => context.timers.cancel('t'));
      },
    );
    ref.tell('wait');
    await env.elapse(200);
    end.resolve();
    await env.elapse(1_000);
    assertEquals(seen, ['wait 0']);
  });

  test('a replaced timer does not deliver the old message that waits in the mailbox', async () => {
    const end = deferred();
    const { env, ref, seen } = timed(
      ({ timers }) => timers.startSingle('t', 'old', 100),
      (message, context) => {
        if (message !== 'wait') return;
        return end.promise.then(() => context.timers.startSingle('t', 'new', 50));
      },
    );
    ref.tell('wait');
    await env.elapse(200);
    end.resolve();
    await env.elapse(1_000);
    assertEquals(seen, ['wait 0', 'new 250']);
  });

  test('isActive tells whether a tick is still to come', () => {
    const active: boolean[] = [];
    const { env, ref } = timed(
      ({ timers }) => {
        timers.startSingle('t', 'tick', 100);
        timers.startFixedDelay('d', 'again', 10_000);
        active.push(timers.isActive('t'), timers.isActive('d'), timers.isActive('x'));
      },
      (_message, { timers }) => {
        active.push(timers.isActive('t'));
        timers.cancelAll();
        active.push(timers.isActive('d'));
      },
    );
    env.advance(100);
    assertEquals(active, [true, true, false, false, false]);
    ref.tell('x');
    env.runTurns();
    assertEquals(env.timerCount, 0);
  });

  test('a handler that fails and is resumed does not end a fixed delay', () => {
    const { env, system } = fixture();
    const seen: number[] = [];
    const ref = system.spawn(
      acting<string>((message, { timers }) => {
        if (message === 'setup') return timers.startFixedDelay('t', 'tick', 100);
        seen.push(env.clock.now());
        throw new Error('x');
      }),
      'a',
      { supervisor: SupervisorStrategy.oneForOne({ decider: () => 'resume' }) },
    );
    ref.tell('setup');
    env.advance(350);
    assertEquals(seen, [100, 200, 300]);
  });

  test('all end when the actor stops', () => {
    const { env, ref, seen } = timed(({ timers }) => {
      timers.startFixedRate('r', 'tick', 100);
      timers.startFixedDelay('d', 'tick', 100);
      timers.startSingle('s', 'tick', 100);
    });
    ref.stop();
    env.advance(1_000);
    assertEquals([seen, env.timerCount], [[], 0]);
  });

  for (const delay of [-1, NaN, Infinity, 2 ** 31, 30 * 24 * 3_600_000, '5', undefined]) {
    test(`FB-131: a delay of ${String(delay)} is refused`, () => {
      const errors: unknown[] = [];
      const attempt = (run: () => void) => errors.push(assertThrows(run, OptionsError));
      const { env } = timed(({ timers }) => {
        attempt(() => timers.startSingle('t', 'tick', delay as number));
        attempt(() => timers.startFixedDelay('t', 'tick', delay as number));
        attempt(() => timers.startFixedRate('t', 'tick', delay as number));
        if (delay !== undefined) attempt(() => timers.startFixedRate('t', 'tick', 10, delay as number));
      });
      assertEquals(errors.length, delay === undefined ? 3 : 4);
      assertEquals(env.timerCount, 0);
    });
  }

  test('a rate of 0 is refused, a delay of 0 is not', () => {
    const { env, seen } = timed(({ timers }) => {
      assertThrows(() => timers.startFixedRate('t', 'tick', 0), OptionsError, 'from 1');
      timers.startSingle('t', 'tick', 0);
    });
    env.advance(0);
    assertEquals(seen, ['tick 0']);
  });
});
