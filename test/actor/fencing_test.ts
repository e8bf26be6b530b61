/** Ending an actor by force, and taking its right to act away. */
import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf } from '@std/assert';
import { Actor, FencedError } from '../../src/mod.ts';
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

describe('kill', () => {
  test('abandons a handler that never settles, frees the name and gives the queue up', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const never = deferred();
    const source = () =>
      new (class extends Actor<string> {
        override async onReceive(message: string): Promise<void> {
          const { context } = this;
          const { sender } = context;
          events.push(message);
          await never.promise;
          for (
            const attempt of [
              () => sender.tell('reply'),
              () => context.sender.tell('reply'),
              () => context.spawn(acting(() => {}), 'child'),
              () => other.tell('x', context.self),
              () => context.timers.startSingle('t', 'x', 1),
              () => context.fence(),
            ]
          ) {
            try {
              attempt();
              events.push('went through');
            } catch (error) {
              events.push((error as Error).name);
            }
          }
        }
        override postStop(): void {
          events.push('postStop');
        }
      })();
    const other = system.spawn(acting((message) => events.push(`other got ${String(message)}`)), 'other');
    const ref = spawnManaged(system, 'a', source, { hooks: tracing(events), fenced: () => false });
    ref.tell('1', other);
    ref.tell('2');
    await env.settle();
    ref.kill();
    assertEquals(ref.isTerminated, true);
    assertEquals(system.resolve('/system/a'), undefined);
    assertEquals(deadLettersOf(system), ['stopped 2']);
    assertEquals(events, ['hook constructed false', 'hook started', '1', 'hook stopped kill', 'hook terminated kill']);
    never.resolve();
    await env.settle();
    assertEquals(events.slice(5), [
      'FencedError',
      'FencedError',
      'FencedError',
      'FencedError',
      'FencedError',
      'FencedError',
    ]);
    ref.kill();
  });

  test('takes the children with it, without their hooks', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((_message, context) => context.spawn(recording(events), 'child')),
      { hooks: tracing(events) },
    );
    ref.tell('go');
    await env.settle();
    const child = system.resolve('/system/a/child');
    ref.kill();
    await env.settle();
    assertEquals(events.includes('postStop'), false);
    child?.tell('x');
    assertEquals(deadLettersOf(system), ['terminated x']);
  });

  test('an actor may kill itself in its own handler', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message) => {
        events.push(message);
        ref.kill();
        throw new Error('after the kill');
      }),
      { hooks: { ...tracing(events), settled: () => events.push('settled') } },
    );
    ref.deliver('1', undefined, 1);
    ref.tell('2');
    env.runTurns();
    assertEquals(events, ['hook constructed false', 'hook started', '1', 'hook stopped kill', 'hook terminated kill']);
    assertEquals(env.logsAt('error').length, 0);
  });

  test('an actor that stops too slowly can still be killed', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const source = recording(events, { postStop: () => new Promise(() => {}) });
    const ref = spawnManaged(system, 'a', source, { hooks: tracing(events) });
    await env.settle();
    ref.stop();
    await env.elapse(60_000);
    assertEquals(events.at(-1), 'postStop');
    ref.kill();
    assertEquals(events.slice(-2), ['hook stopped kill', 'hook terminated kill']);
  });
});

describe('the fence', () => {
  test('R70: once fenced, telling, replying, asking, spawning and timers throw; before, all work', async () => {
    const { env, system } = fixture();
    const results: string[] = [];
    let fenced = false;
    const other = system.spawn(acting<string>(() => {}), 'other');
    const ref = spawnManaged<string>(
      system,
      'a',
      acting(async (_message, context) => {
        const sender = context.sender;
        const attempts: readonly (() => unknown)[] = [
          () => other.tell('plain'),
          () => other.tell('named', context.self),
          () => sender.tell('reply'),
          () => context.spawnAnonymous(acting(() => {})),
          () => context.timers.startSingle('t', 'x', 1),
          () => context.become(() => {}),
          () => context.fence(),
        ];
        for (const attempt of attempts) {
          try {
            attempt();
            results.push('done');
          } catch (error) {
            assertInstanceOf(error, FencedError);
            results.push('fenced');
          }
        }
        const asked = await other.ask('question', 1_000).then(() => 'answered', (error) => (error as Error).name);
        results.push(asked);
      }),
      { fenced: () => fenced, epoch: 42 },
    );
    ref.tell('1', other);
    await env.elapse(2_000);
    assertEquals(results, ['done', 'done', 'done', 'done', 'done', 'done', 'done', 'AskTimeoutError']);
    results.length = 0;
    fenced = true;
    ref.tell('2', other);
    await env.elapse(2_000);
    // The behaviour that the first message put on handles nothing.
    assertEquals(results, []);
  });

  test('R70: the fence is looked at when the message is sent, not when the handler began', async () => {
    const { env, system } = fixture();
    const results: string[] = [];
    let fenced = false;
    const sent: unknown[] = [];
    const other = system.spawn(acting<string>((message) => sent.push(message)), 'other');
    const gone = deferred();
    const ref = spawnManaged<string>(
      system,
      'a',
      acting(async (message, context) => {
        const { sender } = context;
        if (message === 'async') await gone.promise;
        else fenced = true;
        const attempts = [() => other.tell('named', context.self), () => sender.tell('reply')];
        if (message === 'sync') attempts.push(() => other.tell('plain'));
        for (const attempt of attempts) {
          try {
            attempt();
            results.push('done');
          } catch (error) {
            results.push((error as Error).name);
          }
        }
      }),
      { fenced: () => fenced },
    );
    ref.tell('async', other);
    await env.settle();
    fenced = true;
    gone.resolve();
    await env.settle();
    fenced = false;
    ref.tell('sync', other);
    await env.settle();
    assertEquals(results, ['FencedError', 'FencedError', 'FencedError', 'FencedError', 'FencedError']);
    assertEquals(sent, []);
    // Another actor's handler is not affected.
    fenced = true;
    system.spawn(acting<string>(() => other.tell('from a free one')), 'free').tell('go');
    await env.settle();
    assertEquals(sent, ['from a free one']);
  });

  test('a receiver that keeps the sender of a fenced actor may reply to it', async () => {
    const { env, system } = fixture();
    let fenced = false;
    const got: unknown[] = [];
    const asker = system.spawn(acting((message) => got.push(message)), 'asker');
    const late = system.spawn(
      acting<string>(async (_message, context) => {
        await Promise.resolve();
        fenced = true;
        context.sender.tell('reply');
      }),
      'late',
    );
    // The fenced actor passes its own sender on.
    const ref = spawnManaged<string>(system, 'a', acting((message, context) => late.tell(message, context.sender)), {
      fenced: () => fenced,
    });
    ref.tell('1', asker);
    await env.settle();
    assertEquals([got, env.logsAt('error')], [['reply'], []]);
  });
});
