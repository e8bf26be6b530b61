import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { Actor, type ActorRef, ActorUsageError, NoClusterError } from '../../src/mod.ts';
import { isActorClass } from '../../src/actor/actor.ts';
import { fixture } from './system_fixture.ts';

type Command = { readonly kind: 'add'; readonly by: number } | { readonly kind: 'get' };

class Counter extends Actor<Command> {
  private count: number;
  readonly bornAs: string = this.context.self.path;

  constructor(start = 0) {
    super();
    this.count = start;
  }

  override onReceive(message: Command): void {
    switch (message.kind) {
      case 'add':
        this.count += message.by;
        return;
      case 'get':
        this.context.sender.tell([this.count, this.bornAs]);
        return;
      default:
        message satisfies never;
    }
  }
}

describe('actors', () => {
  test('are spawned from a class or a factory, and have their context in the constructor', async () => {
    const { env, system } = fixture();
    const plain: ActorRef<Command> = system.spawn(Counter, 'plain');
    const started: ActorRef<Command> = system.spawn(() => new Counter(40), 'started');
    for (const ref of [plain, started]) ref.tell({ kind: 'add', by: 2 });
    const answers = [plain, started].map((ref) => ref.ask<[number, string]>({ kind: 'get' }));
    await env.settle();
    assertEquals(await Promise.all(answers), [[2, '/user/plain'], [42, '/user/started']]);
  });

  test('the types keep messages and actors apart', () => {
    const { env, system } = fixture();
    const ref = system.spawn(Counter, 'a');
    // @ts-expect-error a message of another type
    ref.tell({ kind: 'add' });
    // @ts-expect-error a ref for fewer messages is no ref for more
    const wider: ActorRef<Command | string> = ref;
    const narrower: ActorRef<{ readonly kind: 'get' }> = ref;
    narrower.tell({ kind: 'get' });
    const anything: ActorRef<unknown> = system.noSender;
    anything.tell(5, narrower);
    assertEquals(wider.path, narrower.path);
    env.runTurns();
  });

  test('new outside of spawn gives an actor without context, and the error says why', () => {
    class Plain extends Actor<string> {
      override onReceive(): void {}
    }
    const actor = new Plain();
    assertThrows(() => actor.context, ActorUsageError, 'Plain has no context');
    assertThrows(() => new Counter(), ActorUsageError, 'not by new');
  });

  test('an actor made inside the constructor of another does not take its context over', () => {
    const { env, system } = fixture();
    class Outer extends Actor<string> {
      override onReceive(): void {}
      override preStart(): void {
        this.context.spawn(Counter, 'inner');
        this.log.info('started');
      }
    }
    system.spawn(Outer, 'outer');
    env.runTurns();
    assertEquals(system.resolve('/user/outer/inner') === undefined, false);
    assertEquals(env.logsAt('info'), ['[/user/outer] started']);
  });

  test('R14: cluster is the extension of that name, or a clear error', () => {
    const { env, system } = fixture();
    const seen: unknown[] = [];
    class Member extends Actor<string> {
      override onReceive(): void {
        try {
          seen.push(this.cluster);
        } catch (error) {
          seen.push(error);
        }
      }
    }
    const ref = system.spawn(Member, 'a');
    ref.tell('x');
    env.runTurns();
    assertEquals(seen[0] instanceof NoClusterError, true);
    assertStringIncludes(String(seen[0]), 'Cluster.join');
    const handle = { singleton: {} };
    system.extensions.set('cluster', handle);
    ref.tell('x');
    env.runTurns();
    assertEquals(seen[1] === handle, true);
  });

  test('something that is neither class nor function is refused', () => {
    const { system } = fixture();
    const spawn = (source: unknown) => () => system.spawn(source as typeof Counter, 'a');
    assertThrows(spawn({}), ActorUsageError, "spawning 'a'");
    assertThrows(spawn(undefined), ActorUsageError);
    assertEquals([isActorClass(Counter), isActorClass(() => new Counter()), isActorClass(Actor as never)], [
      true,
      false,
      false,
    ]);
  });
});
