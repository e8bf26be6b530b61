import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { ActorSystem, SystemTerminatedError } from '../../src/mod.ts';
import { acting, deferred, fixture, recording, spawnManaged } from './system_fixture.ts';

/** Terminates and tells when it was done. */
function terminating({ env, system }: ReturnType<typeof fixture>) {
  const result = { at: -1 };
  system.terminate().then(() => result.at = env.clock.now());
  return result;
}

describe('termination', () => {
  test('R136: /user drains, then stops, then /system stops', async () => {
    const both = fixture();
    const { env, system } = both;
    const events: string[] = [];
    const user = system.spawn(recording(events, { postStop: () => events.push('user stopped') }), 'a');
    spawnManaged(system, 'b', recording([], { postStop: () => events.push('system stopped') }), {});
    await env.settle();
    for (let i = 0; i < 5; i += 1) user.tell(i);
    const result = terminating(both);
    await env.elapse(100);
    assertEquals(events.slice(2), ['0', '1', '2', '3', '4', 'postStop', 'user stopped', 'system stopped']);
    assertEquals([result.at <= 10 && result.at >= 0, system.deadLetters.count], [true, 0]);
    assertEquals(env.timerCount, 0);
  });

  test('R136: draining ends after 2 s', async () => {
    const both = fixture();
    const { env, system } = both;
    let handled = 0;
    const endless = system.spawn(
      acting<number>((message, context) => {
        handled += 1;
        context.timers.startSingle('t', message, 1);
        return context.self.tell(message);
      }),
      'a',
    );
    endless.tell(1);
    const slow = acting<string>(async () => await new Promise(() => {}));
    const stuck = fixture();
    stuck.system.spawn(slow, 'a').tell('x');
    const result = terminating(stuck);
    await stuck.env.elapse(1_999);
    stuck.system.deadLetters.publish({ message: 1, sender: undefined, recipient: 'x', reason: 'stopped' });
    assertEquals(result.at, -1);
    await stuck.env.elapse(10_001);
    assertEquals(result.at, 12_000, '2 s of draining, then 10 s of stopping, then it is killed');
    const [error] = stuck.env.logsAt('error');
    assertStringIncludes(error ?? '', '/user/a');
    assertEquals([handled, env.turnCount], [0, 1]);
  });

  test('an actor waiting for its back-off or at a closed gate does not hold up draining', async () => {
    const both = fixture();
    const { env, system } = both;
    const ref = system.spawn(recording([]), 'a');
    await env.settle();
    ref.tell(new Error('x'));
    const result = terminating(both);
    await env.elapse(20);
    assertEquals(result.at >= 0 && result.at <= 10, true, `${result.at}`);
  });

  test('bounds can be set', async () => {
    const both = fixture({ drainTimeoutMs: 100, stopTimeoutMs: 50 });
    both.system.spawn(acting<string>(() => new Promise(() => {})), 'a').tell('x');
    const result = terminating(both);
    await both.env.elapse(1_000);
    assertEquals(result.at, 150);
  });

  test('FB-104: a start that never settles does not hold the system up', async () => {
    const both = fixture();
    both.system.spawn(recording([], { preStart: () => new Promise(() => {}) }), 'a');
    const result = terminating(both);
    await both.env.elapse(30_000);
    assertEquals(result.at, 7_000, '2 s of draining, and 5 s until such a start is given up');
  });

  test('is idempotent, and whenTerminated and asyncDispose are the same end', async () => {
    const { env, system } = fixture();
    const first = system.terminate();
    assertEquals([system.terminate() === first, system[Symbol.asyncDispose]() === first, system.isTerminating], [
      true,
      true,
      true,
    ]);
    await env.elapse(10);
    await Promise.all([first, system.whenTerminated]);
  });

  test('nothing is spawned any more', async () => {
    const { env, system } = fixture();
    const done = system.terminate();
    assertThrows(() => system.spawn(acting(() => {}), 'a'), SystemTerminatedError, "'test'");
    assertThrows(() => system.spawnAnonymous(acting(() => {})), SystemTerminatedError);
    await env.elapse(10);
    await done;
    assertThrows(() => spawnManaged(system, 'a', acting(() => {}), {}), SystemTerminatedError);
  });

  test('FB-127: an actor may terminate its system, and wait for it', async () => {
    const both = fixture({ drainTimeoutMs: 100, stopTimeoutMs: 100 });
    const { env, system } = both;
    const ref = system.spawn(acting<string>(async (_message, context) => await context.system.terminate()), 'a');
    const quick = fixture();
    quick.system.spawn(acting<string>((_message, context) => void context.system.terminate()), 'a').tell('x');
    await quick.env.elapse(100);
    await quick.system.whenTerminated;
    ref.tell('x');
    await env.elapse(1_000);
    await system.whenTerminated;
  });

  test('it is the last phase of the coordinated shutdown, and starts the ones before', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const leave = deferred();
    system.spawn(recording([], { postStop: () => events.push('stopped') }), 'a');
    await env.settle();
    system.coordinatedShutdown.addTask('cluster-leave', 'leave', () => {
      events.push('leave');
      return leave.promise;
    });
    const done = system.terminate();
    await env.elapse(1_000);
    assertEquals(events, ['leave']);
    leave.resolve();
    await env.elapse(10);
    await done;
    assertEquals(events, ['leave', 'stopped']);
  });

  test('on the real loop it keeps the process alive until it is done', async () => {
    const system = ActorSystem.create('real', { logLevel: 'off', drainTimeoutMs: 10, stopTimeoutMs: 20 });
    system.spawn(acting<string>(() => new Promise(() => {})), 'a').tell('x');
    await system.terminate();
    assertEquals(system.resolve('/user/a'), undefined);
  });
});
