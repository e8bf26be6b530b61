import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor, ActorSystem } from '../../src/mod.ts';
import { Dispatcher, firstQuota, type Runnable } from '../../src/actor/dispatcher.ts';
import { fastPaths } from '../../src/fast_paths.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { acting, fixture } from './system_fixture.ts';

/** A runnable that takes `costMs` for each of its messages. */
function working(env: ManualEnvironment, messages: number, costMs: number, done: (count: number) => void): Runnable {
  let left = messages;
  return {
    scheduled: false,
    quota: firstQuota,
    run(quota) {
      const count = Math.min(quota, left);
      left -= count;
      env.jump(count * costMs);
      done(count);
      return left > 0;
    },
  };
}

/** Turns that also run something at the end of the callback, by hand. */
function soonTurns(env: ManualEnvironment) {
  const soon: (() => void)[] = [];
  return {
    turns: { schedule: env.turns.schedule, soon: (run: () => void) => void soon.push(run) },
    runSoon: (): number => {
      const runs = soon.splice(0);
      for (const run of runs) run();
      return runs.length;
    },
    get waiting() {
      return soon.length;
    },
  };
}

describe('dispatcher', () => {
  test('runs what is scheduled once, in order, in a later turn', () => {
    const env = new ManualEnvironment();
    const dispatcher = new Dispatcher(env.clock, env.turns);
    const order: string[] = [];
    const runnables = ['a', 'b'].map((name) => working(env, 1, 0, () => order.push(name)));
    for (const runnable of [...runnables, ...runnables]) dispatcher.schedule(runnable);
    assertEquals([order.length, env.turnCount, dispatcher.idle], [0, 1, false]);
    env.runTurns();
    assertEquals(order, ['a', 'b']);
    assertEquals([env.turnCount, dispatcher.idle], [0, true], 'nothing is booked while nothing is queued');
  });

  for (const quotas of [true, false]) {
    test(`an actor handles ${quotas ? 'several messages' : 'one message'} in one go, and all of them in the end`, () => {
      fastPaths.quotas = quotas;
      try {
        const env = new ManualEnvironment();
        const dispatcher = new Dispatcher(env.clock, env.turns);
        const order: [string, number][] = [];
        for (const name of ['a', 'b']) {
          dispatcher.schedule(working(env, 10, 0, (count) => void order.push([name, count])));
        }
        env.runTurns();
        const handled = (name: string) =>
          order.filter(([who]) => who === name).reduce((sum, [, count]) => sum + count, 0);
        assertEquals([handled('a'), handled('b'), dispatcher.idle], [10, 10, true]);
        assertEquals(order[0], ['a', quotas ? firstQuota : 1]);
        assertEquals(order.length, quotas ? 4 : 20);
      } finally {
        fastPaths.quotas = true;
      }
    });
  }

  test('a turn ends after its budget, and the rest waits for the next', () => {
    const env = new ManualEnvironment();
    const dispatcher = new Dispatcher(env.clock, env.turns);
    const turns: number[] = [];
    let handled = 0;
    const runnable = working(env, 100, 1, (count) => handled += count);
    dispatcher.schedule(runnable);
    env.turns.schedule(function sample() {
      turns.push(handled);
      if (handled < 100) env.turns.schedule(sample);
    });
    env.runTurns();
    assertEquals(handled, 100);
    assert((turns[0] ?? 0) <= firstQuota, `${turns[0]} slow messages in the first turn`);
    const largest = Math.max(...turns.map((count, i) => count - (turns[i - 1] ?? 0)).slice(1));
    assert(largest <= 2, `${largest} slow messages in one turn`);
  });

  test('quick handlers earn a large quota', () => {
    const env = new ManualEnvironment();
    const dispatcher = new Dispatcher(env.clock, env.turns);
    let largest = 0;
    const runnable = working(env, 10_000, 0, (count) => largest = Math.max(largest, count));
    dispatcher.schedule(runnable);
    env.runTurns();
    assertEquals(largest, 256);
  });

  test('a clock that stands still does not make a turn endless', () => {
    const env = new ManualEnvironment();
    const dispatcher = new Dispatcher(env.clock, env.turns);
    let runs = 0;
    const endless: Runnable = {
      scheduled: false,
      quota: 1,
      run: () => {
        runs += 1;
        return runs < 100_000;
      },
    };
    dispatcher.schedule(endless);
    let between = 0;
    env.turns.schedule(() => between = runs);
    env.runTurns();
    assert(between > 0 && between < 100_000, `${between}`);
    assertEquals(runs, 100_000);
  });

  test('with "soon", what is told while idle runs at the end of the callback', () => {
    const env = new ManualEnvironment();
    const soon = soonTurns(env);
    const dispatcher = new Dispatcher(env.clock, soon.turns);
    let handled = 0;
    dispatcher.schedule(working(env, 1, 0, () => handled += 1));
    dispatcher.schedule(working(env, 1, 0, () => handled += 1));
    assertEquals([soon.waiting, env.turnCount], [1, 1]);
    soon.runSoon();
    assertEquals(handled, 2);
    env.runTurns();
    assertEquals([soon.waiting, env.turnCount], [0, 0]);
  });

  test('with "soon", an endless chain of callbacks gets one budget per turn', () => {
    const env = new ManualEnvironment();
    const soon = soonTurns(env);
    const dispatcher = new Dispatcher(env.clock, soon.turns);
    let handled = 0;
    // Each message takes 0.5 ms and schedules the next from outside of the run, as an async handler does.
    const step = (): void => {
      dispatcher.schedule(working(env, 1, 0.5, () => handled += 1));
    };
    for (let turn = 1; turn <= 10; turn += 1) {
      step();
      for (let i = 0; i < 100 && soon.waiting > 0; i += 1) {
        soon.runSoon();
        step();
      }
      assertEquals(soon.waiting, 0, 'the budget is used up: the rest waits for the turn');
      assert(handled <= turn * 6, `${handled} messages in ${turn} turns`);
      env.runTurns();
    }
    assert(handled >= 40, `${handled}`);
  });

  test('actors that send to each other for ever let timers and turns through', () => {
    const { env, system } = fixture();
    let sent = 0;
    const forth = acting<number>((message, context) => {
      sent += 1;
      env.jump(0.01);
      if (sent < 50_000) context.sender.tell(message, context.self);
    });
    system.spawn(forth, 'a').tell(1, system.spawn(forth, 'b'));
    let turns = 0;
    env.turns.schedule(function count() {
      turns += 1;
      if (sent < 50_000) env.turns.schedule(count);
    });
    env.runTurns();
    assertEquals(sent, 50_000);
    assert(turns > 100, `${turns} turns for 500 ms of work`);
  });
});

test('on the real loop, async chains and chains of messages let timers fire', async () => {
  const system = ActorSystem.create('real', { logLevel: 'off', drainTimeoutMs: 1 });
  let handled = 0;
  class Async extends Actor<number> {
    override async onReceive(): Promise<void> {
      await undefined;
      handled += 1;
      this.context.self.tell(1);
    }
  }
  class Sync extends Actor<number> {
    override onReceive(): void {
      handled += 1;
      this.context.self.tell(1);
    }
  }
  system.spawn(Async, 'async').tell(1);
  system.spawn(Sync, 'sync').tell(1);
  let fired = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      fired += 1;
      if (fired < 20) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  assert(handled > 100, `${handled} messages`);
  await system.terminate();
});
