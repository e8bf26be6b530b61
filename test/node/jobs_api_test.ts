import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import { type Job, newJob, viewOf } from '../../node/job.ts';
import type { JobDefinition } from '../../node/job_definition.ts';
import { checkCommand, type JobCommand, type JobReply } from '../../node/job_messages.ts';
import { jobsApi } from '../../node/jobs_api.ts';
import { limits } from '../../src/limits.ts';

const definition: JobDefinition = { id: 'tick', everyMs: 1000, url: 'http://127.0.0.1:9000/hook' };
const job: Job = newJob(definition, 1);

function api(reply: JobReply | Error, asked: JobCommand[] = []) {
  return jobsApi({
    async guard(context) {
      const stranger = context.req.header('x-stranger') !== undefined;
      return stranger ? { status: 401, code: 'unauthorized', message: 'no', hint: 'none' } : undefined;
    },
    ask(command) {
      asked.push(command);
      return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply);
    },
  });
}

function post(body: string): RequestInit {
  return { method: 'POST', body };
}

const stored: JobReply = { kind: 'job', change: 'created', job: viewOf(job) };

describe('jobs API', () => {
  test('POST asks the scheduler and answers 201 with the job', async () => {
    const asked: JobCommand[] = [];
    const response = await api(stored, asked).request('/jobs', post(JSON.stringify(definition)));
    assertEquals(response.status, 201);
    assertEquals((await response.json()).id, 'tick');
    assertEquals(asked, [{ kind: 'put', job: definition }]);
  });

  test('GET one, GET all with a page, DELETE', async () => {
    const asked: JobCommand[] = [];
    assertEquals((await api(stored, asked).request('/jobs/tick')).status, 200);
    const page = await api({ kind: 'page', jobs: [viewOf(job)], total: 1, next: null }, asked).request('/jobs?after=a');
    assertEquals((await page.json()).jobs.length, 1);
    const deleted = await api({ kind: 'deleted', id: 'tick' }, asked).request('/jobs/tick', { method: 'DELETE' });
    assertEquals(deleted.status, 204);
    assertEquals(asked, [{ kind: 'get', id: 'tick' }, { kind: 'list', after: 'a' }, { kind: 'delete', id: 'tick' }]);
  });

  test('400 with the field and the rule, without asking anybody', async () => {
    const asked: JobCommand[] = [];
    const cases: readonly (readonly [string, string])[] = [
      ['{', 'body'],
      ['', 'body'],
      ['[]', 'body'],
      [JSON.stringify({ ...definition, colour: 'red' }), 'colour'],
      [JSON.stringify({ ...definition, url: 'ftp://x/' }), 'url'],
      [JSON.stringify({ ...definition, everyMs: -1 }), 'everyMs'],
    ];
    for (const [body, field] of cases) {
      const response = await api(stored, asked).request('/jobs', post(body));
      assertEquals(response.status, 400, body);
      const { error } = await response.json();
      assertEquals(error.field, field);
      assertEquals(error.message, `${field}: ${error.rule}`);
    }
    assertEquals((await api(stored, asked).request('/jobs/a%20b')).status, 400);
    assertEquals(asked, []);
  });

  test('a body above the bound is 413', async () => {
    const response = await api(stored).request('/jobs', post('x'.repeat(limits.httpBodyBytes + 1)));
    assertEquals(response.status, 413);
  });

  test('another method is 405 and says which are allowed', async () => {
    for (const [path, method, allow] of [['/jobs', 'PUT', 'GET, POST'], ['/jobs/x', 'POST', 'GET, DELETE']] as const) {
      const response = await api(stored).request(path, { method });
      assertEquals([response.status, response.headers.get('allow')], [405, allow]);
      assertEquals((await response.json()).error.code, 'method-not-allowed');
    }
  });

  test('unknown job 404, full table 409, refusal of the scheduler 400, no scheduler 503', async () => {
    assertEquals((await api({ kind: 'unknown', id: 'x' }).request('/jobs/x')).status, 404);
    const refusal = { field: 'at', rule: 'must not be in the past' };
    const body = post(JSON.stringify(definition));
    assertEquals((await api({ kind: 'refused', refusal }).request('/jobs', body)).status, 400);
    assertEquals((await api({ kind: 'full', refusal }).request('/jobs', body)).status, 409);
    const none = await api(new Error('no answer within 5000 ms')).request('/jobs');
    assertEquals(none.status, 503);
    assertStringIncludes((await none.json()).error.message, 'no answer within 5000 ms');
  });

  test('a stranger is refused on every route before the body is read', async () => {
    const headers = { 'x-stranger': '1' };
    for (
      const [path, method] of [['/jobs', 'POST'], ['/jobs', 'GET'], ['/jobs/x', 'GET'], ['/jobs/x', 'DELETE']] as const
    ) {
      assertEquals((await api(stored).request(path, { method, headers })).status, 401, `${method} ${path}`);
    }
  });

  test('the scheduler checks commands too: whoever holds its ref may send anything', () => {
    assertEquals(checkCommand({ kind: 'put', job: definition, more: 1 }), { kind: 'put', job: definition });
    assertEquals(checkCommand({ kind: 'list' }), { kind: 'list' });
    for (
      const bad of [undefined, null, 7, {}, { kind: 'wake' }, { kind: 'get' }, { kind: 'delete', id: 5 }, {
        kind: 'put',
      }]
    ) {
      assertEquals('rule' in checkCommand(bad), true, JSON.stringify(bad));
    }
  });
});
