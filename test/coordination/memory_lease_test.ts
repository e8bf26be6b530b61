import { describe, test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { leaseContract } from '../contract/lease_contract.ts';
import { VirtualBench } from './virtual_bench.ts';

leaseContract({
  title: 'memory',
  bench: async () => new VirtualBench(3_000, (environment) => new MemoryLeaseStore(environment.clock)),
});

describe('the memory lease', () => {
  test('grants nothing to others, whatever they call', async () => {
    const environment = new ManualEnvironment();
    const store = new MemoryLeaseStore(environment.clock);
    const { signal } = new AbortController();
    const request = (owner: string) => ({ name: 'x', owner, ttlMs: 1_000, signal });
    assertEquals(await store.acquire(request('a')), { kind: 'granted', token: 1, previous: 0 });
    assertEquals((await store.acquire(request('b'))).kind, 'held');
    await store.release(request('b'));
    assertEquals((await store.renew({ ...request('b'), token: 1 })).kind, 'held');
    assertEquals(store.holderOf('x'), 'a');
    environment.jump(1_000);
    assertEquals(store.holderOf('x'), undefined);
    assertEquals(await store.acquire(request('b')), { kind: 'granted', token: 2, previous: 1 });
    assertEquals((await store.renew({ ...request('a'), token: 1 })).kind, 'held');
  });

  test('R77: missing fields are refused when it is made', () => {
    const store = new MemoryLeaseStore();
    for (const field of ['name', 'owner', 'ttlMs'] as const) {
      const settings = { name: 'x', owner: 'a', ttlMs: 1_000, [field]: undefined };
      assertThrows(() => new MemoryLease(store, settings), OptionsError, `MemoryLease.${field}: is required`);
    }
    const context = { name: 's', owner: 'o', environment: new ManualEnvironment(), driftBound: 0 };
    assertThrows(() => MemoryLease.factory(store, {})(context), OptionsError, 'ttlMs');
    assertThrows(() => MemoryLease.factory(store, { ttlMs: 1 }), OptionsError, 'ttlMs');
  });

  test('a factory names the lease after its singleton', async () => {
    const environment = new ManualEnvironment();
    const store = new MemoryLeaseStore(environment.clock);
    const lease = MemoryLease.factory(store, { ttlMs: 1_000 })({ name: 's', owner: 'o', environment, driftBound: 0 });
    assert(await lease.acquire());
    assertEquals(store.holderOf('s'), 'o');
  });
});
