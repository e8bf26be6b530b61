/** Against a real etcd, on the real clock. */
import { after, before, describe, test } from 'node:test';
import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { realEnvironment } from '../../src/actor/real_environment.ts';
import { consoleLogger } from '../../src/actor/logger.ts';
import { EtcdLease, type EtcdSettings } from '../../src/coordination/etcd_lease.ts';
import { encode } from '../../src/coordination/etcd_gateway.ts';
import { LeaseError } from '../../src/coordination/lease.ts';
import type { HttpMeans } from '../../src/coordination/http_means.ts';
import { type LeaseBench, leaseContract } from '../contract/lease_contract.ts';
import { testTls } from '../contract/tls_fixture.ts';
import { EtcdServer, noEtcd } from './etcd_server.ts';

const ttlMs = 2_000;
const environment = realEnvironment(consoleLogger('off'));
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

let server: EtcdServer;
before(async () => {
  if (noEtcd === false) server = await EtcdServer.start();
});
after(() => server?.remove());

/** Means that fail for one owner, or lose its answers. */
class Wire implements HttpMeans {
  broken = false;
  muted = false;
  readonly urls: string[] = [];
  readTextFile = () => Promise.reject(new Error('none'));
  environmentVariable = () => undefined;
  async fetch(url: string, init: RequestInit): Promise<Response> {
    this.urls.push(url);
    if (this.broken) throw new TypeError('connection refused');
    const answer = await fetch(url, init);
    if (!this.muted) return answer;
    await answer.text();
    throw new TypeError('connection reset');
  }
}

