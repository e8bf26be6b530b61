import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { type Lease, type LeaseGrant, resolveLease } from '../../src/coordination/lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { LeaseKeeper } from '../../src/singleton/lease_keeper.ts';
import type { ManagerEvent } from '../../src/singleton/manager_state.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { FaultyStore } from '../coordination/virtual_bench.ts';

function make(leaseOf: (environment: ManualEnvironment) => Lease, feed: (event: ManagerEvent) => void = () => {}) {
  const environment = new ManualEnvironment();
  const events: ManagerEvent[] = [];
  let released = 0;
  const lease = leaseOf(environment);
  const keeper = new LeaseKeeper('x', lease, 5_000, {
    environment,
    feed: (event) => {
      events.push(event);
      feed(event);
    },
    released: () => released += 1,
  });
  return { environment, events, lease, keeper, released: () => released };
}

/** A lease whose answers the test gives. */
class Scripted implements Lease {
  readonly name = 'x';
  readonly owner = 'a';
  readonly ttlMs = 1_000;
  deadline = -Infinity;
  token = 0;
  retryInMs: number | undefined;
  releases = 0;
  answers: ((grant: LeaseGrant | false | Error) => void)[] = [];
  failRelease = false;
  acquire = () => this.acquireWithToken().then((grant) => grant !== false);
  acquireWithToken(): Promise<LeaseGrant | false> {
    return new Promise((resolve, reject) =>
      this.answers.push((grant) => grant instanceof Error ? reject(grant) : resolve(grant))
    );
  }
  release(): Promise<void> {
    this.releases += 1;
    return this.failRelease ? Promise.reject(new Error('gone')) : Promise.resolve();
  }
  checkAlive = () => this.token > 0;
  onLost = () => () => {};
  abandon(): void {}
}

