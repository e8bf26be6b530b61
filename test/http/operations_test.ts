import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import { createApp } from '../../src/http/app.ts';
import type { ClusterInspection } from '../../src/http/inspection.ts';
import { fakeInspection } from './fake_inspection.ts';

const bearer = { authorization: 'Bearer letmein' };
const paths = [
  '/cluster/leave',
  '/cluster/down',
  '/cluster/singletons/jobs/move',
  '/cluster/rebalance',
  '/cluster/prepare-shutdown',
  '/cluster/cancel-shutdown',
];

function setUp(change: Partial<ClusterInspection> = {}) {
  const fake = fakeInspection(change);
  const app = createApp(fake.inspection);
  return {
    ...fake,
    post: async (path: string, body?: BodyInit, headers: Record<string, string> = bearer) => {
      const response = await app.request(path, { method: 'POST', headers, ...(body === undefined ? {} : { body }) });
      return { status: response.status, body: await response.json() };
    },
  };
}

describe('who may operate', () => {
  test('nobody without a token, with a wrong one, or with one of another scheme', async () => {
    const { post, calls } = setUp();
    for (const path of paths) {
      for (
        const authorization of [
          '',
          'Bearer',
          'Bearer wrong',
          'Bearer letmein2',
          'Bearer letmei',
          'Basic letmein',
          'letmein',
        ]
      ) {
        const { status, body } = await post(path, '{"address":"b:1"}', authorization === '' ? {} : { authorization });
        assertEquals([status, body.error.code], [401, 'unauthorized'], `${path} ${authorization}`);
      }
    }
    assertEquals(calls, []);
  });
  test('nobody at all when no token is configured', async () => {
    for (const token of [undefined, '']) {
      const { post, calls } = setUp({ token });
      for (const path of paths) {
        const { status, body } = await post(path, undefined, { authorization: `Bearer ${token}` });
        assertEquals([status, body.error.code], [403, 'operations-off']);
      }
      assertEquals(calls, []);
    }
  });
});

describe('leave', () => {
  test('answers at once and leaves', async () => {
    const { post, calls } = setUp();
    assertEquals(await post('/cluster/leave'), { status: 202, body: { leaving: 'a:1' } });
    assertEquals(calls, ['leave']);
  });
  test('a failing leave is logged and breaks nothing', async () => {
    const { post, logged } = setUp({ leave: () => Promise.reject(new Error('no')) });
    assertEquals((await post('/cluster/leave', '{}')).status, 202);
    await Promise.resolve();
    assertEquals(logged.at(-1), 'leaving failed');
  });
});

describe('down', () => {
  test('downs a member', async () => {
    const { post, calls } = setUp();
    assertEquals(await post('/cluster/down', '{"address":"b:1"}'), { status: 200, body: { downed: 'b:1' } });
    assertEquals(calls, ['down b:1']);
  });
  test('an unknown member is 404', async () => {
    const refused = await setUp().post('/cluster/down', '{"address":"c:1"}');
    assertEquals([refused.status, refused.body.error.code], [409, 'operation-refused']);
    const { status, body } = await setUp().post('/cluster/down', '{"address":"z:9"}');
    assertEquals([status, body.error.code], [404, 'unknown-member']);
  });
  test('bad bodies are 400 and name field and rule', async () => {
    const { post, calls } = setUp();
    const cases: readonly (readonly [string | undefined, string])[] = [
      [undefined, 'address: is missing'],
      ['{"address":', 'body: is not JSON'],
      ['[]', 'body: must be a JSON object'],
      ['null', 'body: must be a JSON object'],
      ['{"address":7}', 'address: must be a string'],
      ['{"adress":"b:1"}', 'adress: is not a field'],
      ['{"address":"b"}', 'address: must be host:port'],
      ['{"address":"b:0"}', 'address: must be host:port'],
      ['{"address":"b:70000"}', 'address: must be host:port'],
      ['{"address":"b/c:1"}', 'address: its host must not hold'],
      [`{"address":"${'b'.repeat(300)}:1"}`, 'address: its host must have at most'],
      ['{"__proto__":"b:1"}', '__proto__: is not a field'],
    ];
    for (const [body, message] of cases) {
      const answer = await post('/cluster/down', body);
      assertEquals([answer.status, answer.body.error.code], [400, 'bad-request'], body);
      assertStringIncludes(answer.body.error.message, message);
    }
    assertEquals(calls, []);
  });
});

describe('move', () => {
  test('R146: to the next eligible member, or to a named one', async () => {
    const { post, calls } = setUp();
    const moved = { status: 200, body: { singleton: 'jobs', from: 'a:1', to: 'b:1' } };
    assertEquals(await post('/cluster/singletons/jobs/move'), moved);
    assertEquals(await post('/cluster/singletons/jobs/move', '{"to":"b:1"}'), moved);
    assertEquals(calls, ['move jobs ', 'move jobs b:1']);
  });
  test('an unknown singleton is 404, a target that cannot host is 409 with the reason', async () => {
    const { post } = setUp();
    assertEquals((await post('/cluster/singletons/other/move')).body.error.code, 'unknown-singleton');
    const refused = await post('/cluster/singletons/jobs/move', '{"to":"c:1"}');
    assertEquals([refused.status, refused.body.error.message], [409, 'c:1 has not started it.']);
  });
});

describe('of the whole cluster', () => {
  test('R147: rebalance says what moves where', async () => {
    const { post, calls } = setUp();
    const answer = { status: 200, body: { moves: [{ singleton: 'jobs', to: 'b:1' }] } };
    assertEquals(await post('/cluster/rebalance'), answer);
    assertEquals((await post('/cluster/rebalance', '{"to":"b:1"}')).status, 400);
    assertEquals(calls, ['rebalance']);
  });
  test('P21: a full shutdown is prepared and called off', async () => {
    const { post, calls } = setUp();
    assertEquals(await post('/cluster/prepare-shutdown'), { status: 200, body: { prepared: ['a:1', 'b:1'] } });
    assertEquals(await post('/cluster/cancel-shutdown', '{}'), { status: 200, body: { cancelled: true } });
    for (const path of ['/cluster/prepare-shutdown', '/cluster/cancel-shutdown']) {
      assertEquals((await post(path, '{"force":"yes"}')).status, 400);
    }
    assertEquals(calls, ['prepare-shutdown', 'cancel-shutdown']);
  });
  test('what cannot be done now is 409 with the reason', async () => {
    const refused = { kind: 'refused', message: 'not every member knows', hint: 'Ask again.' } as const;
    const { post } = setUp({
      rebalance: () => Promise.resolve(refused),
      prepareShutdown: () => Promise.resolve(refused),
    });
    for (const path of ['/cluster/rebalance', '/cluster/prepare-shutdown']) {
      const { status, body } = await post(path);
      assertEquals([status, body.error.code, body.error.message, body.error.hint], [
        409,
        'operation-refused',
        refused.message,
        refused.hint,
      ]);
    }
  });
});
