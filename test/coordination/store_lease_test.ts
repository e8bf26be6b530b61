import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects } from '@std/assert';
import type { Environment } from '../../src/actor/environment.ts';
import { LeaseError, resolveLease } from '../../src/coordination/lease.ts';
import { MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { VirtualBench } from './virtual_bench.ts';

const memory = () => new VirtualBench(3_000, ({ clock }) => new MemoryLeaseStore(clock));

async function held(bench: VirtualBench, owner = 'a'): Promise<StoreLease> {
  const lease = bench.open('x', owner);
  assert(await bench.settle(lease.acquire()));
  return lease;
}

describe('a lease over a store', () => {
  test('R75: handlers are isolated from each other, and unregister works', async () => {
    const bench = memory();
    const lease = await held(bench);
    const told: string[] = [];
    lease.onLost(() => {
      throw new Error('careless');
    });
    const cancel = lease.onLost(() => told.push('cancelled'));
    lease.onLost((reason) => told.push(reason));
    cancel();
    cancel();
    bench.environment.jump(3_000);
    assert(!lease.checkAlive());
    assertEquals(told, [], 'not from within the check');
    await bench.environment.settle();
    assertEquals(told, ['the term ended before a renewal was confirmed']);
    assert(bench.environment.logsAt('error').some((line) => line.includes('handler of its loss')));
  });

  test('FB-129: timers that never fire do not keep it alive: whoever looks finds it over, and the loss is told', async () => {
    const bench = memory();
    const lease = await held(bench);
    let losses = 0;
    lease.onLost(() => losses += 1);
    bench.environment.jump(10_000);
    assertEquals([lease.checkAlive(), lease.token, lease.deadline], [false, 0, -Infinity]);
    bench.environment.runTurns();
    assertEquals(losses, 1);
  });

  test('a process that stands still between the readings of its two clocks loses nothing, and is held at every look', async () => {
    const bench = memory();
    const { clock } = bench.environment;
    let standsFor = 0;
    const torn = {
      now: () => clock.now(),
      wall: () => {
        const ms = standsFor;
        standsFor = 0;
        if (ms > 0) bench.environment.jump(ms);
        return clock.wall();
      },
    };
    const environment = Object.create(bench.environment, { clock: { value: torn } }) as Environment;
    const store = new MemoryLeaseStore(clock);
    const lease = new StoreLease(
      store,
      resolveLease('Lease', { name: 'x', owner: 'a', ttlMs: 3_000 }, 10),
      environment,
    );
    const losses: string[] = [];
    lease.onLost((why) => losses.push(why));
    standsFor = 90;
    assert(await bench.settle(lease.acquire()));
    for (let look = 0; look < 50; look += 1) {
      standsFor = 90;
      assert(lease.checkAlive(), `look ${look}`);
      standsFor = look % 2 === 0 ? 90 : 0;
      await bench.elapse(200);
    }
    assertEquals(losses, []);
  });

  test('FB-130: a jump of ten minutes brings one request, not many', async () => {
    const bench = memory();
    const lease = await held(bench);
    bench.faults.calls.length = 0;
    bench.environment.jump(600_000);
    await bench.elapse(1_000);
    assert(!lease.checkAlive());
    assertEquals(bench.faults.calls, []);
    assert(await bench.settle(lease.acquire()));
    assertEquals(lease.token, 2);
  });

  test('many callers share one request', async () => {
    const bench = memory();
    const lease = bench.open('x', 'a');
    const grants = await bench.settle(
      Promise.all([lease.acquireWithToken(), lease.acquireWithToken(), lease.acquire()]),
    );
    assertEquals(grants, [{ token: 1, previous: 0 }, { token: 1, previous: 0 }, true]);
    assertEquals(bench.faults.calls, ['a acquire']);
    await bench.settle(Promise.all([lease.release(), lease.release()]));
    assertEquals(bench.faults.calls, ['a acquire', 'a release']);
  });

  test('no answer counts as an error after requestTimeoutMs', async () => {
    const bench = memory();
    bench.muteFor('a');
    const lease = bench.open('x', 'a', { requestTimeoutMs: 200 });
    const failed = assertRejects(() => lease.acquire(), LeaseError, 'no answer within 200 ms');
    await bench.elapse(200);
    await failed;
    assertEquals(bench.now(), 200);
  });

  test('FB-038: a slow backend without contenders costs nothing: no overlap, no loss', async () => {
    const bench = memory();
    const lease = bench.open('x', 'a', { ttlMs: 10_000, renewalIntervalMs: 3_000 });
    let losses = 0;
    lease.onLost(() => losses += 1);
    assert(await bench.settle(lease.acquire()));
    let inFlight = 0;
    let most = 0;
    const renew = bench.faults.renew.bind(bench.faults);
    bench.faults.renew = async (request) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise<void>((resolve) => bench.environment.timers.set(4_000, resolve));
      inFlight -= 1;
      return renew(request);
    };
    await bench.elapse(60_000);
    assert(lease.checkAlive());
    assertEquals([losses, most], [0, 1]);
  });

  test('abandoned while acquiring: rejected, and what comes later changes nothing', async () => {
    const bench = memory();
    const lease = bench.open('x', 'a');
    const failed = assertRejects(() => lease.acquire(), LeaseError, 'abandoned');
    lease.abandon();
    await bench.elapse(10);
    await failed;
    assert(!lease.checkAlive());
    assertEquals(bench.environment.timerCount, 0);
  });
});
