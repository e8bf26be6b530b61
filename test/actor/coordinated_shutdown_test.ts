import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { CoordinatedShutdown, OptionsError, type ShutdownPhase, shutdownPhases } from '../../src/mod.ts';
import type { ShutdownLimits } from '../../src/actor/coordinated_shutdown.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { deferred } from './system_fixture.ts';

function setup(options?: ShutdownLimits) {
  const env = new ManualEnvironment();
  const shutdown = new CoordinatedShutdown(env, options);
  const events: string[] = [];
  let finished = false;
  const run = () => void shutdown.run('test').then(() => finished = true);
  const add = (phase: ShutdownPhase, name: string, task?: () => void | Promise<void>) =>
    shutdown.addTask(phase, name, () => {
      events.push(`${name} ${env.clock.now()}`);
      return task?.();
    });
  return { env, shutdown, events, run, add, finished: () => finished };
}

describe('coordinated shutdown', () => {
  test('R105: twelve phases, in this order', async () => {
    const { env, shutdown, run, add, events, finished } = setup();
    for (const phase of [...shutdownPhases].reverse()) add(phase, phase);
    assertEquals([shutdown.reason, shutdown.currentPhase], [undefined, undefined]);
    run();
    await env.settle();
    assertEquals(events, [
      'before-service-unbind 0',
      'service-unbind 0',
      'service-requests-done 0',
      'service-stop 0',
      'before-cluster-shutdown 0',
      'cluster-leave-preparation 0',
      'cluster-leave 0',
      'cluster-exiting 0',
      'cluster-exiting-done 0',
      'cluster-shutdown 0',
      'before-actor-system-terminate 0',
      'actor-system-terminate 0',
    ]);
    assertEquals([finished(), shutdown.reason, shutdown.currentPhase], [true, 'test', 'actor-system-terminate']);
    assertEquals(env.timerCount, 0);
  });

  test('tasks of a phase run side by side, and the next phase waits for all', async () => {
    const { env, run, add, events, finished } = setup();
    const ends = [deferred(), deferred()];
    add('service-stop', 'a', () => ends[0]?.promise);
    add('service-stop', 'b', () => ends[1]?.promise);
    add('cluster-leave', 'c');
    run();
    await env.elapse(10);
    assertEquals(events, ['a 0', 'b 0']);
    ends[1]?.resolve();
    await env.elapse(10);
    assertEquals(events.length, 2);
    ends[0]?.resolve();
    await env.settle();
    assertEquals([events[2], finished()], ['c 20', true]);
  });

  test('FB-126: a phase that takes too long is left behind after 5 s, logged by name', async () => {
    const { env, shutdown, run, add, events, finished } = setup();
    add('service-stop', 'stuck', () => new Promise(() => {}));
    add('service-stop', 'quick');
    add('cluster-leave', 'next');
    run();
    await env.elapse(4_999);
    assertEquals(events.length, 2);
    await env.elapse(1);
    assertEquals([events[2], finished()], ['next 5000', true]);
    assertEquals(shutdown.timedOut, ['service-stop']);
    const [warning] = env.logsAt('warn');
    assertStringIncludes(warning ?? '', "'service-stop'");
    assertStringIncludes(warning ?? '', 'stuck');
    assertEquals(warning?.includes('quick'), false);
  });

  test('a phase has its own bound if it is given one', async () => {
    const { env, shutdown, run, add, finished } = setup();
    shutdown.setPhaseTimeout('cluster-leave', 12_000);
    const end = deferred();
    add('cluster-leave', 'slow', () => end.promise);
    run();
    await env.elapse(11_999);
    assertEquals([finished(), shutdown.phaseTimeout('cluster-leave'), shutdown.phaseTimeout('service-stop')], [
      false,
      12_000,
      5_000,
    ]);
    end.resolve();
    await env.settle();
    assertEquals([finished(), shutdown.timedOut], [true, []]);
  });

  test('FB-126: the whole is bounded; what is left then is started and not waited for', async () => {
    const { env, run, add, events, finished } = setup({ totalTimeoutMs: 8_000 });
    const never = () => new Promise<void>(() => {});
    for (const phase of ['service-stop', 'cluster-leave', 'cluster-exiting', 'actor-system-terminate'] as const) {
      add(phase, phase, never);
    }
    run();
    await env.elapse(7_999);
    assertEquals(finished(), false);
    await env.elapse(1);
    assertEquals(finished(), true);
    assertEquals(events, [
      'service-stop 0',
      'cluster-leave 5000',
      'cluster-exiting 8000',
      'actor-system-terminate 8000',
    ]);
  });

  test('a task that throws or rejects is logged, and the rest goes on', async () => {
    const { env, run, add, events, finished } = setup();
    add('service-stop', 'throws', () => {
      throw new Error('sync');
    });
    add('service-stop', 'rejects', () => Promise.reject(new Error('async')));
    add('cluster-leave', 'next');
    run();
    await env.settle();
    assertEquals([events.at(-1), finished(), env.logsAt('error').length], ['next 0', true, 2]);
  });

  test('FB-127: running it again joins the first run', async () => {
    const { env, shutdown, run, add, events } = setup();
    const end = deferred();
    add('cluster-leave', 'leave', () => end.promise);
    run();
    const again = shutdown.run('signal');
    assertEquals([again === shutdown.run('third'), shutdown.reason], [true, 'test']);
    end.resolve();
    await env.settle();
    await again;
    assertEquals(events, ['leave 0']);
  });

  test('FB-127: a task may run the shutdown it is part of', async () => {
    const { env, shutdown, run, add, finished } = setup();
    add('service-stop', 'again', () => void shutdown.run('inner'));
    run();
    await env.settle();
    assertEquals(finished(), true);
  });

  test('R105: a task that was removed does not run', async () => {
    const { env, run, add, events } = setup();
    const remove = add('cluster-leave', 'leave');
    remove();
    remove();
    run();
    await env.settle();
    assertEquals(events, []);
  });

  test('a task may add one for a later phase; for one that has begun it is too late', async () => {
    const { env, run, add, events } = setup();
    add('service-stop', 'first', () => {
      add('cluster-leave', 'later');
      add('service-unbind', 'too late');
      add('service-stop', 'also too late');
    });
    run();
    await env.settle();
    assertEquals(events, ['first 0', 'later 0']);
    assertEquals(env.logsAt('warn').length, 2);
  });

  test('bad phases and bounds are refused', () => {
    const { shutdown } = setup();
    assertThrows(() => shutdown.addTask('nope' as ShutdownPhase, 'x', () => {}), OptionsError, 'phase');
    assertThrows(() => shutdown.setPhaseTimeout('cluster-leave', -1), OptionsError, 'timeoutMs');
    assertThrows(() => new CoordinatedShutdown(new ManualEnvironment(), { totalTimeoutMs: NaN }), OptionsError);
  });

  test('the process is held while it runs, where timers can do that', async () => {
    const env = new ManualEnvironment();
    const held: string[] = [];
    const timers = {
      set: env.timers.set,
      hold: () => {
        held.push('hold');
        return () => held.push('release');
      },
    };
    const shutdown = new CoordinatedShutdown({ ...env, clock: env.clock, random: env.random, timers } as never);
    const end = deferred();
    shutdown.addTask('cluster-leave', 'x', () => end.promise);
    const done = shutdown.run('test');
    assertEquals(held, ['hold']);
    end.resolve();
    await done;
    assertEquals(held, ['hold', 'release']);
  });
});
