import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { type CallingWorld, callTarget, type JobBody } from '../../node/job_call.ts';
import { limits } from '../../src/limits.ts';

const body: JobBody = { id: 'tick', run: 3, epoch: 7, host: '127.0.0.1:1', dueAt: '2026-01-01T00:00:00.000Z' };

interface Fake {
  readonly world: CallingWorld;
  readonly requests: { url: string; init: RequestInit }[];
  advance(ms: number): void;
  timersLeft(): number;
}

function fake(answer: (init: RequestInit) => Promise<Response>): Fake {
  let now = 0;
  const timers = new Map<number, { at: number; run: () => void }>();
  let next = 0;
  const requests: { url: string; init: RequestInit }[] = [];
  return {
    requests,
    timersLeft: () => timers.size,
    advance(ms) {
      now += ms;
      for (const [key, timer] of timers) {
        if (timer.at > now) continue;
        timers.delete(key);
        timer.run();
      }
    },
    world: {
      clock: { now: () => now, wall: () => now },
      timers: {
        set(delayMs, run) {
          const key = ++next;
          timers.set(key, { at: now + delayMs, run });
          return () => void timers.delete(key);
        },
      },
      fetch(url, init) {
        requests.push({ url, init });
        return answer(init);
      },
    },
  };
}

function streamOf(chunk: Uint8Array, seen: { read: number; cancelled: boolean }): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      seen.read++;
      controller.enqueue(chunk);
    },
    cancel() {
      seen.cancelled = true;
    },
  });
}

describe('call of a job target', () => {
  test('posts the body as JSON and does not follow redirects', async () => {
    const { world, requests, timersLeft } = fake(() => Promise.resolve(new Response('ok', { status: 202 })));
    const outcome = await callTarget('http://t/hook', body, world).ended;
    assertEquals([outcome.status, outcome.error], [202, undefined]);
    const { url, init } = requests[0]!;
    assertEquals([url, init.method, init.redirect], ['http://t/hook', 'POST', 'manual']);
    assertEquals(JSON.parse(init.body as string), body);
    assertEquals(timersLeft(), 0);
  });

  test('a target that never answers ends at the timeout, with the request aborted', async () => {
    let signal: AbortSignal | null | undefined;
    const { world, advance } = fake((init) => {
      signal = init.signal;
      return new Promise(() => {});
    });
    const call = callTarget('http://t/', body, world);
    advance(limits.jobTimeoutMs);
    const outcome = await call.ended;
    assertEquals(outcome.status, undefined);
    assertStringIncludes(outcome.error ?? '', `${limits.jobTimeoutMs} ms`);
    assertEquals(outcome.tookMs, limits.jobTimeoutMs);
    assert(signal?.aborted);
  });

  test('an answer whose body never ends keeps its status and ends at the timeout', async () => {
    const endless = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const { world, advance } = fake(() => Promise.resolve(new Response(endless, { status: 200 })));
    const call = callTarget('http://t/', body, world);
    await new Promise((resolve) => setTimeout(resolve, 1));
    advance(limits.jobTimeoutMs);
    assertEquals((await call.ended).status, 200);
  });

  test('of a huge answer only a bounded part is read', async () => {
    const seen = { read: 0, cancelled: false };
    const { world } = fake(() => Promise.resolve(new Response(streamOf(new Uint8Array(16 * 1024), seen))));
    assertEquals((await callTarget('http://t/', body, world).ended).status, 200);
    assert(seen.cancelled);
    assert(seen.read <= 8, `${seen.read} chunks read`);
  });

  test('errors of the three runtimes become the same short words', async () => {
    const errors: readonly (readonly [Error, string])[] = [
      [
        new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) }),
        'connection refused',
      ],
      [Object.assign(new Error('Unable to connect.'), { code: 'ConnectionRefused' }), 'connection refused'],
      [
        new TypeError('error sending request: tcp connect error: Connection refused (os error 111)'),
        'connection refused',
      ],
      [Object.assign(new Error('The socket connection was closed'), { code: 'ECONNRESET' }), 'connection lost'],
      [
        new TypeError('fetch failed', { cause: Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }) }),
        'host not found',
      ],
      [new TypeError('something\nelse'), 'something else'],
    ];
    for (const [error, text] of errors) {
      const { world } = fake(() => Promise.reject(error));
      assertEquals((await callTarget('http://t/', body, world).ended).error, text);
    }
  });

  test('an aborted call ends at once with the given reason', async () => {
    const { world, timersLeft } = fake(() => new Promise(() => {}));
    const call = callTarget('http://t/', body, world);
    call.abort('the scheduler moved');
    assertEquals((await call.ended).error, 'the scheduler moved');
    assertEquals(timersLeft(), 0);
  });
});
