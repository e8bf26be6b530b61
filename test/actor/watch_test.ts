import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf } from '@std/assert';
import {
  Actor,
  type ActorRef,
  type ActorSystem,
  SupervisorStrategy,
  Terminated,
  type TerminationCause,
} from '../../src/mod.ts';
import { acting, fixture, recording, spawnManaged } from './system_fixture.ts';

type Step = (watcher: Actor<Step>) => unknown;

/** An actor that does what it is told, and writes down its notices. */
function watching(system: ActorSystem, events: string[]): ActorRef<Step> {
  return system.spawn(
    () =>
      new (class extends Actor<Step> {
        override onReceive(step: Step): void {
          step(this);
        }
        override onTerminated(notice: Terminated): void {
          assertInstanceOf(notice, Terminated);
          events.push(`${notice.ref.path} ${notice.cause}`);
        }
      })(),
    'watcher',
  );
}

describe('death watch', () => {
  const ends: readonly (readonly [TerminationCause, (ref: ActorRef<any>) => void])[] = [
    ['stop', (ref) => ref.stop()],
    ['self', (ref) => ref.tell('self')],
    ['failure', (ref) => ref.tell(new Error('x'))],
    ['kill', (ref) => (ref as ReturnType<typeof spawnManaged>).kill()],
  ];
  for (const [cause, end] of ends) {
    for (const early of [true, false]) {
      test(`FB-134: exactly one notice, cause '${cause}', watched ${early ? 'before' : 'after'} the end`, async () => {
        const { env, system } = fixture();
        const events: string[] = [];
        const watcher = watching(system, events);
        const target = spawnManaged<unknown>(
          system,
          'target',
          acting((message, context) => {
            if (message instanceof Error) throw message;
            context.stopSelf();
          }),
          { supervisor: SupervisorStrategy.oneForOne({ decider: () => 'stop' }) },
        );
        await env.settle();
        const watch = () => watcher.tell((actor) => actor.context.watch(target));
        if (early) watch();
        await env.settle();
        end(target);
        await env.settle();
        if (!early) watch();
        await env.settle();
        assertEquals(events, [`/system/target ${cause}`]);
      });
    }
  }

  test('a restart is no end', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const target = system.spawn(recording([]), 'target');
    watching(system, events).tell((actor) => actor.context.watch(target));
    env.runTurns();
    target.tell(new Error('x'));
    env.runTurns();
    assertEquals(events, []);
  });

  test('the notice comes after everything the other one had sent', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const watcher = watching(system, events);
    const target = system.spawn(
      acting<string>((_message, context) => {
        for (let i = 0; i < 3; i += 1) watcher.tell(() => events.push(`word ${i}`));
        context.stopSelf();
      }),
      'target',
    );
    watcher.tell((actor) => actor.context.watch(target));
    target.tell('go');
    env.runTurns();
    assertEquals(events, ['word 0', 'word 1', 'word 2', '/user/target self']);
  });

  test("watching twice gives one notice, and a message of one's own takes the place of the hook", () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const watcher = watching(system, events);
    const target = system.spawn(recording([]), 'target');
    watcher.tell((actor) => {
      actor.context.watch(target);
      actor.context.watch(target, () => events.push('own message'));
    });
    env.runTurns();
    target.stop();
    env.runTurns();
    assertEquals(events, ['own message']);
  });

  test('unwatch silences it, also when the notice waits in the mailbox already', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const watcher = watching(system, events);
    const [a, b] = ['a', 'b'].map((name) => spawnManaged(system, name, recording([]), {}));
    watcher.tell((actor) => {
      if (a === undefined || b === undefined) return;
      actor.context.watch(a);
      actor.context.watch(b);
      actor.context.unwatch(a);
    });
    env.runTurns();
    a?.kill();
    watcher.tell((actor) => {
      b?.kill();
      if (b !== undefined) actor.context.unwatch(b);
    });
    env.runTurns();
    assertEquals(events, []);
  });

  test('a later actor under the same name is another one', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const watcher = watching(system, events);
    const first = system.spawn(recording([]), 'target');
    env.runTurns();
    first.stop();
    env.runTurns();
    const second = system.spawn(recording([]), 'target');
    watcher.tell((actor) => actor.context.watch(first));
    env.runTurns();
    assertEquals([events, first.equals(second), first.path === second.path], [['/user/target stop'], false, true]);
    watcher.tell((actor) => actor.context.watch(second));
    env.runTurns();
    assertEquals(events.length, 1);
    second.stop();
    env.runTurns();
    assertEquals(events.length, 2);
  });

  test('FB-133: a watch leaves nothing behind at either end', () => {
    const { env, system } = fixture();
    const target = spawnManaged(system, 'target', recording([]), {});
    env.runTurns();
    const watchers = (): number =>
      (target as unknown as { cell: { seldom: { endListeners: Set<unknown> } } }).cell.seldom.endListeners.size;
    for (let i = 0; i < 100; i += 1) {
      const watcher = watching(system, []);
      watcher.tell((actor) => actor.context.watch(target));
      if (i % 2 === 0) watcher.tell((actor) => actor.context.unwatch(target));
      env.runTurns();
      watcher.stop();
      env.runTurns();
    }
    assertEquals(watchers(), 0);
  });

  test('an ended watcher gets nothing, and no dead letter comes of it', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const watcher = watching(system, events);
    const target = spawnManaged(system, 'target', recording([]), {});
    watcher.tell((actor) => actor.context.watch(target));
    env.runTurns();
    target.kill();
    watcher.stop();
    env.runTurns();
    assertEquals([events, system.deadLetters.count], [[], 0]);
  });
});