class EtcdBench implements LeaseBench {
  readonly ttlMs = ttlMs;
  readonly #wires = new Map<string, Wire>();
  readonly #leases: EtcdLease[] = [];
  open(name: string, owner: string): EtcdLease {
    const means = new Wire();
    this.#wires.set(owner, means);
    const lease = new EtcdLease({ name, owner, ttlMs, endpoints: [server.url], means }, environment);
    this.#leases.push(lease);
    return lease;
  }
  elapse = sleep;
  settle = <T>(promise: Promise<T>) => promise;
  now = () => environment.clock.now();
  breakFor(owner: string | undefined): void {
    for (const [name, wire] of this.#wires) wire.broken = name === owner;
  }
  /** The last request of an acquire is applied, its answer lost. */
  muteFor(owner: string | undefined): void {
    for (const [name, wire] of this.#wires) {
      wire.muted = false;
      if (name !== owner) continue;
      const { fetch: send } = wire;
      wire.fetch = (url, init) => {
        wire.muted = url.endsWith('/txn');
        return send.call(wire, url, init);
      };
    }
    if (owner === undefined) { for (const wire of this.#wires.values()) wire.fetch = Wire.prototype.fetch; }
  }
  async close(): Promise<void> {
    for (const lease of this.#leases) lease.abandon();
  }
}

leaseContract({ title: 'etcd', skip: noEtcd, bench: async () => new EtcdBench(), slackMs: 1_500, raises: false });

const made = (settings: EtcdSettings) => new EtcdLease({ ttlMs, ...settings }, environment);

const root = { name: 'root', password: 'a root password' };

/** Switches authentication on; the token is root's. */
async function withAuthentication({ url }: EtcdServer) {
  const call = async (path: string, body: object, token?: string) => {
    const headers = token === undefined ? undefined : { authorization: token };
    const answer = await fetch(url + path, {
      method: 'POST',
      body: JSON.stringify(body),
      ...(headers ? { headers } : {}),
    });
    return await answer.json() as { token?: string };
  };
  await call('/v3/auth/user/add', root);
  await call('/v3/auth/role/add', { name: 'root' });
  await call('/v3/auth/user/grant', { user: 'root', role: 'root' });
  await call('/v3/auth/enable', {});
  return { call, token: (await call('/v3/auth/authenticate', root)).token };
}

describe('the etcd lease', () => {
  const scene = (name: string, run: () => Promise<void>) => test(name, { skip: noEtcd }, run);

  scene('the token is the revision, and the tenure before is known', async () => {
    const [a, b] = ['a', 'b'].map((owner) => made({ name: 'revisions', owner, endpoints: [server.url] }));
    const first = await a!.acquireWithToken();
    await a!.release();
    const second = await b!.acquireWithToken();
    assert(first && second && second.token > first.token);
    assertEquals(second.previous, first.token);
    await b!.release();
  });

  scene(
    'FB-049, FB-051: a key that an operator deletes is found out by the next renewal, and the next owner is fenced above',
    async () => {
      const lease = made({ name: 'deleted', owner: 'a', endpoints: [server.url] });
      const lost = new Promise<string>((resolve) => lease.onLost(resolve));
      assert(await lease.acquire());
      await fetch(`${server.url}/v3/kv/deleterange`, {
        method: 'POST',
        body: JSON.stringify({ key: encode('singlet/leases/deleted/holder') }),
      }).then((answer) => answer.text());
      const other = made({ name: 'deleted', owner: 'b', endpoints: [server.url] });
      const [next, before] = [await other.acquireWithToken(), lease.token];
      assert(next && next.token > before);
      assertMatch(await lost, /b holds it|tenure is over/);
      assertEquals([lease.checkAlive(), await lease.acquire()], [false, false]);
      assert(other.checkAlive());
      await other.release();
    },
  );

  scene('an endpoint that refuses or does not answer is passed over', async () => {
    const means = new Wire();
    const endpoints = ['http://127.0.0.1:9', server.url];
    const lease = made({ name: 'endpoints', owner: 'a', endpoints, means });
    assert(await lease.acquire());
    await sleep(ttlMs * 1.2);
    assert(lease.checkAlive());
    assertEquals(
      means.urls.filter((url) => url.startsWith('http://127.0.0.1:9/')).length,
      1,
      'the good one is asked first',
    );
    await lease.release();
  });

  scene('endpoints of two etcd clusters are one mistake, not two backends', async () => {
    const other = await EtcdServer.start();
    const means = new Wire();
    const lost: string[] = [];
    try {
      const lease = made({ name: 'clusters', owner: 'a', endpoints: [server.url, other.url], means });
      lease.onLost((why) => lost.push(why));
      assert(await lease.acquire());
      const { fetch: send } = means;
      means.fetch = (url, init) =>
        url.startsWith(server.url) ? Promise.reject(new TypeError('refused')) : send.call(means, url, init);
      const error = await assertRejects(() => lease.release(), Error);
      assertStringIncludes(error.message, `${other.url}: it belongs to another etcd cluster than ${server.url}`);
      await assertRejects(() => lease.acquire(), Error, 'another etcd cluster');
      means.fetch = send;
      assert(await lease.acquire());
      await lease.release();
      assertEquals(lost, []);
    } finally {
      await other.remove();
    }
  });

  scene('over TLS: with the authority of its certificate, and with no other', async () => {
    const secure = await EtcdServer.start({ secure: true });
    try {
      const endpoints = [secure.url];
      const lease = made({ name: 'tls', owner: 'a', endpoints, ca: testTls.ca });
      const first = await lease.acquireWithToken();
      await sleep(ttlMs * 1.2);
      assert(first && lease.checkAlive());
      await lease.release();
      const again = await made({ name: 'tls', owner: 'b', endpoints, ca: testTls.ca }).acquireWithToken();
      assert(again && again.token > first.token);
      for (const ca of [undefined, testTls.cert]) {
        const stranger = made({ name: 'tls', owner: 'c', endpoints, ...(ca === undefined ? {} : { ca }) });
        await assertRejects(() => stranger.acquire(), LeaseError, 'etcd gave no answer');
      }
      const plain = made({ name: 'tls', owner: 'c', endpoints: [secure.url.replace('https', 'http')] });
      await assertRejects(() => plain.acquire(), LeaseError);
    } finally {
      await secure.remove();
    }
  });

  scene('an outage longer than the term ends it in time; when etcd is back it can be had', async () => {
    const lease = made({ name: 'outage', owner: 'a', endpoints: [server.url] });
    const lost = new Promise<number>((resolve) => lease.onLost(() => resolve(environment.clock.now())));
    const grant = await lease.acquireWithToken();
    assert(grant);
    const { deadline } = lease;
    server.signal('SIGSTOP');
    const lostAt = await lost;
    assert(lostAt <= deadline + ttlMs && !lease.checkAlive());
    await assertRejects(() => lease.acquire(), Error);
    server.signal('SIGCONT');
    for (let tries = 0; tries < 40 && !(await lease.acquire().catch(() => false)); tries += 1) await sleep(100);
    assertGreater(lease.token, grant.token);
    await lease.release();
  });

  scene('with authentication it logs in, again when its token has ended; a bad password is an error', async () => {
    const { token: admin, call } = await withAuthentication(server);
    try {
      const endpoints = [server.url];
      await assertRejects(() => made({ name: 'auth', owner: 'a', endpoints }).acquire(), Error, 'etcd');
      const wrong = made({ name: 'auth', owner: 'a', endpoints, username: 'root', password: 'wrong' });
      await assertRejects(() => wrong.acquire(), Error, 'authentication failed');
      const means = new Wire();
      const lease = made({ name: 'auth', owner: 'a', endpoints, username: 'root', password: root.password, means });
      assert(await lease.acquire());
      const { fetch: send } = means;
      let spoilt = 0;
      means.fetch = (url, init) => {
        const headers = new Headers(init.headers);
        if (spoilt === 0 && url.endsWith('/range')) headers.set('authorization', `spoilt.${spoilt += 1}`);
        return send.call(means, url, { ...init, headers });
      };
      await sleep(ttlMs * 1.5);
      assert(lease.checkAlive());
      assertEquals([spoilt, means.urls.filter((url) => url.endsWith('/authenticate')).length], [1, 2]);
      await lease.release();
    } finally {
      await call('/v3/auth/disable', {}, admin);
    }
  });

  scene(
    'where tokens are signed, a change of users or roles ends them all: it logs in again, and nothing is lost',
    async () => {
      const signing = await EtcdServer.start({ signedTokens: true });
      try {
        const { token, call } = await withAuthentication(signing);
        const lease = made({
          name: 'signed',
          owner: 'a',
          endpoints: [signing.url],
          username: 'root',
          password: root.password,
        });
        let losses = 0;
        lease.onLost(() => losses += 1);
        assert(await lease.acquire());
        await call('/v3/auth/user/add', { name: 'somebody', password: 'else' }, token);
        await sleep(ttlMs * 1.5);
        assertEquals([lease.checkAlive(), losses], [true, 0]);
        await lease.release();
      } finally {
        await signing.remove();
      }
    },
  );
});

test('rule 18: in the last second of a term, where etcd leaves the time out of its answer, it is asked again soon', async () => {
  const header = { cluster_id: '1' };
  const answers: Record<string, unknown> = {
    '/v3/kv/range': { header, kvs: [{ value: encode('other#1'), mod_revision: '7', lease: '42' }] },
    '/v3/lease/timetolive': { header, ID: '42', grantedTTL: '2' },
  };
  const means: HttpMeans = {
    readTextFile: () => Promise.reject(new Error('none')),
    environmentVariable: () => undefined,
    fetch: async (url) => new Response(JSON.stringify(answers[new URL(url).pathname])),
  };
  const lease = made({ name: 'x', owner: 'a#1', endpoints: ['http://127.0.0.1:2379'], means });
  assertEquals([await lease.acquire(), lease.retryInMs], [false, 100]);
  answers['/v3/lease/timetolive'] = { header, ID: '42', grantedTTL: '2', TTL: '1' };
  assertEquals([await lease.acquire(), lease.retryInMs], [false, 1_000]);
  lease.abandon();
});

test('an own acquire that was given up and comes late is no rival: it is asked for again at once, and can be given back', async () => {
  const header = { cluster_id: '1', revision: '9' };
  const own = { header, kvs: [{ value: encode('a#1'), mod_revision: '8', lease: '41' }] };
  let late = false;
  const calls: string[] = [];
  const answers: Record<string, () => unknown> = {
    '/v3/kv/range': () => late ? own : { header },
    '/v3/lease/grant': () => ({ header, ID: '42', TTL: '2' }),
    '/v3/kv/txn': () => {
      const succeeded = late;
      late = true;
      return { header, succeeded, responses: succeeded ? [] : [{ response_range: own }] };
    },
    '/v3/lease/revoke': () => ({ header }),
    '/v3/lease/timetolive': () => ({ header, TTL: '2' }),
  };
  const means: HttpMeans = {
    readTextFile: () => Promise.reject(new Error('none')),
    environmentVariable: () => undefined,
    fetch: async (url) => {
      const { pathname } = new URL(url);
      calls.push(pathname);
      return new Response(JSON.stringify(answers[pathname]!()));
    },
  };
  const lease = made({ name: 'x', owner: 'a#1', endpoints: ['http://127.0.0.1:2379'], means });
  await assertRejects(() => lease.acquire(), LeaseError, 'the key changed meanwhile');
  assertEquals(lease.retryInMs, 50);
  const before = calls.length;
  await lease.release();
  assert(calls.slice(before).includes('/v3/kv/txn'), 'the record of its own is taken away');
  lease.abandon();
});

test('R77: bad settings are refused, and no password is shown', () => {
  const good = { name: 'x', owner: 'a', ttlMs, endpoints: ['http://h:1'] };
  const bad: [EtcdSettings, string][] = [
    [{ name: undefined as never }, 'EtcdLease.name: is required'],
    [{ endpoints: [] }, 'EtcdLease.endpoints: must name at least one'],
    [{ endpoints: ['h:1'] }, 'EtcdLease.endpoints'],
    [{ endpoints: ['http://h:1/path'] }, 'EtcdLease.endpoints'],
    [{ endpoints: ['http://u:psst@h:1'] }, 'EtcdLease.endpoints'],
    [{ endpoints: ['http://:psst@h:1'] }, 'EtcdLease.endpoints'],
    [{ endpoints: ['http://h:1?auth=psst'] }, 'EtcdLease.endpoints'],
    [{ username: 'u' }, 'EtcdLease.username: must be given together with password'],
    [{ username: 'u', password: ['pass', 'word'] as never }, 'EtcdLease.password: must be'],
    [{ prefix: '' }, 'EtcdLease.prefix'],
  ];
  for (const [change, message] of bad) {
    const error = assertThrows(() => new EtcdLease({ ...good, ...change }), OptionsError, message);
    assertEquals(error.field === 'password' ? error.value : '(hidden)', '(hidden)');
    assert(!`${error.message} ${error.value}`.includes('psst'));
  }
  assertThrows(() => EtcdLease.factory({ ttlMs }), OptionsError, 'endpoints');
});
