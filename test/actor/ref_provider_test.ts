import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { Actor, ActorRef, type TerminationCause } from '../../src/mod.ts';
import { localRefProvider } from '../../src/actor/ref_provider.ts';
import { acting, fixture } from './system_fixture.ts';

class Remote extends ActorRef<unknown> {
  readonly path = '/user/far';
  readonly incarnation = 1;
  override tell(): void {}
  override ask<R>(): Promise<R> {
    return new Promise(() => {});
  }
  override stop(): void {}
}

function watcherOf(events: string[], target: ActorRef<unknown>): () => Actor<string> {
  return () =>
    new (class extends Actor<string> {
      override onReceive(message: string): void {
        if (message === 'watch') this.context.watch(target);
        else this.context.unwatch(target);
      }
      override onTerminated({ ref, cause }: { ref: ActorRef<any>; cause: string }): void {
        events.push(`${ref.path} ${cause}`);
      }
    })();
}

describe('the ref provider', () => {
  test('without a cluster: paths are as they are, and a foreign ref is nobody', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(acting(() => {}), 'a');
    const provider = localRefProvider(system);
    assertEquals([provider.qualify(ref), provider.resolve('/user/a') === ref], ['/user/a', true]);
    const watcher = system.spawn(watcherOf(events, new Remote()), 'watcher');
    watcher.tell('watch');
    env.runTurns();
    assertEquals([events, env.logsAt('warn').length], [['/user/far no-such-actor'], 1]);
  });

  test('FB-134: a provider brings the notice, which is given once, and hears of an unwatch', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const told: ((cause: TerminationCause) => void)[] = [];
    let cancelled = 0;
    system.refProvider = {
      ...system.refProvider,
      watch: (target, watcher, ended) => {
        events.push(`${watcher.path} watches ${target.path}`);
        told.push(ended);
        return () => cancelled += 1;
      },
    };
    const watcher = system.spawn(watcherOf(events, new Remote()), 'watcher');
    watcher.tell('watch');
    env.runTurns();
    told[0]?.('unreachable');
    told[0]?.('unreachable');
    env.runTurns();
    assertEquals(events, ['/user/watcher watches /user/far', '/user/far unreachable']);
    assertEquals(cancelled, 0);
    watcher.tell('watch');
    watcher.tell('unwatch');
    env.runTurns();
    told[1]?.('stop');
    env.runTurns();
    assertEquals([cancelled, events.length], [1, 3]);
  });
});
