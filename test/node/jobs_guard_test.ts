import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { jobsApi } from '../../node/jobs_api.ts';
import { jobsGuard, type JobsGuardOptions } from '../../node/jobs_guard.ts';

async function status(options: JobsGuardOptions, url: string, headers: Record<string, string> = {}): Promise<number> {
  const api = jobsApi({
    guard: jobsGuard(options),
    ask: () => Promise.resolve({ kind: 'page', jobs: [], total: 0, next: null }),
  });
  return (await api.request(url, { headers })).status;
}

describe('who may give jobs', () => {
  test('beyond loopback, or with a token of its own: the bearer of the token', async () => {
    const options = { token: 'a-token-of-good-length', open: false };
    const url = 'http://10.0.0.1:7000/jobs';
    assertEquals(await status(options, url), 401);
    assertEquals(await status(options, url, { authorization: 'Bearer nonsense' }), 401);
    assertEquals(await status(options, url, { authorization: 'Bearer a-token-of-good-length' }), 200);
    assertEquals(await status({ token: undefined, open: false }, url), 403);
  });

  test('on loopback: programs of this machine, and no page of another site', async () => {
    const options = { token: undefined, open: true };
    for (const host of ['127.0.0.1:7000', 'localhost:7000', '[::1]:7000', '127.8.8.8']) {
      assertEquals(await status(options, `http://${host}/jobs`), 200, host);
    }
    const url = 'http://127.0.0.1:7000/jobs';
    assertEquals(await status(options, url, { origin: 'http://localhost:3000' }), 200);
    for (const origin of ['https://evil.example', 'null', '']) {
      assertEquals(await status(options, url, { origin }), 403);
    }
    // A name of a stranger's that resolves to 127.0.0.1.
    assertEquals(await status(options, 'http://rebind.example:7000/jobs'), 403);
  });
});
