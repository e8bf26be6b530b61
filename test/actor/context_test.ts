import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { type ActorContext, type ActorRef, ActorUsageError } from '../../src/mod.ts';
import { acting, fixture, spawnManaged } from './system_fixture.ts';

/** Runs `step` inside a fresh actor and gives its ref. */
function inside(step: (context: ActorContext<string>, message: string) => unknown) {
  const { env, system } = fixture();
  const ref = system.spawn(acting<string>((message, context) => step(context, message)), 'a');
  return { env, system, ref };
}

describe('context', () => {
  test('knows self, parent, children and system', () => {
    const facts: unknown[] = [];
    const { env, system, ref } = inside((context) => {
      const child = context.spawn(acting(() => {}), 'child');
      const other = context.spawnAnonymous(acting(() => {}));
      facts.push(context.self.path, context.parent.path, context.children.map((one) => one.path));
      facts.push(context.child('child') === child, context.child('none'), context.system === system);
      facts.push(other.path, context.epoch, context.fence());
    });
    ref.tell('x');
    env.runTurns();
    const children = ['/user/a/child', '/user/a/$1'];
    assertEquals(facts, ['/user/a', '/user', children, true, undefined, true, '/user/a/$1', 0, 0]);
    assertEquals(env.logsAt('error'), []);
  });

  test('the epoch is the one given', () => {
    const { env, system } = fixture();
    const epochs: number[] = [];
    const source = acting<string>((_message, context) => epochs.push(context.epoch, context.fence()));
    spawnManaged(system, 'a', source, { epoch: 7 }).tell('x');
    env.runTurns();
    assertEquals(epochs, [7, 7]);
  });

  test('hasSender tells whether there is one', () => {
    const seen: unknown[] = [];
    const { env, system, ref } = inside((context) => seen.push(context.hasSender, context.sender.path));
    ref.tell('x');
    ref.tell('x', system.noSender);
    ref.tell('x', ref);
    env.runTurns();
    assertEquals(seen, [false, '/deadLetters', false, '/deadLetters', true, '/user/a']);
  });

  test('stop ends a child, another actor, and oneself with cause self', () => {
    const { env, system } = fixture();
    const causes: string[] = [];
    const other = spawnManaged(system, 'other', acting(() => {}), {});
    other.onTermination((cause) => causes.push(`other ${cause}`));
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message, context) => {
        if (message === 'self') context.stop(context.self);
        else context.stop(other);
      }),
      {},
    );
    ref.onTermination((cause) => causes.push(`a ${cause}`));
    ref.tell('other');
    env.runTurns();
    ref.tell('self');
    env.runTurns();
    assertEquals(causes, ['other stop', 'a self']);
  });

  test('become replaces, or stacks, and unbecome goes back', () => {
    const seen: string[] = [];
    const behavior = (context: ActorContext<string>, name: string) => (message: string): void => {
      seen.push(`${name} ${message}`);
      act(context, message);
    };
    const steps: Record<string, (context: ActorContext<string>) => void> = {
      b: (context) => context.become(behavior(context, 'b')),
      c: (context) => context.become(behavior(context, 'c'), { stacked: true }),
      back: (context) => context.unbecome(),
    };
    const act = (context: ActorContext<string>, message: string): void => steps[message]?.(context);
    const { env, ref } = inside((context, message) => {
      seen.push(`a ${message}`);
      act(context, message);
    });
    for (const message of ['b', 'c', 'back', 'b', 'back', 'x', 'back']) ref.tell(message);
    env.runTurns();
    assertEquals(seen, ['a b', 'b c', 'c back', 'b b', 'b back', 'a x', 'a back']);
  });

  test('behaviours on top of each other are bounded; replacing is not', () => {
    let thrown: unknown;
    const { env, ref } = inside((context) => {
      for (let i = 0; i < 1_000; i += 1) context.become(() => {});
      for (let i = 0; i < 99; i += 1) context.become(() => {}, { stacked: true });
      thrown = assertThrows(() => context.become(() => {}, { stacked: true }), ActorUsageError, '100 behaviours');
    });
    ref.tell('x');
    env.runTurns();
    assertEquals(thrown instanceof ActorUsageError, true);
  });

  test('stash is for the message at hand, once', () => {
    let context: ActorContext<string> | undefined;
    const { env, ref } = inside((own) => {
      context = own;
      assertEquals(own.stash(), true);
      assertThrows(() => own.stash(), ActorUsageError, 'no message');
    });
    ref.tell('x');
    env.runTurns();
    assertEquals(env.logsAt('error'), []);
    assertThrows(() => context?.stash(), ActorUsageError, '/user/a');
  });

  test('a sender stays itself for an ordinary actor, and is guarded for one that may be fenced', () => {
    const { env, system } = fixture();
    const seen: boolean[] = [];
    const sender: ActorRef<unknown> = system.spawn(acting(() => {}), 'sender');
    const source = acting<string>((_message, context) => {
      seen.push(context.sender === sender, context.sender.equals(sender), context.sender === context.sender);
    });
    system.spawn(source, 'plain').tell('x', sender);
    spawnManaged(system, 'guarded', source, { fenced: () => false }).tell('x', sender);
    env.runTurns();
    assertEquals(seen, [true, true, true, false, true, true]);
  });
});
