/** Against a fake of the API (see `FakeKubernetes`), on a virtual clock. No real Kubernetes takes part. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLess, assertRejects, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { KubernetesApi } from '../../src/coordination/kubernetes_api.ts';
import { checkAccess, KubernetesCredentials } from '../../src/coordination/kubernetes_credentials.ts';
import { LeaseError } from '../../src/coordination/lease.ts';
import type { HttpMeans } from '../../src/coordination/http_means.ts';
import {
  KubernetesLease,
  KubernetesLeaseStore,
  type KubernetesSettings,
} from '../../src/coordination/kubernetes_lease.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { leaseContract } from '../contract/lease_contract.ts';
import { FakeKubernetes } from './fake_kubernetes.ts';
import { VirtualBench } from './virtual_bench.ts';

class Scene extends VirtualBench {
  readonly kubernetes: FakeKubernetes;
  constructor(ttlMs = 3_000) {
    const kubernetes = new FakeKubernetes();
    super(
      ttlMs,
      (environment) =>
        new KubernetesLeaseStore(new KubernetesApi('default', {}, environment, kubernetes), environment, 60_000),
    );
    this.kubernetes = kubernetes;
  }
  lease(owner: string, settings: Partial<KubernetesSettings> = {}): KubernetesLease {
    return new KubernetesLease(
      { name: 'x', namespace: 'default', owner, ttlMs: this.ttlMs, means: this.kubernetes, ...settings },
      this.environment,
    );
  }
  spec(): Record<string, unknown> {
    return this.kubernetes.objects.get('default/x')!.spec;
  }
  annotation(): unknown {
    return (this.kubernetes.objects.get('default/x')!.metadata['annotations'] as Record<string, string>)[
      'singlet/token'
    ];
  }
}

class PerOwner extends Scene {
  /** Each owner has a store of its own, as on nodes of their own. */
  override open(name: string, owner: string): ReturnType<Scene['open']> {
    const { kubernetes, faults } = this;
    return this.lease(owner, {
      name,
      means: {
        readTextFile: (path) => kubernetes.readTextFile(path),
        environmentVariable: (variable) => kubernetes.environmentVariable(variable),
        fetch: async (url, init, tls) => {
          if (faults.broken === owner) throw new TypeError('connection refused');
          const answer = await kubernetes.fetch(url, init, tls);
          if (faults.muted === owner && init.method !== 'GET') throw new TypeError('connection reset');
          return answer;
        },
      },
    });
  }
}

leaseContract({ title: 'Kubernetes (a fake of its API)', bench: async () => new PerOwner() });

