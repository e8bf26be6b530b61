import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { Actor, type ActorContext, ActorStoppedError, SupervisorStrategy } from '../../src/mod.ts';
import type { CellHooks } from '../../src/actor/spawn_options.ts';
import { acting, deadLettersOf, deferred, fixture, recording, spawnManaged } from './system_fixture.ts';

function tracing(events: string[]): CellHooks {
  return {
    constructed: (_actor, restart) => events.push(`hook constructed ${restart}`),
    started: () => events.push('hook started'),
    stopped: (_actor, cause) => events.push(`hook stopped ${cause}`),
    terminated: (cause, error) =>
      events.push(`hook terminated ${cause}${error === undefined ? '' : ` ${String(error)}`}`),
  };
}

describe('start', () => {
  test('constructor and preStart run in a turn of the actor, and messages wait for an async preStart', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ready = deferred();
    const ref = system.spawn(recording(events, { preStart: () => ready.promise }), 'a');
    assertEquals(events, []);
    ref.tell('1');
    await env.settle();
    assertEquals(events, ['constructed', 'preStart']);
    ready.resolve();
    await env.settle();
    assertEquals(events, ['constructed', 'preStart', '1']);
  });

  test('hooks are called in the order of the life', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged(system, 'a', recording(events), { hooks: tracing(events) });
    ref.tell('1');
    await env.settle();
    ref.stop();
    await env.settle();
    assertEquals(events, [
      'constructed',
      'hook constructed false',
      'preStart',
      'hook started',
      '1',
      'postStop',
      'hook stopped stop',
      'hook terminated stop',
    ]);
  });

  test('postStop runs for an instance whose preStart threw, and not where a constructor did', async () => {
    for (const failing of ['constructor', 'preStart']) {
      const { env, system } = fixture();
      const events: string[] = [];
      class Opens extends Actor<string> {
        constructor() {
          super();
          if (failing === 'constructor') throw new Error('no');
        }
        override preStart(): void {
          events.push('opens');
          throw new Error('half-way');
        }
        override postStop(): void {
          events.push('closes');
        }
        override onReceive(): void {}
      }
      system.spawn(Opens, 'a', { supervisor: SupervisorStrategy.oneForOne({ decider: () => 'stop' }) });
      await env.settle();
      assertEquals(events, failing === 'constructor' ? [] : ['opens', 'closes']);
    }
  });

  test('a throw in the constructed hook is a failed start, and the instance is never used', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    let tries = 0;
    const hooks: CellHooks = {
      constructed: () => {
        tries += 1;
        if (tries === 1) throw new Error('restore');
      },
    };
    const ref = spawnManaged(system, 'a', recording(events), { hooks });
    ref.tell('1');
    env.runTurns();
    assertEquals(events, ['constructed', 'constructed', 'preStart', '1']);
  });

  for (const how of ['stop', 'kill'] as const) {
    test(`an actor that gets a ${how} before it could start is never constructed`, () => {
      const { env, system } = fixture();
      const events: string[] = [];
      const ref = spawnManaged(system, 'a', recording(events), { hooks: tracing(events) });
      ref.tell('1');
      ref[how]();
      env.runTurns();
      assertEquals(events, [`hook terminated ${how}`]);
      assertEquals(deadLettersOf(system), ['stopped 1']);
    });
  }

  test('FB-104: a preStart that takes too long is a failed start, and its instance is cut off', async () => {
    const { env, system } = fixture();
    const contexts: ActorContext<unknown>[] = [];
    const seen: unknown[] = [];
    const source = () =>
      new (class extends Actor<unknown> {
        override preStart(): void | Promise<void> {
          contexts.push(this.context);
          return contexts.length === 1 ? new Promise<void>(() => {}) : undefined;
        }
        override onReceive(message: unknown): void {
          seen.push(message);
        }
      })();
    const ref = system.spawn(source, 'a', { startTimeoutMs: 100 });
    ref.tell('1');
    await env.elapse(99);
    assertEquals(contexts.length, 1);
    await env.elapse(1);
    assertEquals([contexts.length, seen], [2, ['1']]);
    assertThrows(() => contexts[0]?.spawn(acting(() => {}), 'x'), ActorStoppedError);
  });

  test('FB-104: an actor whose preStart never settles can be stopped all the same', async () => {
    const { env, system } = fixture();
    const parent = system.spawn(
      () =>
        new (class extends Actor<unknown> {
          override preStart(): void {
            this.context.spawn(recording([], { preStart: () => new Promise(() => {}) }), 'stuck');
          }
          override onReceive(): void {}
        })(),
      'parent',
    );
    await env.settle();
    parent.stop();
    await env.elapse(4_999);
    assertEquals(system.resolve('/user/parent') === undefined, false);
    await env.elapse(1);
    assertEquals(system.resolve('/user/parent'), undefined);
    assertEquals(env.logsAt('error').length, 1);
  });

  test('a managed actor whose preStart never settles is left to its owner', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const source = recording(events, { preStart: () => new Promise(() => {}) });
    const ref = spawnManaged(system, 'a', source, { hooks: tracing(events) });
    await env.settle();
    ref.stop();
    await env.elapse(60_000);
    assertEquals(ref.isTerminated, false);
    ref.kill();
    assertEquals(events.slice(-2), ['hook stopped kill', 'hook terminated kill']);
  });
});

