import { spawn } from 'node:child_process';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertEquals, assertLess } from '@std/assert';
import { rawClient, rawServer, upgradeRequest } from './raw_peer.ts';

const fixture = fileURLToPath(new URL('./exit_fixture.ts', import.meta.url));

test('FB-124, FB-125: after the close a process ends by itself, with mute peers on both sides', async () => {
  const mute = await rawServer('upgrading', (socket) => socket.pause());
  const flags = 'Deno' in globalThis
    ? ['run', '--quiet', '--allow-net', '--no-prompt', '--import-map=ci/import_map.json']
    : [];
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
