import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { Actor, ActorAlreadyExistsError, ActorNameError, ActorStoppedError } from '../../src/mod.ts';
import { acting, deferred, fixture, recording } from './system_fixture.ts';

describe('children', () => {
  test('a name can be taken once, and again after its actor has ended', async () => {
    const { env, system } = fixture();
    const end = deferred();
    const ref = system.spawn(recording([], { postStop: () => end.promise }), 'a');
    assertThrows(() => system.spawn(acting(() => {}), 'a'), ActorAlreadyExistsError, '/user/a');
    await env.settle();
    ref.stop();
    await env.settle();
    const error = assertThrows(() => system.spawn(acting(() => {}), 'a'), ActorAlreadyExistsError, 'still stopping');
    assertEquals(error.path, '/user/a');
    end.resolve();
    await env.settle();
    assertEquals(system.spawn(acting(() => {}), 'a').path, '/user/a');
  });

  test('R13: names are checked', () => {
    const { system } = fixture();
    for (const name of ['', 'a/b', '$1', '..', 'a\u0000']) {
      assertThrows(() => system.spawn(acting(() => {}), name), ActorNameError);
    }
  });

  test('generated names never clash with those of users', () => {
    const { system } = fixture();
    const paths = Array.from({ length: 50 }, () => system.spawnAnonymous(acting(() => {})).path);
    assertEquals(new Set(paths).size, 50);
    assertEquals(paths.every((path) => path.startsWith('/user/$')), true);
  });

  test('one that is stopping or being replaced spawns nobody', () => {
    const { env, system } = fixture();
    const errors: unknown[] = [];
    const attempt = (actor: Actor<any>): void => {
      try {
        actor.context.spawn(acting(() => {}), 'child');
        errors.push('spawned');
      } catch (error) {
        errors.push((error as Error).constructor);
      }
    };
    const ref = system.spawn(
      () =>
        new (class extends Actor<string> {
          override onReceive(): void {
            throw new Error('x');
          }
          override preRestart(): void {
            attempt(this);
          }
          override postRestart(): void {
            attempt(this);
          }
          override postStop(): void {
            attempt(this);
          }
        })(),
      'a',
    );
    ref.tell('fail');
    env.runTurns();
    ref.stop();
    env.runTurns();
    assertEquals(errors, [ActorStoppedError, 'spawned', ActorStoppedError]);
  });

  test('a deep family is found by its path, and stops from the bottom up', () => {
    const { env, system } = fixture();
    const order: string[] = [];
    const level = (depth: number): () => Actor<unknown> => () =>
      new (class extends Actor<unknown> {
        override preStart(): void {
          if (depth > 0) this.context.spawn(level(depth - 1), 'c');
        }
        override onReceive(): void {}
        override postStop(): void {
          order.push(this.context.self.path);
        }
      })();
    const top = system.spawn(level(3), 'c');
    env.runTurns();
    assertEquals(system.resolve('/user/c/c/c/c')?.path, '/user/c/c/c/c');
    assertEquals(system.resolve('/user/c/c/c/c/c'), undefined);
    top.stop();
    env.runTurns();
    assertEquals(order, ['/user/c/c/c/c', '/user/c/c/c', '/user/c/c', '/user/c']);
  });
});
