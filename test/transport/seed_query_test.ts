import { test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import type { DialFailure, SeedAnswer } from '../../src/transport/contract.ts';
import { parseSeedAnswer, querySeed, seedUrl } from '../../src/transport/seed_query.ts';
import { localEnvironment, pause } from './local_environment.ts';

const good = {
  clusterName: 'c',
  protocol: 1,
  fingerprint: 'f',
  address: 'h:1',
  uid: 'u',
  clusterId: 'id',
  formedAt: 5,
  members: ['h:1', '[::1]:2'],
};

function ask(respond: (signal: AbortSignal) => Response | Promise<Response>, timeoutMs = 1_000) {
  const fetch = (_url: string, init: RequestInit) => Promise.resolve(respond(init.signal as AbortSignal));
  const query = { url: 'http://h:1/cluster/seed', timeoutMs, maxBytes: 1_000, tls: undefined };
  return new Promise<SeedAnswer | DialFailure>((resolve) =>
    querySeed({ fetch }, localEnvironment().timers, query, resolve)
  );
}

async function refusal(respond: () => Response): Promise<DialFailure> {
  const answer = await ask(respond);
  assert('reason' in answer, 'it was accepted');
  assertEquals([answer.reason, answer.code], ['rejected', 'not-a-seed']);
  assertStringIncludes(answer.detail, 'http://h:1/cluster/seed: ');
  return answer;
}

test('a good answer is taken, unknown fields are not', async () => {
  assertEquals(await ask(() => Response.json({ ...good, margin: 3 })), good);
  const bare = { ...good, clusterId: undefined, formedAt: undefined, members: [] };
  assertEquals(await ask(() => Response.json({ ...bare, clusterId: null })), bare);
});

test('whatever is no seed is told so', async () => {
  assertStringIncludes((await refusal(() => new Response('x', { status: 404 }))).detail, 'status 404');
  const redirect = () => new Response(null, { status: 302, headers: { location: 'http://evil/' } });
  assertStringIncludes((await refusal(redirect)).detail, 'redirect');
  assertStringIncludes((await refusal(() => new Response('<html>'))).detail, 'not JSON');
  assertStringIncludes((await refusal(() => Response.json([good]))).detail, 'not a JSON object');
});

test('each field is checked', () => {
  const bad: [string, unknown][] = [
    ['clusterName', 1],
    ['clusterName', ''],
    ['protocol', '1'],
    ['protocol', -1],
    ['protocol', 1.5],
    ['fingerprint', null],
    ['address', 'nowhere'],
    ['uid', ''],
    ['clusterId', 5],
    ['formedAt', 'today'],
    ['members', 'h:1'],
    ['members', ['h:1', 5]],
    ['members', Array.from({ length: 1_001 }, () => 'h:1')],
  ];
  for (const [field, value] of bad) {
    const problem = parseSeedAnswer(JSON.stringify({ ...good, [field]: value }));
    assert(typeof problem === 'string' && problem.startsWith(field), `${field} = ${value}`);
  }
});

test('FB-097: an endless answer is cut off by what arrives, not by what its header says', async () => {
  let sent = 0;
  let cancelled = false;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent += 100;
          controller.enqueue(new Uint8Array(100).fill(32));
        },
        cancel: () => void (cancelled = true),
      }),
      { headers: { 'content-length': '10' } },
    );
  assertStringIncludes((await refusal(endless)).detail, 'more than 1000 bytes');
  await pause(10);
  assert(cancelled && sent < 5_000, `${sent} bytes read`);
});

test('a seed that does not answer in time', async () => {
  let aborted = false;
  const never = (signal: AbortSignal) =>
    new Promise<Response>((_, reject) =>
      signal.addEventListener('abort', () => {
        aborted = true;
        reject(new Error('aborted'));
      })
    );
  const answer = await ask(never, 30);
  assertEquals(['reason' in answer && answer.reason, aborted], ['timeout', true]);
});

test('seeds are host:port or http(s) URLs', () => {
  const cases: [string, boolean, string | undefined][] = [
    ['h:1', false, 'http://h:1/cluster/seed'],
    ['h:1', true, 'https://h:1/cluster/seed'],
    ['[::1]:1', false, 'http://[::1]:1/cluster/seed'],
    ['https://h.example', false, 'https://h.example/cluster/seed'],
    ['http://h:1/base/', false, 'http://h:1/base/cluster/seed'],
    ['http://h:1/cluster/seed', false, 'http://h:1/cluster/seed'],
    ['h', false, undefined],
    ['ftp://h:1', false, undefined],
    ['http://', false, undefined],
  ];
  for (const [seed, secure, url] of cases) assertEquals(seedUrl(seed, secure)?.href, url, seed);
});

test('an address that cannot be part of a URL is no seed, and nothing is thrown', () => {
  for (const seed of ['a%00:1', '\u{1f0a1}\ud800:1', 'a<b:1', '%:1', 'http://', 'https://[::1', 'http://a b']) {
    assertEquals(seedUrl(seed, false), undefined, seed);
  }
});
