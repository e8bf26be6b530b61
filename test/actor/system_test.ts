import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from '@std/assert';
import { ActorAlreadyExistsError, ActorNameError, ActorSystem, LevelLogger, OptionsError } from '../../src/mod.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { acting, fixture } from './system_fixture.ts';

describe('actor system', () => {
  const bad: readonly (readonly [object, string])[] = [
    [{ logLevel: 'loud' }, 'logLevel'],
    [{ drainTimeoutMs: -1 }, 'drainTimeoutMs'],
    [{ stopTimeoutMs: Infinity }, 'stopTimeoutMs'],
    [{ defaultSupervisor: {} }, 'defaultSupervisor'],
    [{ logger: 1 }, 'logger'],
    [{ enviroment: {} }, 'enviroment'],
  ];
  for (const [options, field] of bad) {
    test(`${JSON.stringify(options)} is refused by field`, () => {
      const error = assertThrows(() => ActorSystem.create('a', options), OptionsError);
      assertEquals([error.family, error.field], ['ActorSystemOptions', field]);
    });
  }

  test('R13: its name is checked', () => {
    assertThrows(() => ActorSystem.create(''), ActorNameError);
    assertThrows(() => ActorSystem.create('a/b'), ActorNameError);
  });

  test('paths are exact: no other spelling finds an actor', () => {
    const { system } = fixture();
    const ref = system.spawn(acting(() => {}), 'a');
    assertEquals(system.resolve('/user/a') === ref, true);
    for (
      const path of [
        'user/a',
        '//user/a',
        '/user//a',
        '/user/a/',
        '/user/./a',
        '/user/b/../a',
        '/User/a',
        '/user/b',
        '/',
        '',
        '/temp',
        '/temp/x',
        '/temp/x/y',
        '/deadLetters',
        '/user/a\u0000',
      ]
    ) assertEquals(system.resolve(path), undefined, path);
  });

  test('system actors live below /system, with the levels between made on demand', () => {
    const { env, system } = fixture();
    const manager = system.spawnSystem(['cluster', 'singleton', 'manager-x'], acting(() => {}));
    const other = system.spawnSystem(['cluster', 'singleton', 'manager-y'], acting(() => {}));
    assertEquals(manager.path, '/system/cluster/singleton/manager-x');
    assertEquals(system.resolve('/system/cluster/singleton/manager-y') === other, true);
    assertThrows(
      () => system.spawnSystem(['cluster', 'singleton', 'manager-x'], acting(() => {})),
      ActorAlreadyExistsError,
    );
    const below = system.spawnSystem(['cluster', 'singleton', 'manager-x', 'below'], acting(() => {}));
    assertEquals(system.resolve('/system/cluster/singleton/manager-x/below') === below, true);
    assertThrows(() => system.spawnSystem(['a/b', 'c'], acting(() => {})), ActorNameError);
    assertThrows(() => system.spawnSystem([], acting(() => {})), Error, 'at least one name');
    env.runTurns();
    assertEquals(env.logsAt('error'), []);
  });

  test('the log is the one given, else that of the environment', () => {
    const env = new ManualEnvironment();
    const lines: string[] = [];
    const logger = new LevelLogger('debug', (_severity, message) => lines.push(message));
    ActorSystem.create('a', { environment: env }).log.info('to the environment');
    ActorSystem.create('a', { environment: env, logger }).log.info('to the logger');
    assertEquals([env.logsAt('info'), lines], [['to the environment'], ['to the logger']]);
    assertEquals(ActorSystem.create('a', { environment: env, logLevel: 'error' }).log.level, 'error');
    assertEquals(ActorSystem.create('a').log.level, 'warn');
  });

  test('a log that throws stops nobody', () => {
    const env = new ManualEnvironment();
    const logger = new LevelLogger('debug', () => {
      throw new Error('disk full');
    });
    const system = ActorSystem.create('a', { environment: env, logger });
    const seen: string[] = [];
    const ref = system.spawn(
      acting<string>((message) => {
        if (message === 'fail') throw new Error('x');
        seen.push(message);
      }),
      'a',
    );
    for (const message of ['1', 'fail', '2']) ref.tell(message);
    env.runTurns();
    assertEquals(seen, ['1', '2']);
  });

  test('two systems in one process do not meet', () => {
    const [one, two] = [fixture(), fixture()];
    one.system.spawn(acting(() => {}), 'a');
    assertEquals(two.system.resolve('/user/a'), undefined);
    two.system.spawn(acting(() => {}), 'a');
  });

  test('extensions are kept by name', () => {
    const { system } = fixture();
    system.extensions.set('x', 1);
    assertEquals(system.extensions.get('x'), 1);
  });

  test('a message told in one callback is handled at the end of it, before the next turn', async () => {
    // A clock that stands still: a pause of the machine must not use up the turn's budget.
    const environment = { clock: { now: () => 0, wall: () => 0 } };
    const system = ActorSystem.create('real', { logLevel: 'off', environment });
    const order: string[] = [];
    const ref = system.spawn(acting<string>((message) => order.push(message)), 'a');
    setTimeout(() => order.push('timer'), 0);
    ref.tell('message');
    await Promise.resolve();
    assertEquals(order, ['message']);
    await system.terminate();
  });

  test('the stack of a failure leads to the handler', () => {
    const { env, system } = fixture();
    system.spawn(
      acting<string>(() => {
        throw new TypeError('in the handler');
      }),
      'a',
    ).tell('x');
    env.runTurns();
    const entry = env.logged.find(({ level }) => level === 'error');
    assertStringIncludes(String(entry?.fields?.['stack']), 'system_test');
    assertStringIncludes(entry?.message ?? '', 'TypeError: in the handler');
    assertInstanceOf(system.deadLetters, Object);
  });
});
