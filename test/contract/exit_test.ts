import { runtime } from '#runtime';
import { spawn } from 'node:child_process';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertEquals, assertLess } from '@std/assert';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { localEnvironment } from '../transport/local_environment.ts';
import { someSeedAnswer } from './transport_contract.ts';
import { rawClient, rawServer, upgradeRequest } from './raw_peer.ts';

const fixture = fileURLToPath(new URL('./exit_fixture.ts', import.meta.url));
const abruptFixture = fileURLToPath(new URL('./abrupt_exit_fixture.ts', import.meta.url));

const flags = 'Deno' in globalThis
  ? ['run', '--quiet', '--allow-net', '--no-prompt', '--import-map=ci/import_map.json']
  : [];

test('FB-124, FB-125: after the close a process ends by itself, with mute peers on both sides', async () => {
  const mute = await rawServer('upgrading', (socket) => socket.pause());
  const child = spawn(process.execPath, [...flags, fixture, String(mute.port)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let connected: ReturnType<typeof rawClient> | undefined;
  let closedAt = 0;
  const read = (data: Uint8Array) => {
    output += new TextDecoder().decode(data);
    const port = /port (\d+)/.exec(output)?.[1];
    if (port !== undefined) connected ??= rawClient(Number(port), upgradeRequest(), true);
    if (closedAt === 0 && output.includes('closed')) closedAt = performance.now();
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const guard = setTimeout(() => child.kill('SIGKILL'), 15_000);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(guard);
  assertEquals([code, output.replace(/port \d+/, 'port')], [0, 'port\nclosed\n']);
  assertLess(performance.now() - closedAt, 3_000);
  (await connected)?.socket.destroy();
  mute.close();
});

for (const way of ['exit', 'throw']) {
  test(`FB-128: a process that ends by '${way}' without a word: its peer knows at once`, async () => {
    let closed: Promise<number> | undefined;
    let closedAt = (_now: number): void => {};
    const transport = new WebSocketTransport({
      runtime,
      environment: localEnvironment(),
      clusterName: 'c',
      host: '127.0.0.1',
      port: 0,
      uid: 'peer',
      seedAnswer: someSeedAnswer,
    });
    const address = await transport.start({
      accepted: () => void (closed = new Promise((resolve) => closedAt = resolve)),
      frame() {},
      closed: () => closedAt(performance.now()),
      listenerLost() {},
    });
    const child = spawn(process.execPath, [...flags, abruptFixture, address, way], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    child.stdout.on('data', (data: Uint8Array) => output += new TextDecoder().decode(data));
    const guard = setTimeout(() => child.kill('SIGKILL'), 15_000);
    const code = await new Promise((resolve) => child.on('close', resolve));
    const endedAt = performance.now();
    clearTimeout(guard);
    assertEquals([code, output], [way === 'exit' ? 3 : 1, 'ends\n']);
    assertLess(await closed! - endedAt, 500);
    await transport.stop();
  });
}