describe('stop', () => {
  test('R137: a stop is handled after the present message and before the queue', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const end = deferred();
    const ref = system.spawn(
      acting<string>((message) => {
        events.push(message);
        return end.promise;
      }),
      'a',
    );
    for (const message of ['1', '2', '3']) ref.tell(message);
    await env.settle();
    ref.stop();
    ref.stop();
    await env.settle();
    assertEquals(system.resolve('/user/a') === ref, true);
    end.resolve();
    await env.settle();
    assertEquals(events, ['1']);
    assertEquals(deadLettersOf(system), ['stopped 2', 'stopped 3']);
    ref.tell('4');
    assertEquals(deadLettersOf(system).at(-1), 'terminated 4');
  });

  test('children stop first, then postStop runs, and the name is free after it has settled', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const childEnd = deferred();
    const parentEnd = deferred();
    const child = () => recording(events, { postStop: () => childEnd.promise })();
    const ref = system.spawn(
      () =>
        new (class extends Actor<string> {
          override onReceive(): void {
            this.context.spawn(child, 'child');
          }
          override postStop(): Promise<void> {
            events.push(`parent postStop, ${this.context.children.length} children`);
            return parentEnd.promise;
          }
        })(),
      'a',
    );
    ref.tell('go');
    await env.settle();
    ref.stop();
    await env.settle();
    assertEquals(events, ['constructed', 'preStart', 'postStop']);
    ref.tell('late');
    assertEquals(deadLettersOf(system), ['stopped late']);
    childEnd.resolve();
    await env.settle();
    assertEquals(events.at(-1), 'parent postStop, 0 children');
    assertThrows(() => system.spawn(child, 'a'), Error, 'still stopping');
    parentEnd.resolve();
    await env.settle();
    system.spawn(child, 'a');
  });

  test('FB-113: waiting for a child takes no turns', async () => {
    const { env, system } = fixture();
    const end = deferred();
    const ref = system.spawn(
      acting<string>((_message, context) => context.spawn(recording([], { postStop: () => end.promise }), 'child')),
      'a',
    );
    ref.tell('go');
    await env.settle();
    ref.tell('queued');
    ref.stop();
    await env.settle();
    assertEquals([env.turnCount, system.dispatcher.idle], [0, true]);
    end.resolve();
    await env.settle();
    assertEquals(system.resolve('/user/a'), undefined);
  });

  test('stopSelf ends with cause self, and a postStop that throws is logged and changes nothing', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const source = () =>
      new (class extends Actor<string> {
        override onReceive(): void {
          this.context.stopSelf();
        }
        override postStop(): void {
          throw new Error('postStop');
        }
      })();
    const ref = spawnManaged(system, 'a', source, { hooks: tracing(events) });
    ref.tell('go');
    env.runTurns();
    assertEquals(events.slice(-2), ['hook stopped self', 'hook terminated self']);
    assertEquals(env.logsAt('error').length, 1);
    assertEquals(system.resolve('/system/a'), undefined);
  });
});