describe('R79 to R83: the Kubernetes lease', () => {
  test('the object it writes', async () => {
    const scene = new Scene();
    const lease = scene.lease('a#1');
    const grant = await scene.settle(lease.acquireWithToken());
    assertEquals(scene.kubernetes.calls.map(({ method, path }) => `${method} ${path}`), [
      'GET /apis/coordination.k8s.io/v1/namespaces/default/leases/x',
      'POST /apis/coordination.k8s.io/v1/namespaces/default/leases',
    ]);
    const { holderIdentity, leaseDurationSeconds, leaseTransitions, acquireTime, renewTime } = scene.spec();
    assertEquals([holderIdentity, leaseDurationSeconds, leaseTransitions], ['a#1', 3, 0]);
    assertEquals([acquireTime, renewTime], ['2023-11-14T22:13:20.000000Z', '2023-11-14T22:13:20.000000Z']);
    assert(grant && String(grant.token) === scene.annotation());
    scene.kubernetes.edit('x', (object) => object.metadata['labels'] = { team: 'ours' });
    await scene.elapse(4_000);
    assert(lease.checkAlive(), 'an edit by somebody else is no loss');
    assertEquals(scene.kubernetes.objects.get('default/x')!.metadata['labels'], { team: 'ours' }, 'and is kept');
    assertEquals(scene.spec()['acquireTime'], acquireTime);
    await scene.settle(lease.release());
    assertEquals([scene.spec()['holderIdentity'], scene.annotation()], ['', String(grant.token)], 'never deleted');
  });

  test('R80: leaseTransitions and token grow with each change of holder', async () => {
    const scene = new Scene();
    let last = 0;
    for (const [at, owner] of ['a', 'b', 'b', 'c'].entries()) {
      const lease = scene.lease(owner);
      const grant = await scene.settle(lease.acquireWithToken());
      assert(grant && grant.token > last);
      if (at > 0) assertEquals(grant.previous, last);
      last = grant.token;
      await scene.settle(lease.release());
    }
    assertEquals(scene.spec()['leaseTransitions'], 3);
  });

  test('R78: where the object was deleted, tokens go on upward', async () => {
    const scene = new Scene();
    const lease = scene.lease('a');
    const first = await scene.settle(lease.acquireWithToken());
    let reason = '';
    lease.onLost((why) => reason = why);
    scene.kubernetes.objects.clear();
    await scene.elapse(1_500);
    assert(reason.includes('tenure is over'));
    const second = await scene.settle(lease.acquireWithToken());
    assert(first && second && second.token > first.token);
  });

  test("R80, FB-045: stale after the other's own duration without a change, whatever its times say and however short one's own term is", async () => {
    const scene = new Scene();
    const long = scene.lease('a', { ttlMs: 60_000 });
    assert(await scene.settle(long.acquire()));
    scene.kubernetes.edit('x', (object) => object.spec['renewTime'] = '1999-01-01T00:00:00.000000Z');
    const short = scene.lease('b', { ttlMs: 5_000 });
    for (let step = 0; step < 20; step += 1) {
      assertEquals(await scene.settle(short.acquire()), false, `at ${step}`);
      await scene.elapse(5_000);
    }
    assert(long.checkAlive());
    assertGreater(short.retryInMs!, 35_000);
    long.abandon();
    const diedAt = scene.now();
    while (!(await scene.settle(short.acquire()))) {
      assertLess(scene.now() - diedAt, 61_000);
      await scene.elapse(Math.min(short.retryInMs ?? 1_000, 5_000));
    }
    assertGreater(scene.now() - diedAt, 35_000);
  });

  test('FB-046: a record with a huge duration and a time far ahead is waited for no longer than maxTermMs', async () => {
    const scene = new Scene();
    const poison = scene.lease('ghost');
    assert(await scene.settle(poison.acquire()));
    poison.abandon();
    scene.kubernetes.edit('x', (object) => {
      object.spec['leaseDurationSeconds'] = 2 ** 31 - 1;
      object.spec['renewTime'] = '2080-01-01T00:00:00.000000Z';
    });
    const lease = scene.lease('a', { maxTermMs: 20_000 });
    assertEquals(await scene.settle(lease.acquire()), false);
    await scene.elapse(19_900);
    assertEquals(await scene.settle(lease.acquire()), false);
    await scene.elapse(200);
    assert(await scene.settle(lease.acquire()));
  });

  test('FB-047: a record of yesterday evening is over after its term, at whatever time of day somebody looks', async () => {
    for (const renewedAt of ['1999-12-31T23:55:00.000000Z', '2100-01-01T23:55:00.000000Z']) {
      const scene = new Scene();
      const dead = scene.lease('dead');
      assert(await scene.settle(dead.acquire()));
      dead.abandon();
      scene.kubernetes.edit('x', (object) => object.spec['renewTime'] = renewedAt);
      for (const owner of ['after twenty minutes', 'the next morning']) {
        const lease = scene.lease(owner);
        assertEquals(await scene.settle(lease.acquire()), false);
        await scene.elapse(scene.ttlMs + 50);
        assert(await scene.settle(lease.acquire()));
        lease.abandon();
        await scene.elapse(7 * 3_600_000);
      }
    }
  });

  test('R79: of two that race one wins; a conflict is looked into again, three times at most', async () => {
    const scene = new Scene();
    const [a, b] = [scene.lease('a'), scene.lease('b')];
    const won = await scene.settle(Promise.all([a.acquire(), b.acquire()]));
    assertEquals(won.filter((one) => one).length, 1);
    const racing = scene.lease('c', { name: 'racing' });
    const { fetch: send } = scene.kubernetes;
    let writes = 0;
    scene.kubernetes.fetch = async (url, init, tls) => {
      if (init.method === 'GET') return send.call(scene.kubernetes, url, init, tls);
      writes += 1;
      return Response.json({}, { status: 409 });
    };
    await assertRejects(() => scene.settle(racing.acquire()), Error, 'kept changing');
    assertEquals(writes, 3);
  });

  test('R81, FB-038: a foreign holder on renewal is a loss; a conflict with a late write of its own is not', async () => {
    const scene = new Scene();
    const lease = scene.lease('a');
    const reasons: string[] = [];
    lease.onLost((why) => reasons.push(why));
    assert(await scene.settle(lease.acquire()));
    // A renewal is applied and its answer never comes.
    let swallowed = 0;
    scene.kubernetes.delay = ({ method }) =>
      method === 'PUT' && swallowed++ === 0 ? new Promise(() => {}) : Promise.resolve();
    await scene.elapse(4_000);
    assertEquals([swallowed > 1, lease.checkAlive(), reasons.length], [true, true, 0]);
    scene.kubernetes.edit('x', (object) => object.spec['holderIdentity'] = 'thief');
    await scene.elapse(1_500);
    assertEquals(reasons, ['thief holds it']);
    await scene.settle(lease.release());
    assertEquals(scene.spec()['holderIdentity'], 'thief', 'R83: what is not its own is not released');
  });

  test('FB-040: one failed renewal of whatever kind is no loss, and Retry-After is heard', async () => {
    for (const failure of [{ status: 500 }, { status: 503 }, { status: 429, headers: { 'retry-after': '1' } }]) {
      const scene = new Scene(9_000);
      const lease = scene.lease('a');
      assert(await scene.settle(lease.acquire()));
      const before = scene.kubernetes.calls.length;
      scene.kubernetes.instead.push(failure);
      await scene.elapse(3_050);
      assertEquals(scene.kubernetes.calls.length, before + 1);
      await scene.elapse(900);
      assertEquals(scene.kubernetes.calls.length, before + (failure.status === 429 ? 1 : 2));
      await scene.elapse(20_000);
      assert(lease.checkAlive());
    }
  });

  test('a namespace that does not exist, and an API that gives another record than was written, are errors', async () => {
    const scene = new Scene();
    const missing = scene.kubernetes.instead;
    missing.push({ status: 404 }, { status: 404 });
    await assertRejects(() => scene.settle(scene.lease('a').acquire()), LeaseError, 'answered 404: injected');
    const { kubernetes } = scene;
    const means: HttpMeans = {
      readTextFile: (path) => kubernetes.readTextFile(path),
      environmentVariable: (name) => kubernetes.environmentVariable(name),
      fetch: async (url, init, tls) => {
        const given = await kubernetes.fetch(url, init, tls);
        if (init.method === 'GET') return given;
        const object = await given.json() as { spec: object };
        return Response.json({ ...object, spec: { ...object.spec, holderIdentity: 'b' } });
      },
    };
    const lease = scene.lease('a', { means });
    await assertRejects(() => scene.settle(lease.acquire()), LeaseError, 'gave another record than was written');
    assert(!lease.checkAlive());
  });

  test('FB-041: a leave during a slow renewal: the release comes after it and succeeds', async () => {
    const scene = new Scene();
    const lease = scene.lease('a');
    assert(await scene.settle(lease.acquire()));
    scene.kubernetes.delay = ({ method }) =>
      method === 'PUT'
        ? new Promise((resolve) => void scene.environment.timers.set(1_000, resolve))
        : Promise.resolve();
    await scene.elapse(1_100);
    const released = lease.release();
    await scene.elapse(2_500);
    await released;
    assert(await scene.settle(scene.lease('b').acquire()));
  });

  test('R82, FB-039: the mounted account: address, authority, and a token that is read again when it is refused', async () => {
    const scene = new Scene();
    const lease = scene.lease('a');
    let losses = 0;
    lease.onLost(() => losses += 1);
    assert(await scene.settle(lease.acquire()));
    assertEquals(new Set(scene.kubernetes.cas), new Set(['the mounted authority']));
    scene.kubernetes.accepted = 'token-2';
    scene.kubernetes.mountedToken = 'token-2';
    await scene.elapse(10_000);
    assert(lease.checkAlive());
    assertEquals([losses, scene.kubernetes.calls.filter(({ token }) => token === 'token-2').length > 5], [0, true]);
  });

  test('R82: access is given whole or not at all', async () => {
    const environment = new ManualEnvironment();
    const kubernetes = new FakeKubernetes();
    const given = { apiServerUrl: 'https://k/', authToken: 't', caCert: 'c' };
    const access = await new KubernetesCredentials(given, kubernetes, environment.clock).access(false);
    assertEquals(access, { url: 'https://k', token: 't', ca: 'c' });
    const mounted = await new KubernetesCredentials({}, kubernetes, environment.clock).access(false);
    assertEquals(mounted, { url: 'https://10.96.0.1:6443', token: 'token-1', ca: 'the mounted authority' });
    assertThrows(
      () => checkAccess('K', { authToken: 't', caCert: 'c' }),
      OptionsError,
      'K.apiServerUrl: must be given',
    );
    kubernetes.environmentVariable = () => undefined;
    await assertRejects(
      () => new KubernetesCredentials({}, kubernetes, environment.clock).access(false),
      Error,
      'not in a pod',
    );
  });

  test('R77, R82: bad settings', () => {
    const good = { name: 'x', namespace: 'default', owner: 'a', ttlMs: 3_000 };
    const bad: [KubernetesSettings, string][] = [
      [{ namespace: undefined as never }, 'KubernetesLease.namespace: is required'],
      [{ name: 'Upper' }, 'KubernetesLease.name: must be a name Kubernetes takes'],
      [{ namespace: 'a.b' }, 'KubernetesLease.namespace: must be'],
      [{ apiServerUrl: 'http://k', authToken: 't', caCert: 'c' }, 'KubernetesLease.apiServerUrl: must be an https URL'],
      [{ apiServerUrl: 'https://k' }, 'KubernetesLease.authToken: must be given together'],
      [{ authToken: '' }, 'KubernetesLease.authToken'],
      [{ maxTermMs: 10 }, 'KubernetesLease.maxTermMs'],
      [{ ttlMs: 5_001, maxTermMs: 5_000 }, 'KubernetesLease.ttlMs: must be at most maxTermMs (5000)'],
      [{ ttlMs: 300_001 }, 'KubernetesLease.ttlMs: must be at most maxTermMs (300000)'],
      [{ apiServerUrl: 'https://u:psst@k', authToken: 't', caCert: 'c' }, 'KubernetesLease.apiServerUrl: must be'],
      [{ apiServerUrl: 'https://k?token=psst', authToken: 't', caCert: 'c' }, 'KubernetesLease.apiServerUrl: must be'],
    ];
    for (const [change, message] of bad) {
      const error = assertThrows(() => new KubernetesLease({ ...good, ...change }), OptionsError, message);
      assert(!`${error.message} ${error.value}`.includes('psst'));
    }
    assertThrows(() => KubernetesLease.factory({ ttlMs: 3_000 }), OptionsError, 'namespace');
    const context = { name: 'jobs', owner: 'o', environment: new ManualEnvironment(), driftBound: 0 };
    assertEquals(KubernetesLease.factory({ ttlMs: 3_000, namespace: 'n' })(context).name, 'jobs');
  });
});
