/** What odd answers and odd owners do to a lease. */
import { test } from 'node:test';
import { assertEquals, assertGreater, assertLess } from '@std/assert';
import { KubernetesLease } from '../../src/coordination/kubernetes_lease.ts';
import { MemoryLease, MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { FakeKubernetes } from './fake_kubernetes.ts';
import { VirtualBench } from './virtual_bench.ts';

const ttlMs = 3_000;

test('FB-009: two processes of one owner: the later tenure has a larger token, and the earlier one is lost', async () => {
  const bench = new VirtualBench(ttlMs, (environment) => new MemoryLeaseStore(environment.clock));
  const [one, two] = [bench.open('x', 'same'), bench.open('x', 'same')];
  const first = await bench.settle(one.acquireWithToken());
  const second = await bench.settle(two.acquireWithToken());
  if (first === false || second === false) throw new Error('an owner is granted what it has');
  assertGreater(second.token, first.token);
  await bench.elapse(ttlMs / 2);
  assertEquals([one.checkAlive(), two.checkAlive()], [false, true]);
});

test('FB-010: the lease in memory: B gets nothing while A holds it, and takes nothing from it', async () => {
  const environment = new ManualEnvironment();
  const store = new MemoryLeaseStore(environment.clock);
  const [a, b] = ['a', 'b'].map((owner) => new MemoryLease(store, { name: 'x', owner, ttlMs }, environment));
  assertEquals(await a!.acquire(), true);
  assertEquals(await b!.acquire(), false);
  await b!.release();
  const { signal } = new AbortController();
  assertEquals((await store.renew({ name: 'x', owner: 'b', ttlMs, token: a!.token, signal })).kind, 'held');
  assertEquals((await store.renew({ name: 'x', owner: 'b', ttlMs, token: a!.token + 1, signal })).kind, 'held');
  assertEquals([store.holderOf('x'), a!.checkAlive(), b!.checkAlive()], ['a', true, false]);
  assertEquals(await b!.acquire(), false);
  await a!.release();
  await b!.release();
});

test('FB-021: an ERROR object, 410 Gone, a cut line and a page of HTML: when the holder dies another has it in time', async () => {
  const environment = new ManualEnvironment();
  const kubernetes = new FakeKubernetes();
  const noise: Response[] = [];
  const means = {
    readTextFile: (path: string) => kubernetes.readTextFile(path),
    environmentVariable: (name: string) => kubernetes.environmentVariable(name),
    fetch: (url: string, init: RequestInit, tls?: { readonly ca?: string }) => {
      const odd = noise.shift();
      return odd === undefined ? kubernetes.fetch(url, init, tls) : Promise.resolve(odd);
    },
  };
  const lease = (owner: string) =>
    new KubernetesLease({ name: 'x', namespace: 'default', owner, ttlMs, means }, environment);
  const [a, b] = [lease('a'), lease('b')];
  const granted = async () => {
    let grant: boolean | undefined;
    b.acquire().then((answer) => grant = answer, () => grant = false);
    for (let waited = 0; grant === undefined && waited < ttlMs; waited += 10) await environment.elapse(10);
    return grant === true;
  };
  const first = a.acquireWithToken();
  await environment.elapse(10);
  const before = await first;
  if (before === false) throw new Error('a is the first');
  assertEquals(await granted(), false);
  a.abandon();
  const diedAt = environment.clock.now();
  noise.push(
    Response.json({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }),
    Response.json({ kind: 'Status', message: 'too old resource version', code: 410 }, { status: 410 }),
    new Response('{"type":"MODIFIED","object":{"kind":"Lea'),
    new Response('<html>gateway</html>', { headers: { 'content-type': 'text/html' } }),
    Response.json({ metadata: { resourceVersion: '' }, spec: null }),
  );
  while (!await granted()) {
    assertLess(environment.clock.now() - diedAt, 4 * ttlMs, 'it never comes back to the lease');
    await environment.elapse(250);
  }
  assertEquals(noise.length, 0);
  assertLess(environment.clock.now() - diedAt, ttlMs + 1_000);
  assertGreater(b.token, before.token);
  b.abandon();
});
