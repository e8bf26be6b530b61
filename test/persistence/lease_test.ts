import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf, assertMatch } from '@std/assert';
import { ActorFailed, FencedError } from '../../src/mod.ts';
import type { Lease, LeaseGrant } from '../../src/coordination/lease.ts';
import { collect } from '../contract/journal_contract.ts';
import { Account, World } from './account_fixture.ts';

/** One lease that several owners want; a test takes it away by hand. */
class Backend {
  holder: string | undefined;
  tokens = 0;
  /** Answers wait for this. */
  answers: Promise<void> = Promise.resolve();
  readonly #lost = new Map<string, ((reason: string) => void)[]>();

  lease(owner: string): Lease {
    const acquireWithToken = async (): Promise<LeaseGrant | false> => {
      await this.answers;
      if (this.holder !== undefined && this.holder !== owner) return false;
      this.holder = owner;
      return { token: this.tokens += 1 };
    };
    return {
      name: 'account',
      owner,
      ttlMs: 1_000,
      deadline: Infinity,
      token: 0,
      retryInMs: undefined,
      acquireWithToken,
      acquire: async () => await acquireWithToken() !== false,
      release: async () => {
        if (this.holder === owner) this.holder = undefined;
      },
      checkAlive: () => this.holder === owner,
      onLost: (handler) => {
        const handlers = this.#lost.get(owner) ?? [];
        this.#lost.set(owner, [...handlers, handler]);
        return () => void this.#lost.set(owner, handlers.filter((one) => one !== handler));
      },
      abandon: () => {},
    };
  }

  take(): void {
    const owner = this.holder ?? '';
    this.holder = 'somebody else';
    for (const handler of this.#lost.get(owner) ?? []) handler('taken away');
  }
}

function leased(backend: Backend, owner: string, onLost?: (reason: string) => void) {
  return () =>
    new (class extends Account {
      override lease(): Lease {
        return backend.lease(owner);
      }
      override onLeaseLost(reason: string): void {
        if (onLost === undefined) super.onLeaseLost(reason);
        else onLost(reason);
      }
    })();
}

describe('R128: a lease for a persistent actor', () => {
  test('is acquired before recovery, gives the epoch, and is given up at the end', async () => {
    const backend = new Backend();
    const world = new World();
    const account = world.spawn('a', leased(backend, 'a'));
    assertEquals(await account.add(1), { total: 1, count: 1 });
    assertEquals(await account.run((actor) => actor.isLeaseHolder), true);
    const [event] = await collect(world.journal.read('account'));
    assertEquals([event?.epoch, event?.uid], [1, 'a']);
    account.ref.stop();
    await world.env.settle();
    assertEquals(backend.holder, undefined);
  });

  test('who does not get it can be read, and cannot persist; the holder goes on', async () => {
    const backend = new Backend();
    const world = new World();
    const holder = world.spawn('a', leased(backend, 'a'));
    await holder.add(1);
    const other = world.spawn('b', leased(backend, 'b'));
    assertEquals(await other.get(), { total: 1, count: 1 });
    const error = await other.run((actor) => {
      assertEquals(actor.isLeaseHolder, false);
      try {
        actor.persist({ amount: 1 });
        return undefined;
      } catch (thrown) {
        return thrown;
      }
    });
    assertInstanceOf(error, FencedError);
    assertMatch(String(error), /does not hold its lease/);
    assertEquals(await holder.add(2), { total: 3, count: 2 });
  });

  test('its loss stops the actor by default, and a kill gives it up too', async () => {
    const backend = new Backend();
    const world = new World();
    const account = world.spawn('a', leased(backend, 'a'));
    await account.add(1);
    backend.take();
    await world.env.settle();
    assertEquals(world.system.resolve('/user/a'), undefined);

    backend.holder = undefined;
    const ref = world.system.spawnSystem(['c'], leased(backend, 'c'), {});
    await world.env.settle();
    assertEquals(backend.holder, 'c');
    ref.kill();
    await world.env.settle();
    assertEquals(backend.holder, undefined);
  });

  test('killed before the answer has come: what is granted then is given up, since nobody would', async () => {
    const backend = new Backend();
    const world = new World();
    let answer = (): void => {};
    backend.answers = new Promise((resolve) => answer = resolve);
    const ref = world.system.spawnSystem(['a'], leased(backend, 'a'), {});
    await world.env.settle();
    ref.kill();
    await world.env.settle();
    answer();
    await world.env.settle();
    assertEquals([backend.tokens, backend.holder], [1, undefined]);
  });

  test('its loss can be handled otherwise, and nothing is persisted any more', async () => {
    const backend = new Backend();
    const world = new World();
    const lost: string[] = [];
    const failures: unknown[] = [];
    world.system.eventStream.subscribe(ActorFailed, (failure) => failures.push(failure.error));
    const account = world.spawn('a', leased(backend, 'a', (reason) => lost.push(reason)));
    await account.add(1);
    backend.take();
    assertEquals(lost, ['taken away']);
    assertEquals(await account.get(), { total: 1, count: 1 });
    account.ref.tell({ kind: 'add', amounts: [1] });
    await world.env.settle();
    assertInstanceOf(failures[0], FencedError);
    assertEquals(await world.journal.highestSeq('account'), 1);
  });
});
