/** Whole clusters whose splits are decided by a lease. */
import { test } from 'node:test';
import { assertEquals, assertGreater, assertRejects, assertStringIncludes } from '@std/assert';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { QuorumLease } from '../../src/coordination/quorum_lease.ts';
import { LeaseMajority } from '../../src/facade/mod.ts';
import { OptionsError } from '../../src/mod.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { MemoryCluster } from './memory_cluster.ts';

/** The backend fails for everybody while `down` is set. */
function backend(cluster: MemoryCluster) {
  const store = new MemoryLeaseStore(cluster.environment.clock);
  const state = { down: false };
  const acquire = store.acquire.bind(store);
  store.acquire = (request) => state.down ? Promise.reject(new Error('connection refused')) : acquire(request);
  const downing = () => new LeaseMajority({ lease: MemoryLease.factory(store, {}) });
  return { store, state, downing };
}

test('P59, S1: a singleton outlives its host in a cluster of two, and an outage of the backend is told in one place', async () => {
  const cluster = new MemoryCluster();
  const { state, downing } = backend(cluster);
  const journal = new Journal();
  for (let n = 0; n < 2; n += 1) {
    const node = await cluster.join({ downing: downing(), http: true, stableAfterMs: 1_000, rejoin: false });
    node.cluster.singleton.start(counterClass(journal));
  }
  await cluster.until(() => journal.live === 1);
  const [a, b] = cluster.nodes as [MemoryCluster['nodes'][0], MemoryCluster['nodes'][0]];
  const get = async (path: string) => await (await b.cluster.fetch(new Request(`http://node${path}`))).text();
  state.down = true;
  cluster.network.cut(a.address, b.address);
  await cluster.pass(8_500);
  const { ready, reasons } = JSON.parse(await get('/ready')) as { ready: boolean; reasons: string[] };
  assertEquals([ready, reasons], [true, [
    'A split cannot be decided yet: lease test-downing: connection refused.',
  ]]);
  const metrics = await get('/metrics');
  assertStringIncludes(metrics, 'singlet_split_undecided 1');
  assertStringIncludes(metrics, 'singlet_membership_total{what="downing lease failed"}');
  state.down = false;
  await cluster.until(() => journal.lines.length >= 3);
  assertEquals([journal.peak, journal.live], [1, 1]);
  assertEquals(journal.lines.at(-1), `start ${b.address}`);
  assertStringIncludes(await get('/metrics'), 'singlet_split_undecided 0');
  const warned = cluster.environment.logsAt('warn').filter((line) => line.includes('downing lease cannot be asked'));
  assertGreater(3, warned.length, 'one for each node');
});

test('a lease of the members themselves is refused where it is to decide about them', async () => {
  const cluster = new MemoryCluster();
  const downing = new LeaseMajority({ lease: QuorumLease.factory({ ttlMs: 60_000 }) });
  await assertRejects(() => cluster.join({ downing, leaseVoters: ['127.0.0.1:101'] }), OptionsError, 'QuorumLease');
});