describe('restart', () => {
  test('hooks run in order: preRestart, postStop, constructor, postRestart, preStart', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged(system, 'a', recording(events), { hooks: tracing(events) });
    ref.tell('1');
    ref.tell(new Error('x'));
    ref.tell('2');
    env.runTurns();
    assertEquals(events, [
      'constructed',
      'hook constructed false',
      'preStart',
      'hook started',
      '1',
      'preRestart x thrown',
      'postStop',
      'constructed',
      'hook constructed true',
      'postRestart x',
      'preStart',
      '2',
    ]);
  });

  test('FB-105: children are stopped before the new instance starts, so that their names are free', async () => {
    const { env, system } = fixture();
    const handled: string[] = [];
    let children = 0;
    const ref = system.spawn(
      () =>
        new (class extends Actor<string> {
          override preStart(): void {
            const slow = recording([], { postStop: () => Promise.resolve() });
            children += 1;
            this.context.spawn(slow, 'named');
          }
          override onReceive(message: string): void {
            if (message === 'fail') throw new Error('x');
            handled.push(`${message} ${this.context.children.length}`);
          }
        })(),
      'a',
    );
    ref.tell('fail');
    ref.tell('next');
    await env.settle();
    assertEquals([children, handled], [2, ['next 1']]);
    assertEquals(env.logsAt('error').length, 1, 'one failure, not one for each restart');
  });

  test('behaviours, timers, watches and the receive timeout end with the instance', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const other = system.spawn(acting(() => {}), 'other');
    let first = true;
    const ref = system.spawn(
      () =>
        new (class extends Actor<string> {
          override preStart(): void {
            if (!first) return;
            first = false;
            this.context.timers.startFixedRate('t', 'tick', 10);
            this.context.setReceiveTimeout(10, 'idle');
            this.context.watch(other);
            this.context.become((message) => {
              if (message === 'fail') throw new Error('x');
              seen.push(`became ${message}`);
            });
          }
          override onReceive(message: string): void {
            seen.push(message);
          }
          override onTerminated(): void {
            seen.push('terminated');
          }
        })(),
      'a',
    );
    ref.tell('1');
    ref.tell('fail');
    ref.tell('2');
    env.runTurns();
    other.stop();
    env.advance(1_000);
    assertEquals(seen, ['became 1', '2']);
    assertEquals(env.timerCount, 0);
  });

  test('the context of the old instance acts no more', () => {
    const { env, system } = fixture();
    const contexts: ActorContext<unknown>[] = [];
    const source = () =>
      new (class extends Actor<unknown> {
        override preStart(): void {
          contexts.push(this.context);
        }
        override onReceive(): void {
          throw new Error('x');
        }
      })();
    const ref = system.spawn(source, 'a');
    ref.tell('fail');
    env.runTurns();
    const [old, present] = contexts;
    assertThrows(() => old?.spawn(acting(() => {}), 'x'), ActorStoppedError, '/user/a');
    assertThrows(() => old?.timers.startSingle('t', 1, 1), ActorStoppedError);
    old?.stopSelf();
    env.runTurns();
    assertEquals(present?.self === ref && system.resolve('/user/a') === ref, true);
    present?.spawn(acting(() => {}), 'x');
  });

  test('a preRestart that throws is logged, and the restart goes on', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const source = recording(events, {
      preRestart: () => {
        throw new Error('preRestart');
      },
    });
    const ref = system.spawn(source, 'a');
    ref.tell(new Error('x'));
    ref.tell('next');
    env.runTurns();
    assertEquals(events.at(-1), 'next');
    assertEquals(env.logsAt('error').length, 2);
  });

  test('the back-off is waited for, with the messages kept, and a stop cuts it short', () => {
    const supervisor = SupervisorStrategy.oneForOne({ backoff: { minMs: 1_000, maxMs: 8_000, jitter: 0 } });
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged(system, 'a', recording(events), { supervisor, hooks: tracing(events) });
    ref.tell(new Error('x'));
    ref.tell('kept');
    env.advance(999);
    assertEquals(events.at(-1), 'postStop');
    env.advance(1);
    assertEquals(events.at(-1), 'kept');
    ref.tell(new Error('y'));
    env.advance(1_999);
    assertEquals(events.at(-1), 'postStop');
    ref.stop();
    env.runTurns();
    assertEquals(events.at(-1), 'hook terminated stop');
    assertEquals(env.timerCount, 0);
  });

  test('a stop that comes while an old instance takes its time ends the actor after it', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const end = deferred();
    const ref = spawnManaged(system, 'a', recording(events, { postStop: () => end.promise }), {
      hooks: tracing(events),
    });
    ref.tell(new Error('x'));
    await env.settle();
    ref.stop();
    await env.settle();
    assertEquals(events.at(-1), 'postStop');
    end.resolve();
    await env.settle();
    assertEquals(events.slice(-2), ['postStop', 'hook terminated stop']);
  });
});
