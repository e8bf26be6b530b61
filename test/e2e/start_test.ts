import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertMatch, assertStringIncludes } from '@std/assert';
import { tmpdir } from 'node:os';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { NodeProcess } from '../../demo/node_process.ts';
import {
  exitOf,
  freePorts,
  post,
  ready,
  request,
  runtimes,
  scene,
  sleep,
  until,
  withDeadline,
} from './cluster_process.ts';

/** Every runtime, in processes of its own. */
function onEach(name: string, run: (runtime: (typeof runtimes)[number]) => () => Promise<void>): void {
  for (const runtime of runtimes) test(`${name} (${runtime})`, run(runtime));
}

describe('a node starts', () => {
  onEach('with the plain command: one line, stays up, SIGTERM leaves', (runtime) => async () => {
    // Exactly the documented command: no flag, and on Deno no permission but the network.
    const process = new NodeProcess({ runtime, offline: false });
    try {
      const line = await withDeadline(process.line, () => process.output());
      assertMatch(line.address, /^127\.0\.0\.1:\d+$/);
      assertMatch(line.runtime, new RegExp(`^${runtime} \\d+\\.\\d+`));
      assertEquals(new URL(line.url).host, line.address);
      assert(line.uid.length >= 8);
      await ready({ process, line });
      await sleep(300);
      assertEquals(process.exit, undefined);
      assertEquals(process.stdout.length, 1, process.output());
      process.signal('SIGTERM');
      assertEquals((await exitOf(process)).code, 0, process.output());
    } finally {
      process.signal('SIGKILL');
    }
  });

  onEach('SIGINT leaves too', (runtime) =>
    scene(async (s) => {
      const node = await s.startReady(runtime);
      node.process.signal('SIGINT');
      assertEquals((await exitOf(node.process)).code, 0);
    }));

  onEach('a second signal exits without waiting', (runtime) =>
    scene(async (s) => {
      const receiver = await s.receiver();
      const node = await s.startReady(runtime);
      // A call that hangs makes the leave take its time.
      assertEquals((await post(node, '/jobs', { id: 'h', everyMs: 100, url: receiver.url('/hang') })).status, 201);
      await until('the hanging call', 20_000, () => receiver.calls.length > 0 || undefined);
      node.process.signal('SIGTERM');
      await sleep(200);
      assertEquals(node.process.exit, undefined, 'the leave waits for the call');
      node.process.signal('SIGTERM');
      assertEquals((await exitOf(node.process)).code, 1);
    }));

  onEach('--help', (runtime) =>
    scene(async (s) => {
      const process = s.spawn(runtime, ['--help']);
      assertEquals((await exitOf(process)).code, 0);
      assertStringIncludes(process.stdout.join('\n'), '--seeds');
      assertEquals(process.stderr, []);
    }));

  test(
    'the advertised port is the one asked for',
    scene(async (s) => {
      const [port] = await freePorts(1);
      const node = await s.startReady('node', ['--port', String(port)]);
      assertEquals(node.line.address, `127.0.0.1:${port}`);
    }),
  );
});

describe('a node refuses wrong flags', () => {
  const wrong: readonly (readonly [flags: readonly string[], line: RegExp])[] = [
    [['--port', '99999'], /--port 99999: must be a whole number from 0 to 65535/],
    [['--prot', '1'], /--prot: no such flag/],
    [['extra'], /extra: is not a flag/],
    [['--seeds', 'nonsense'], /--seeds nonsense: /],
    [['--host', '0.0.0.0', '--secret', 'a-secret-of-good-length'], /--host/],
    [['--host', '192.0.2.1'], /--secret/],
    [['--secret-file', '/does/not/exist'], /--secret-file \/does\/not\/exist: /],
    [['--roles', 'a,,b'], /--roles/],
  ];

  onEach('with one clear line and exit code 2', (runtime) =>
    scene(async (s) => {
      await Promise.all(wrong.map(async ([flags, line]) => {
        const process = s.spawn(runtime, flags);
        const exit = await exitOf(process);
        assertEquals(exit.code, 2, `${flags.join(' ')}: ${process.output()}`);
        assertEquals([process.stdout.length, process.stderr.length], [0, 1], process.output());
        assertMatch(process.stderr[0]!, line);
      }));
    }));

  onEach('a port in use: one line with host, port and cause, exit code 1', (runtime) =>
    scene(async (s) => {
      const first = await s.startReady('node');
      const port = first.line.address.split(':')[1]!;
      const process = s.spawn(runtime, ['--port', port, '--log-level', 'error']);
      assertEquals((await exitOf(process)).code, 1);
      assertEquals([process.stdout.length, process.stderr.length], [0, 1], process.output());
      assertStringIncludes(process.stderr[0]!, `127.0.0.1 port ${port}`);
      assertMatch(process.stderr[0]!, /in use/i);
    }));
});

describe('the secret', () => {
  test(
    'comes from a flag, a file or the environment, and is never shown',
    scene(async (s) => {
      const secret = 'correct horse battery staple';
      const folder = await mkdtemp(`${tmpdir()}/singlet-e2e-`);
      try {
        await writeFile(`${folder}/secret`, `${secret}\n`);
        const byFlag = await s.startReady('node', ['--secret', secret, '--log-level', 'debug']);
        const seeds = ['--seeds', byFlag.line.address, '--log-level', 'debug'];
        const byFile = await s.startReady('bun', ['--secret-file', `${folder}/secret`, ...seeds]);
        const process = s.spawn('node', seeds, { SINGLET_SECRET: secret });
        await ready({ process, line: await process.line });
        for (const shown of [byFlag.process, byFile.process, process]) assertFalse(shown.output().includes(secret));
      } finally {
        await rm(folder, { recursive: true });
      }
    }),
  );

  test(
    'with --token, /jobs wants it',
    scene(async (s) => {
      const node = await s.startReady('deno', ['--token', 'let-me-in-please-now']);
      const wrong: readonly Record<string, string>[] = [{}, { authorization: 'Bearer wrong' }, {
        authorization: 'let-me-in-please-now',
      }];
      for (const headers of wrong) {
        const response = await request(node, '/jobs', { headers });
        await response.body?.cancel();
        assertEquals(response.status, 401);
      }
      const response = await request(node, '/jobs', { headers: { authorization: 'Bearer let-me-in-please-now' } });
      assertEquals((await response.json()).jobs, []);
      assertFalse(node.process.output().includes('let-me-in-please-now'));
    }),
  );
});
