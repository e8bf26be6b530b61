import { get } from 'node:http';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertMatch } from '@std/assert';
import { socketPath, subprotocol } from '../../src/transport/websocket_transport.ts';
import {
  deadlineMs,
  exitOf,
  ready,
  request,
  runtimes,
  sameCluster,
  scene,
  seedView,
  sleep,
  type TestNode,
  until,
  withDeadline,
} from './cluster_process.ts';

const secret = 'correct horse battery staple';

function printed(node: TestNode, pattern: RegExp): Promise<true> {
  return until(
    `${node.line.address} prints ${pattern}`,
    deadlineMs,
    () => pattern.test(node.process.output()) || undefined,
  );
}

describe('a node that does not belong is kept out, and both sides say why', () => {
  test(
    'wrong secret',
    scene(async (s) => {
      const nodes = await s.cluster(['bun', 'node'], ['--secret', secret]);
      const seeds = ['--seeds', nodes[0]!.line.address];
      for (const runtime of runtimes) {
        const stranger = await s.start(runtime, ['--secret', 'another horse battery staple', ...seeds]);
        await printed(stranger, /secret/i);
        await printed(nodes[0]!, /secret/i);
        await sleep(500);
        assert(!(await seedView(stranger)).clusterId);
        for (const text of [stranger.process.output(), nodes[0]!.process.output()]) assertFalse(text.includes('horse'));
        stranger.process.signal('SIGTERM');
        assertEquals((await exitOf(stranger.process)).code, 0);
      }
      await sameCluster(nodes);
    }),
  );

  test(
    'wrong cluster name',
    scene(async (s) => {
      const nodes = await s.cluster(['deno', 'node'], ['--name', 'shop']);
      const stranger = await s.start('bun', ['--name', 'bank', '--seeds', nodes[0]!.line.address]);
      await printed(stranger, /name.*shop|shop.*name/i);
      await sleep(500);
      assert(!(await seedView(stranger)).clusterId);
      stranger.process.signal('SIGTERM');
      assertEquals((await exitOf(stranger.process)).code, 0);
      await sameCluster(nodes);
    }),
  );
});

/** Opens the cluster's socket, sends what is given, and waits until the node closes it. */
async function sendAndWait(node: TestNode, frames: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
  const url = new URL(socketPath, node.line.url.replace('http', 'ws'));
  const socket = new WebSocket(url, [subprotocol]);
  socket.binaryType = 'arraybuffer';
  const closed = new Promise<void>((resolve) => {
    socket.addEventListener('open', () => {
      for (const frame of frames) socket.send(frame);
    });
    socket.addEventListener('close', () => resolve());
    socket.addEventListener('error', () => resolve());
  });
  await withDeadline(closed, () => `${node.line.runtime} closes the socket`);
}

/** `GET /jobs` with headers that `fetch` would not send. */
function statusOf(node: TestNode, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = get(new URL('/jobs', node.line.url), { headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on('error', reject);
  });
}

describe('a node survives what strangers send', () => {
  for (const runtime of runtimes) {
    test(
      `garbage, frames over the limit, silence (${runtime})`,
      scene(async (s) => {
        const nodes = await s.cluster([runtime, 'node'], ['--secret', secret]);
        const [node] = nodes as [TestNode, TestNode];
        const random = new Uint8Array(2_000).map((_, index) => (index * 7919) % 256);
        await sendAndWait(node, [random]);
        await sendAndWait(node, [new Uint8Array(0)]);
        await sendAndWait(node, [new Uint8Array(5).fill(0x9f)]);
        await sendAndWait(node, [new Uint8Array(20 * 1024 * 1024)]);
        // Nothing at all: the handshake has a deadline.
        await sendAndWait(node, []);
        await ready(node);
        await sameCluster(nodes);
        assertEquals(node.process.exit, undefined);
      }),
    );

    test(
      `without a token, no page of another site gives jobs (${runtime})`,
      scene(async (s) => {
        const node = await s.startReady(runtime);
        assertEquals(await statusOf(node, {}), 200);
        assertEquals(await statusOf(node, { origin: 'http://localhost:3000' }), 200);
        assertEquals(await statusOf(node, { origin: 'https://evil.example' }), 403);
        assertEquals(await statusOf(node, { host: 'rebind.example' }), 403);
      }),
    );

    test(
      `wrong paths and methods get a clear answer (${runtime})`,
      scene(async (s) => {
        const node = await s.startReady(runtime);
        const missing = await request(node, '/favicon-of-nothing');
        assertEquals(missing.status, 404);
        assertMatch(await missing.text(), /\w/);
        const plain = await request(node, '/cluster/ws');
        assertEquals(plain.status, 426);
        assertMatch(await plain.text(), /websocket/i);
        const home = await request(node, '/');
        assertEquals(home.status, 200);
        assertMatch(home.headers.get('content-type') ?? '', /text\/html/);
        await home.body?.cancel();
        const alive = await request(node, '/alive');
        assertEquals(alive.status, 200);
        await alive.body?.cancel();
        const put = await request(node, '/jobs', { method: 'PUT', body: '{}' });
        assert(put.status === 404 || put.status === 405);
        await put.body?.cancel();
      }),
    );
  }
});
