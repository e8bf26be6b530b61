import { describe, test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { ManualEnvironment, seededRandom } from '../../src/testkit/manual_environment.ts';

describe('manual environment', () => {
  test('nothing moves by itself', async () => {
    const env = new ManualEnvironment();
    const events: string[] = [];
    env.timers.set(0, () => events.push('timer'));
    env.turns.schedule(() => events.push('turn'));
    await new Promise((resolve) => setTimeout(resolve, 5));
    assertEquals([events, env.clock.now(), env.timerCount, env.turnCount], [[], 0, 1, 1]);
  });

  test('advance runs turns, then timers at their times in order, with the turns they cause', () => {
    const env = new ManualEnvironment();
    const events: string[] = [];
    const note = (text: string) => () => events.push(`${text} ${env.clock.now()}`);
    env.timers.set(20, note('late'));
    env.timers.set(10, () => {
      note('early')();
      env.turns.schedule(note('turn'));
      env.timers.set(5, note('nested'));
    });
    env.timers.set(10, note('same time, set later'));
    env.timers.set(31, note('beyond'));
    env.turns.schedule(note('first'));
    env.advance(30);
    assertEquals(events, ['first 0', 'early 10', 'turn 10', 'same time, set later 10', 'nested 15', 'late 20']);
    assertEquals([env.clock.now(), env.timerCount], [30, 1]);
    assertEquals(env.clock.wall() - env.clock.now(), 1_700_000_000_000);
  });

  test('cancelled timers do not run, and jumped ones run late', () => {
    const env = new ManualEnvironment();
    const events: string[] = [];
    env.timers.set(10, () => events.push('cancelled'))();
    env.timers.set(10, () => events.push(`late ${env.clock.now()}`));
    env.jump(100);
    assertEquals(events, []);
    env.advance(0);
    assertEquals(events, ['late 100']);
  });

  test('settle and elapse let promises go on', async () => {
    const env = new ManualEnvironment();
    const events: string[] = [];
    const step = async (): Promise<void> => {
      for (let i = 0; i < 5; i += 1) await Promise.resolve();
      env.turns.schedule(() => events.push(`turn ${env.clock.now()}`));
    };
    void step();
    await env.settle();
    assertEquals(events, ['turn 0']);
    env.timers.set(10, () => void step());
    env.timers.set(20, () => events.push('timer 20'));
    await env.elapse(30);
    assertEquals(events, ['turn 0', 'turn 10', 'timer 20']);
  });

  test('an endless chain of turns is an error', () => {
    const env = new ManualEnvironment();
    const again = (): void => env.turns.schedule(again);
    again();
    assertThrows(() => env.runTurns(), Error, 'still busy');
  });

  test('random numbers depend on the seed alone', () => {
    const draw = (seed: number) => Array.from({ length: 5 }, seededRandom(seed).next);
    assertEquals(draw(1), draw(1));
    assert(draw(1)[0] !== draw(2)[0]);
    const many = Array.from({ length: 10_000 }, seededRandom(9).next);
    assert(many.every((value) => value >= 0 && value < 1));
    const mean = many.reduce((sum, value) => sum + value, 0) / many.length;
    assert(mean > 0.48 && mean < 0.52, `${mean}`);
    assertEquals(new ManualEnvironment({ seed: 3 }).random.next(), seededRandom(3).next());
  });

  test('everything logged is kept', () => {
    const env = new ManualEnvironment();
    env.log.debug('a', { x: 1 });
    env.log.error('b');
    assertEquals(env.logged, [
      { level: 'debug', message: 'a', fields: { x: 1 } },
      { level: 'error', message: 'b', fields: undefined },
    ]);
    assertEquals(env.logsAt('error'), ['b']);
  });
});