describe('the keeper of a lease', () => {
  test('tells grant and loss once, and holds under the token only', async () => {
    const store = new MemoryLeaseStore(new ManualEnvironment().clock);
    const bench = make((environment) => new MemoryLease(store, { name: 'x', owner: 'a', ttlMs: 1_000 }, environment));
    const { keeper, environment, events } = bench;
    keeper.acquire();
    assertEquals(keeper.report().state, 'acquiring');
    await environment.settle();
    assertEquals(events, [{ kind: 'lease-granted', token: 1, previous: 0 }]);
    assertEquals([keeper.holds(1), keeper.holds(2)], [true, false]);
    assertEquals([keeper.report().state, keeper.report().token, keeper.report().remainingMs], ['held', 1, 1_000]);
    // A fifth of this short term is left to handlers that have begun.
    environment.jump(799);
    assertEquals([keeper.mayBegin(1), keeper.mayBegin(2)], [true, false]);
    environment.jump(1);
    assertEquals([keeper.mayBegin(1), keeper.holds(1)], [false, true]);
    environment.jump(1_200);
    assert(!keeper.holds(1));
    await environment.settle();
    assertEquals(events.map((event) => event.kind), ['lease-granted', 'lease-lost']);
    keeper.release();
    assert(keeper.releasing);
    await environment.settle();
    assertEquals([keeper.releasing, bench.released(), keeper.report().state], [false, 1, 'free']);
    keeper.acquire();
    await environment.settle();
    assertEquals([keeper.holds(1), keeper.holds(2)], [false, true]);
    keeper.dispose();
    await environment.settle();
    assertEquals([keeper.holds(2), environment.timerCount], [false, 0]);
  });

  test('rule 18: a denial is retried when the term of the other ends, and within the interval', async () => {
    const { keeper, environment, events, lease } = make(() => new Scripted());
    const scripted = lease as Scripted;
    for (const [asked, expected] of [[700, 710], [60_000, 5_000], [undefined, 5_000], [-5, 20]] as const) {
      events.length = 0;
      scripted.retryInMs = asked;
      keeper.acquire();
      scripted.answers.pop()!(false);
      await environment.settle();
      assertEquals(events, [{ kind: 'lease-denied', retryInMs: expected, why: 'another owner has it' }]);
    }
  });

  test('an outage is one line in the log when it begins and one when it is over', async () => {
    const { keeper, environment, events, lease } = make(() => new Scripted());
    const scripted = lease as Scripted;
    for (let tries = 0; tries < 20; tries += 1) {
      keeper.acquire();
      scripted.answers.pop()!(new Error('no route'));
      await environment.settle();
    }
    assertEquals(events.length, 20);
    assertEquals(environment.logsAt('warn').length, 1);
    assertEquals([keeper.report().problem, keeper.report().failed], ['no route', 20]);
    keeper.acquire();
    scripted.answers.pop()!({ token: 3 });
    await environment.settle();
    assertEquals(environment.logsAt('info'), ['singleton x: the lease is granted at last']);
    assertEquals(keeper.report().problem, undefined);
  });

  test('a grant that is of no use is one line in the log, and the reason that is shown, however often it comes', async () => {
    const useless = 'its tokens are too small';
    const { keeper, environment, lease, events } = make(() => new Scripted(), (event) => {
      if (event.kind === 'lease-granted' && event.token < 5) keeper.release(useless);
    });
    const scripted = lease as Scripted;
    for (let token = 1; token <= 6; token += 1) {
      keeper.acquire();
      scripted.answers.pop()!({ token });
      await environment.settle();
      assertEquals(keeper.report().problem, token < 5 ? useless : undefined);
    }
    assertEquals([events.length, scripted.releases], [6, 4]);
    assertEquals(environment.logsAt('warn').length, 1);
    assertEquals(environment.logsAt('info'), ['singleton x: the lease is granted at last']);
  });

  test('from the loss on there is a reason why it is not held, until it is granted anew', async () => {
    const { clock } = new ManualEnvironment();
    const store = new FaultyStore(new MemoryLeaseStore(clock));
    const { keeper, environment } = make((environment) =>
      new StoreLease(store, resolveLease('Lease', { name: 'x', owner: 'a', ttlMs: 1_000 }, 10), environment)
    );
    keeper.acquire();
    await environment.settle();
    assertEquals(keeper.report().problem, undefined);
    store.broken = 'a';
    await environment.elapse(1_100);
    assertStringIncludes(keeper.report().problem ?? '', 'lost: the term ended');
    assertStringIncludes(keeper.report().problem ?? '', 'the backend is broken');
    store.broken = undefined;
    keeper.acquire();
    await environment.settle();
    assertEquals([keeper.report().problem, keeper.report().state], [undefined, 'held']);
  });

  test('R65: a win that comes after the release goes back', async () => {
    const { keeper, environment, events, lease } = make(() => new Scripted());
    const scripted = lease as Scripted;
    keeper.acquire();
    keeper.release();
    scripted.answers.pop()!({ token: 3 });
    await environment.settle();
    assertEquals([scripted.releases, events.length], [2, 0]);
  });

  test('the outcome of an earlier acquire is not taken for the present one', async () => {
    const { keeper, environment, events, lease } = make(() => new Scripted());
    const scripted = lease as Scripted;
    keeper.acquire();
    keeper.release();
    keeper.acquire();
    const [first, second] = scripted.answers;
    first!(new Error('too late'));
    await environment.settle();
    assertEquals(events, []);
    second!({ token: 4, previous: 2 });
    await environment.settle();
    assertEquals(events, [{ kind: 'lease-granted', token: 4, previous: 2 }]);
  });

  test('R76: a failed release is told in the log, and ends', async () => {
    const { keeper, environment, lease, released } = make(() => new Scripted());
    (lease as Scripted).failRelease = true;
    keeper.release();
    await environment.settle();
    assertEquals([keeper.releasing, released()], [false, 1]);
    assertEquals(environment.logsAt('warn').length, 1);
  });
});
