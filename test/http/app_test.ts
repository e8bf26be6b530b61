import { Hono } from 'hono';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertMatch, assertStringIncludes } from '@std/assert';
import { createApp } from '../../src/http/app.ts';
import { fakeInspection, singleton } from './fake_inspection.ts';

async function get(
  app: Hono,
  path: string,
  init?: RequestInit,
): Promise<{ status: number; body: any; headers: Headers }> {
  const response = await app.request(path, init);
  return { status: response.status, body: await response.json(), headers: response.headers };
}

describe('health', () => {
  test('alive and ready', async () => {
    const app = createApp(fakeInspection().inspection);
    assertEquals((await get(app, '/alive')).body, { alive: true });
    assertEquals((await get(app, '/ready')).status, 200);
  });
  test('not ready says why, with 503', async () => {
    const reasons = ['Waiting for pledges from b:1.'];
    const app = createApp(fakeInspection({ readiness: () => ({ ready: false, reasons }) }).inspection);
    const { status, body } = await get(app, '/ready');
    assertEquals(status, 503);
    assertEquals(body, { ready: false, reasons });
    assertEquals((await get(app, '/alive')).status, 200);
  });
});

describe('reports', () => {
  const app = createApp(fakeInspection().inspection);

  test('seed: what a joiner decides on, and the timing that safety rests on', async () => {
    const { body, headers } = await get(app, '/cluster/seed');
    assertEquals(body.clusterName, 'test');
    assertEquals(body.members, ['a:1', 'b:1']);
    assertEquals([body.timing.M, body.timing.G, body.timing.stopBound, body.timing.stableAfter], [
      2_601,
      1_500,
      1_000,
      3_000,
    ]);
    assertEquals(headers.get('cache-control'), 'no-store');
  });
  test('seed before a cluster is formed has no cluster id', async () => {
    const fake = fakeInspection();
    const seed = { ...fake.inspection.seed(), clusterId: undefined, formedAt: undefined, members: [] };
    fake.inspection.seed = () => seed;
    const { body } = await get(createApp(fake.inspection), '/cluster/seed');
    assert(!('clusterId' in body));
  });
  test('members and leader', async () => {
    const { body } = await get(app, '/cluster/members');
    assertEquals([body.self, body.leader, body.members.length], ['a:1', 'a:1', 2]);
    assertEquals(Object.keys(body.members[0]), [
      'address',
      'uid',
      'status',
      'roles',
      'upNumber',
      'reachable',
      'runtime',
      'appVersion',
    ]);
    assertEquals((await get(app, '/cluster/leader')).body, { leader: 'a:1' });
  });
  test('no leader is null', async () => {
    const app = createApp(fakeInspection({ members: () => ({ self: 'a:1', leader: null, members: [] }) }).inspection);
    assertEquals((await get(app, '/cluster/leader')).body, { leader: null });
  });
  test('singletons, and one in detail', async () => {
    const { singletons } = (await get(app, '/cluster/singletons')).body;
    assertEquals(singletons[0].lastHandOver.durationMs, 42);
    const { body } = await get(app, '/cluster/singletons/jobs');
    assertEquals([body.buffered, body.counters.told, body.startedOn], [3, 10, ['a:1', 'b:1']]);
  });
  test('R52: a singleton that nobody has started says so', async () => {
    const lonely = singleton('jobs', { host: null, problem: 'No member has started it.' });
    const app = createApp(fakeInspection({ singletons: () => [lonely] }).inspection);
    assertEquals((await get(app, '/cluster/singletons')).body.singletons[0].problem, 'No member has started it.');
  });
  test('an unknown singleton is 404, a name may need escapes', async () => {
    const { status, body } = await get(app, '/cluster/singletons/no%20such');
    assertEquals([status, body.error.code], [404, 'unknown-singleton']);
    assertStringIncludes(body.error.message, '"no such"');
  });
  test('metrics in the Prometheus format', async () => {
    const response = await app.request('/metrics');
    assertMatch(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    const text = await response.text();
    assertStringIncludes(text, '# TYPE singlet_dead_letters_total counter\nsinglet_dead_letters_total 4\n');
    assertStringIncludes(text, 'singlet_members{status="up"} 2\n');
  });
});

describe('errors have one shape', () => {
  const app = createApp(fakeInspection().inspection);
  test('unknown paths', async () => {
    for (const path of ['/nothing', '/cluster', '/cluster/nothing', '/cluster/singletons/a/b']) {
      const { status, body } = await get(app, path);
      assertEquals([status, body.error.code], [404, 'not-found'], path);
      assertEquals(Object.keys(body.error), ['code', 'message', 'hint']);
    }
  });
  test('wrong methods', async () => {
    for (
      const [path, method, allow] of [['/cluster/members', 'POST', 'GET'], ['/cluster/leave', 'GET', 'POST'], [
        '/alive',
        'PUT',
        'GET',
      ]] as const
    ) {
      const { status, headers } = await get(app, path, { method });
      assertEquals([status, headers.get('allow')], [405, allow], path);
    }
  });
  test('a failing node answers 500 without details, and logs them', async () => {
    const fake = fakeInspection({
      members: () => {
        throw new Error('secret detail');
      },
    });
    const { status, body } = await get(createApp(fake.inspection), '/cluster/members');
    assertEquals([status, body.error.code], [500, 'internal']);
    assert(!JSON.stringify(body).includes('secret detail'));
    assertEquals(fake.logged, ['a request failed']);
  });
});

describe('reads with a token', () => {
  const { inspection } = fakeInspection({
    reads: 'token',
    readiness: () => ({ ready: false, reasons: ['b:1 is missing.'] }),
  });
  const app = createApp(inspection);
  const paths = [
    '/cluster/members',
    '/cluster/leader',
    '/cluster/singletons',
    '/cluster/singletons/jobs',
    '/cluster/events',
    '/metrics',
  ];

  test('without or with a wrong token: 401, and no address in the body', async () => {
    for (const path of paths) {
      for (const headers of [undefined, { authorization: 'Bearer wrong' }]) {
        const { status, body } = await get(app, path, { headers });
        assertEquals(status, 401, path);
        assert(!JSON.stringify(body).includes('a:1'), path);
      }
    }
  });
  test('with the token everything is there', async () => {
    const headers = { authorization: 'Bearer letmein' };
    for (const path of paths) {
      const response = await app.request(path, { headers });
      assertEquals(response.status, 200, path);
      await response.body?.cancel();
    }
    assertEquals((await get(app, '/cluster/seed', { headers })).body.members, ['a:1', 'b:1']);
  });
  test('health and seed answer without details', async () => {
    assertEquals((await get(app, '/ready')).body, { ready: false, reasons: [] });
    const { status, body } = await get(app, '/cluster/seed');
    assertEquals([status, body.members, body.clusterId], [200, [], 'c']);
  });
});

describe('an ordinary Hono app', () => {
  test('mounts in a user’s app, and leaves the other routes to it', async () => {
    const outer = new Hono();
    outer.route('/node', createApp(fakeInspection().inspection));
    outer.get('/hello', (context) => context.text('hello'));
    outer.get('/node/mine', (context) => context.text('mine'));
    assertEquals((await get(outer, '/node/cluster/members')).status, 200);
    assertEquals((await get(outer, '/node/cluster/nothing')).body.error.code, 'not-found');
    assertEquals((await outer.request('/node')).headers.get('content-type'), 'text/html; charset=utf-8');
    assertEquals(await (await outer.request('/hello')).text(), 'hello');
    assertEquals(await (await outer.request('/node/mine')).text(), 'mine');
  });
  test('takes a user’s app', async () => {
    const app = createApp(fakeInspection().inspection);
    app.route('/mine', new Hono().get('/hello', (context) => context.text('hello')));
    assertEquals(await (await app.request('/mine/hello')).text(), 'hello');
    assertEquals((await get(app, '/cluster/leader')).status, 200);
  });
});
