/** The runtime's `fetch` with a certificate authority, which is not the global one everywhere. */
import { test } from 'node:test';
import { assertEquals, assertLess, assertRejects } from '@std/assert';
import { type HttpAnswer, noRedirect, readAnswer, runtimeMeans } from '../../src/coordination/http_means.ts';
import { limits } from '../../src/limits.ts';
import { testTls } from '../contract/tls_fixture.ts';
import { answer, HostileServer, hostilities } from './hostile_server.ts';

test('S7: over TLS, whatever the server does: an answer that was read in bounds, or a rejection', async () => {
  const server = await HostileServer.start((socket, { body }) => answer(socket, 201, `{"told":${body}}`), {
    secure: true,
  });
  const { fetch } = await runtimeMeans();
  const ask = async (): Promise<HttpAnswer> => {
    const signal = AbortSignal.timeout(5_000);
    const init = { method: 'POST', headers: { accept: 'application/json' }, body: '7', signal, ...noRedirect };
    return readAnswer(await fetch(`${server.url}/x`, init, { ca: testTls.ca }));
  };
  try {
    assertEquals(await ask(), { status: 201, body: { told: 7 }, retryInMs: undefined });
    const all = hostilities(server.url);
    for (const name of ['has a status of its own', 'speaks no HTTP', 'ends in the middle of a body']) {
      server.behave = all[name]!;
      await ask().then(({ status }) => assertEquals(status, 999), () => undefined);
    }
    for (const name of ['closes at once', 'sends a body without an end']) {
      server.behave = all[name]!;
      await assertRejects(ask, Error);
    }
    server.behave = all['says 200 with a page']!;
    assertEquals(await ask(), { status: 200, body: undefined, retryInMs: undefined });
    server.behave = (socket) => answer(socket, 503, '{}', { 'retry-after': '2' });
    assertEquals(await ask(), { status: 503, body: {}, retryInMs: 2_000 });
  } finally {
    await server.stop();
  }
  assertLess(server.bytesSent, 64 * 1024 * 1024);
});

test('an answer of the largest size is read, a longer one is not, and no more of it is asked for', async () => {
  assertEquals((await readAnswer(new Response(`"${'x'.repeat(limits.leaseAnswerChars - 2)}"`))).status, 200);
  let pulled = 0;
  const block = new Uint8Array(100_000);
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => {
      pulled += block.length;
      controller.enqueue(block);
    },
  });
  await assertRejects(() => readAnswer(new Response(body)), Error, 'more than');
  assertLess(pulled, 2 * limits.leaseAnswerChars);
});
