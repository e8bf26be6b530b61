/** Leases over HTTP, with the runtime's own `fetch` and on the real clock, when what answers is not what it should be. */
import { test } from 'node:test';
import { assert, assertEquals, assertLess, assertRejects } from '@std/assert';
import { consoleLogger } from '../../src/actor/logger.ts';
import { realEnvironment } from '../../src/actor/real_environment.ts';
import { encode } from '../../src/coordination/etcd_gateway.ts';
import { EtcdLease } from '../../src/coordination/etcd_lease.ts';
import type { HttpMeans } from '../../src/coordination/http_means.ts';
import { KubernetesLease } from '../../src/coordination/kubernetes_lease.ts';
import { type Lease, LeaseError } from '../../src/coordination/lease.ts';
import { FakeKubernetes } from './fake_kubernetes.ts';
import { answer, type Call, HostileServer, hostilities } from './hostile_server.ts';

const environment = realEnvironment(consoleLogger('off'));
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const settings = { name: 'x', owner: 'a#1', ttlMs: 20_000, renewalIntervalMs: 300, requestTimeoutMs: 500 };

/** Enough of etcd for one owner. */
function goodEtcd(): HostileServer['behave'] {
  const header = { cluster_id: '1', revision: '7' };
  let kvs: object[] = [];
  return (socket, { path }) => {
    if (path === '/v3/kv/txn') kvs = [{ value: encode('a#1'), mod_revision: '7', lease: '42' }];
    const body: Record<string, object> = {
      '/v3/kv/range': { kvs },
      '/v3/lease/grant': { ID: '42', TTL: '20' },
      '/v3/kv/txn': { succeeded: true, responses: [] },
      '/v3/lease/keepalive': { result: { header, ID: '42', TTL: '20' } },
    };
    answer(socket, 200, JSON.stringify({ header, ...body[path] }));
  };
}

/** The fake API behind a real socket. */
function goodKubernetes(): HostileServer['behave'] {
  const fake = new FakeKubernetes();
  return (socket, { method, path, body }) => {
    const init = { method, headers: { authorization: 'Bearer token-1' }, ...(body === '' ? {} : { body }) };
    void fake.fetch(`https://api${path}`, init).then(async (given) => answer(socket, given.status, await given.text()));
  };
}

interface Backend {
  readonly title: string;
  readonly good: () => HostileServer['behave'];
  readonly lease: (url: string) => Lease;
  readonly isRenewal: (call: Call) => boolean;
}

const backends: readonly Backend[] = [
  {
    title: 'etcd',
    good: goodEtcd,
    lease: (url) => new EtcdLease({ ...settings, endpoints: [url] }, environment),
    isRenewal: ({ path }) => path === '/v3/lease/keepalive',
  },
  {
    title: 'Kubernetes',
    good: goodKubernetes,
    isRenewal: ({ method }) => method === 'PUT',
    lease: (url) => {
      const means: HttpMeans = {
        // The API is https only.
        fetch: (address, init) => fetch(address.replace('https://api', url), init),
        readTextFile: () => Promise.reject(new Error('none')),
        environmentVariable: () => undefined,
      };
      const access = { apiServerUrl: 'https://api', authToken: 'token-1', caCert: 'x' };
      return new KubernetesLease({ ...settings, namespace: 'default', ...access, means }, environment);
    },
  },
];

/** One lease through one hostility: it comes while the lease is held, goes, and comes again before the release. */
async function endure(
  { good, lease: open, isRenewal }: Backend,
  hostility: HostileServer['behave'],
): Promise<void> {
  const wellBehaved = good();
  const server = await HostileServer.start(wellBehaved);
  const lease = open(server.url);
  const reasons: string[] = [];
  lease.onLost((why) => reasons.push(why));
  try {
    for (let tries = 0; tries < 20 && !(await lease.acquire().catch(() => false)); tries += 1);
    assert(lease.checkAlive());
    const before = server.calls.length;
    server.behave = hostility;
    const renewals = () => server.calls.slice(before).filter(isRenewal).length;
    for (let tries = 0; tries < 300 && renewals() < 2; tries += 1) await sleep(50);
    await sleep(settings.requestTimeoutMs + 100);
    assertEquals([lease.checkAlive(), reasons], [true, []], 'it is lost');
    assert(renewals() >= 2 && server.calls.length - before < 60, `asked ${server.calls.length - before} times`);
    server.behave = wellBehaved;
    const { deadline } = lease;
    for (let tries = 0; tries < 200 && lease.deadline === deadline; tries += 1) await sleep(50);
    assert(lease.deadline > deadline, 'it is not renewed again');

    server.behave = hostility;
    await assertRejects(() => lease.release(), LeaseError, 'could not be released');
    await assertRejects(() => lease.acquire(), LeaseError, 'lease x: ');
    assertEquals([lease.checkAlive(), lease.token, reasons], [false, 0, []]);
  } finally {
    lease.abandon();
    await server.stop();
  }
  assertLess(server.bytesSent, 64 * 1024 * 1024, 'more is read than may be');
}

for (const backend of backends) {
  test(`FB-040, S7: ${backend.title}: whatever stands in its place, no loss within the term, no grant, clear errors`, async () => {
    const trap = await HostileServer.start((socket) => answer(socket, 200, '{}'));
    const ended = Object.entries(hostilities(trap.url)).map(async ([name, hostility]) => {
      await endure(backend, hostility).catch((cause: unknown) => {
        throw new Error(`something that ${name}: ${String(cause)}`, { cause });
      });
    });
    const failed = (await Promise.allSettled(ended)).flatMap((one) => one.status === 'rejected' ? [one.reason] : []);
    await trap.stop();
    assertEquals(failed.map(String), []);
    assertEquals(trap.calls, [], 'nobody follows to another place');
  });
}
