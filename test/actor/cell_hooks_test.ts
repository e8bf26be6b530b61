import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { acting, deferred, fixture, recording, spawnManaged } from './system_fixture.ts';

describe('hooks of an actor', () => {
  const kinds: readonly (readonly [string, () => unknown, failed: boolean])[] = [
    ['returns', () => undefined, false],
    ['throws', () => {
      throw new Error('hook');
    }, true],
    ['resolves', () => Promise.resolve(), false],
    ['rejects', () => Promise.reject(new Error('hook')), true],
    ['gives another thenable', () => ({ then: (done: () => void) => done() }), false],
  ];
  for (const [label, run, failed] of kinds) {
    test(`postStop that ${label}: the actor ends`, async () => {
      const { env, system } = fixture();
      const ref = spawnManaged(system, 'a', recording([], { postStop: run }), {});
      await env.settle();
      ref.stop();
      await env.settle();
      assertEquals([ref.isTerminated, env.logsAt('error').length], [true, failed ? 1 : 0]);
    });

    test(`preStart that ${label}: ${failed ? 'a failed start' : 'the actor runs'}`, async () => {
      const { env, system } = fixture();
      let first = true;
      const events: string[] = [];
      const source = recording(events, {
        preStart: () => {
          if (!first) return undefined;
          first = false;
          return run();
        },
      });
      system.spawn(source, 'a').tell('handled');
      await env.settle();
      assertEquals(events.at(-1), 'handled');
      assertEquals(events.filter((event) => event === 'constructed').length, failed ? 2 : 1);
    });
  }

  test('the answer of a hook that was given up is not heard', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const first = deferred();
    let count = 0;
    const source = recording(events, {
      preStart: () => {
        count += 1;
        return count === 1 ? first.promise : undefined;
      },
    });
    const ref = system.spawn(source, 'a', { startTimeoutMs: 10 });
    await env.elapse(10);
    first.reject(new Error('too late'));
    ref.tell('handled');
    await env.settle();
    assertEquals([count, events.at(-1), env.logsAt('error').length], [2, 'handled', 1]);
  });

  test('messages wait while a hook has not settled', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const end = deferred();
    const ref = system.spawn(recording(events, { postStop: () => end.promise }), 'a');
    ref.tell(new Error('x'));
    ref.tell('next');
    await env.settle();
    assertEquals(events.at(-1), 'postStop');
    end.resolve();
    await env.settle();
    assertEquals(events.at(-1), 'next');
  });

  test('a termination listener may cancel itself and others while they are told', () => {
    const { system } = fixture();
    const seen: string[] = [];
    const ref = spawnManaged(system, 'a', acting(() => {}), {});
    const cancels: (() => void)[] = [];
    cancels.push(ref.onTermination(() => {
      seen.push('first');
      for (const cancel of cancels) cancel();
    }));
    cancels.push(ref.onTermination(() => seen.push('cancelled')));
    ref.kill();
    assertEquals(seen, ['first']);
  });
});
