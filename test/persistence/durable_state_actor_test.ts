import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertMatch, assertRejects } from '@std/assert';
import { ActorFailed, ActorSystem, ActorUsageError } from '../../src/mod.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import {
  DurableStateActor,
  DurableStateConcurrencyError,
  MemoryDurableStateStore,
  type Schema,
  StorageError,
  usePersistence,
} from '../../src/persistence/mod.ts';
import { writerOf } from '../contract/journal_contract.ts';

type Command = { run: (actor: Settings) => void | Promise<void> };
interface State {
  readonly theme: string;
}

class Settings extends DurableStateActor<Command, State> {
  readonly persistenceId = 'settings';
  override emptyState(): State {
    return { theme: 'plain' };
  }
  override onCommand(_state: State, command: Command): void | Promise<void> {
    return command.run(this);
  }
}

function world(store = new MemoryDurableStateStore()) {
  const env = new ManualEnvironment();
  const system = ActorSystem.create('app', { environment: env });
  usePersistence(system, { durableState: store });
  const failures: unknown[] = [];
  system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
  const spawn = (source: () => Settings = () => new Settings(), name = 'settings') => {
    const ref = system.spawn<Command>(source, name);
    return async <T>(run: (actor: Settings) => T | Promise<T>): Promise<T> => {
      let outcome: PromiseSettledResult<T> | undefined;
      ref.tell({
        run: async (actor) => {
          [outcome] = await Promise.allSettled([(async () => run(actor))()]);
        },
      });
      for (let round = 0; outcome === undefined && round < 1_000; round += 1) await env.settle();
      if (outcome === undefined) throw new Error('not handled');
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    };
  };
  return { env, system, store, failures, spawn };
}

describe('durable state actor', () => {
  test('R134: state and revision, replaced as a whole, and back after a restart', async () => {
    const first = world();
    const run = first.spawn();
    assertEquals(await run((actor) => [actor.state.theme, actor.revision]), ['plain', 0]);
    await run(async (actor) => {
      await actor.persist({ theme: 'dark' });
      assertEquals([actor.state.theme, actor.revision], ['dark', 1]);
    });
    await run((actor) => actor.persist({ theme: 'light' }));
    const again = world(first.store).spawn();
    assertEquals(await again((actor) => [actor.state.theme, actor.revision]), ['light', 2]);
  });

  test('R134: a write of somebody else stops the actor', async () => {
    const { store, env, system, failures, spawn } = world();
    const run = spawn();
    await run((actor) => actor.persist({ theme: 'dark' }));
    const save = store.save.bind(store);
    store.save = (id, revision, state, writer) => save(id, revision - 1, state, writer);
    await assertRejects(() => run((actor) => actor.persist({ theme: 'x' })), DurableStateConcurrencyError);
    await env.settle();
    assertInstanceOf(failures[0], DurableStateConcurrencyError);
    assertEquals(system.resolve('/user/settings'), undefined);
  });

  test('S5: an actor that has been replaced is fenced', async () => {
    const { system, env, spawn } = world();
    const old = spawn();
    await old((actor) => actor.persist({ theme: 'old' }));
    const fresh = spawn(() => new Settings(), 'fresh');
    assertEquals(await fresh((actor) => actor.state.theme), 'old');
    await assertRejects(() => old((actor) => actor.persist({ theme: 'late' })));
    await env.settle();
    assertEquals(system.resolve('/user/settings'), undefined);
    await fresh((actor) => actor.persist({ theme: 'new' }));
  });

  test('a failed write fails the command, awaited or not, and the state stays what was acknowledged', async () => {
    const { store, env, failures, spawn } = world();
    const run = spawn();
    await run((actor) => actor.persist({ theme: 'dark' }));
    const { save } = store;
    store.save = () => Promise.reject(new StorageError('disk full'));
    await run((actor) => {
      actor.persist({ theme: 'lost' });
    });
    await env.settle();
    store.save = save;
    assertInstanceOf(failures[0], StorageError);
    assertEquals(await run((actor) => actor.state.theme), 'dark');
    await run((actor) => actor.persist({ theme: 'fine' }));
  });

  test('two writes at once are refused, and what cannot be encoded is not written', async () => {
    const { store, spawn } = world();
    const run = spawn();
    await assertRejects(
      () =>
        run((actor) => {
          actor.persist({ theme: 'a' });
          return actor.persist({ theme: 'b' });
        }),
      ActorUsageError,
      'await each persist',
    );
    await assertRejects(() => run((actor) => actor.persist({ theme: 'f', f: () => {} } as State)), Error, 'function');
    assertEquals((await store.load('settings'))?.value, { theme: 'a' });
  });

  test('old versions are read through the schema', async () => {
    class Evolved extends Settings {
      override stateSchema(): Schema<State> {
        return {
          version: 1,
          write: (state) => state.theme,
          read: (stored, version) => ({ theme: version === 0 ? `old ${stored}` : stored as string }),
        };
      }
    }
    const store = new MemoryDurableStateStore();
    const { writer } = await store.claim('settings', writerOf(1));
    await store.save('settings', 0, { value: 'blue' }, writer);
    const run = world(store).spawn(() => new Evolved());
    assertEquals(await run((actor) => actor.state.theme), 'old blue');
    await run((actor) => actor.persist({ theme: 'green' }));
    assertEquals((await store.load('settings'))?.value, 'green');

    // An older program does not know what that is.
    const old = world(store);
    old.spawn();
    for (let round = 0; old.failures.length === 0 && round < 1_000; round += 1) await old.env.settle();
    assertMatch(
      String(old.failures[0]),
      /'settings' cannot recover: its state of revision 2 \(schema version 1\).*none above 0/,
    );
  });

  test('without a store the error says so', async () => {
    const { system, env, failures, spawn } = world();
    usePersistence(system, {});
    spawn();
    await env.settle();
    assertMatch(String(failures[0]), /no durable-state store/);
  });
});
