import { describe, test } from 'node:test';
import { assertEquals, assertRejects } from '@std/assert';
import { acting, deadLettersOf, fixture, spawnManaged } from './system_fixture.ts';

describe('local refs', () => {
  test('there is one per actor, the same wherever it comes from', () => {
    const { env, system } = fixture();
    const seen: unknown[] = [];
    const ref = system.spawn(acting((_message, context) => seen.push(context.self)), 'a');
    ref.tell('x');
    env.runTurns();
    assertEquals([seen[0] === ref, system.resolve('/user/a') === ref], [true, true]);
  });

  test('incarnations differ from actor to actor and from system to system', () => {
    const { system } = fixture();
    const refs = ['a', 'b', 'c'].map((name) => system.spawn(acting(() => {}), name));
    assertEquals(new Set(refs.map((ref) => ref.incarnation)).size, 3);
    assertEquals(refs.every((ref) => Number.isSafeInteger(ref.incarnation) && ref.incarnation > 0), true);
  });

  test('onTermination is called once, at once for the dead, and not after its cancel', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const ref = spawnManaged(system, 'a', acting(() => {}), {});
    const listener = (cause: string) => seen.push(cause);
    ref.onTermination(listener);
    ref.onTermination(listener);
    ref.onTermination(() => seen.push('never'))();
    env.runTurns();
    assertEquals(ref.isTerminated, false);
    ref.stop();
    env.runTurns();
    assertEquals([seen, ref.isTerminated], [['stop', 'stop'], true]);
    ref.onTermination(listener)();
    assertEquals(seen.length, 3);
  });

  test('a listener that throws does not keep the others from hearing it', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const ref = spawnManaged(system, 'a', acting(() => {}), {});
    ref.onTermination(() => {
      throw new Error('listener');
    });
    ref.onTermination((cause) => seen.push(cause));
    ref.kill();
    assertEquals(seen, ['kill']);
    assertEquals(env.logsAt('error').length, 1);
  });

  test('guardians cannot be stopped or killed by anybody', () => {
    const { env, system } = fixture();
    spawnManaged(system, 'a', acting(() => {}), {});
    system.spawnSystem(['level', 'b'], acting(() => {}));
    env.runTurns();
    for (const path of ['/user', '/system', '/system/level']) {
      const guardian = system.resolve(path);
      guardian?.stop();
      (guardian as unknown as { kill(): void }).kill();
    }
    env.runTurns();
    assertEquals(system.resolve('/system/level/b') === undefined, false);
    assertEquals(env.logsAt('warn').length, 6);
  });

  test('what a guardian is told is a dead letter', () => {
    const { env, system } = fixture();
    system.resolve('/user')?.tell('x');
    env.runTurns();
    assertEquals(deadLettersOf(system), ['no-such-actor x']);
  });

  test('the ref that stands for no sender takes no questions', async () => {
    const { system } = fixture();
    system.noSender.stop();
    await assertRejects(() => system.noSender.ask('x'), TypeError);
    assertEquals(system.noSender.path, '/deadLetters');
  });
});
