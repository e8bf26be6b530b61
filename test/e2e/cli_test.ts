/** The command line tool on each runtime, against real nodes: what a deployment and an operator do with it. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes } from '@std/assert';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { exitOf, runtimes, scene, withDeadline } from './cluster_process.ts';

const token = 'not-to-be-printed';

interface CliRun {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function cli(runtime: RuntimeName, args: readonly string[], env: Record<string, string> = {}): Promise<CliRun> {
  const { file, args: before } = runtimeCommand(runtime, true);
  const permissions = runtime === 'deno' ? ['--allow-env=SINGLET_URL,SINGLET_TOKEN,NO_COLOR', '--allow-read'] : [];
  const child = spawn(file, [...before, ...permissions, 'cli/singlet.ts', ...args], {
    cwd: repositoryRoot,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text) => out += text);
  child.stderr.setEncoding('utf8').on('data', (text) => err += text);
  const done = new Promise<CliRun>((resolve) => child.on('close', (code) => resolve({ code, out, err })));
  return withDeadline(done, () => `singlet ${args.join(' ')} on ${runtime}: ${out}${err}`).finally(() => child.kill());
}

test(
  'a cluster of three runtimes, looked at and operated from three runtimes',
  scene(async (own) => {
    const nodes = await own.cluster(runtimes, ['--token', token]);
    const [first, second, third] = nodes.map(({ line }) => line) as [
      typeof nodes[0]['line'],
      ...typeof nodes[0]['line'][],
    ];
    const env = { SINGLET_URL: second!.url, SINGLET_TOKEN: token };
    const printed: CliRun[] = [];
    const run = async (runtime: RuntimeName, ...args: string[]) => {
      const result = await cli(runtime, args, env);
      printed.push(result);
      return result;
    };

    const [gates, watching] = [
      await Promise.all(
        runtimes.map((runtime) =>
          run(runtime, 'status', '--wait', '30s', '--members', '3', '--singletons', 'job-scheduler')
        ),
      ),
      run('deno', 'events', '--json', '--replay', '1'),
    ];
    for (const gate of gates) {
      assertEquals(gate.code, 0, gate.err);
      for (const { address } of [first, second!, third!]) assertStringIncludes(gate.out, address);
      assertFalse(gate.out.includes('\x1b'));
    }
    const tooMany = await run('bun', 'status', '--members', '4');
    assertEquals([tooMany.code, tooMany.out.includes('3 of 4 members are up.')], [1, true]);

    const moved = await run('node', 'move', 'job-scheduler', '--to', third!.address, '--wait', '30s', '--json');
    assertEquals([moved.code, JSON.parse(moved.out)], [0, {
      singleton: 'job-scheduler',
      from: first.address,
      to: third!.address,
      done: true,
    }]);
    const detail = await run('deno', 'singletons', 'job-scheduler', '--json');
    assertEquals(JSON.parse(detail.out).host, third!.address);
    assertEquals((await run('bun', 'move', 'job-scheduler', '--to', '127.0.0.1:1')).code, 5);

    const left = await run('bun', 'leave', '--wait', '30s', '--url', first.url);
    assertEquals([left.code, left.out], [0, `${first.address} has left.\n`]);
    assertEquals((await exitOf(nodes[0]!.process)).signal, null);
    assertEquals((await run('node', 'members', '--url', first.url)).code, 3);

    nodes[2]!.process.signal('SIGKILL');
    const downed = await run('deno', 'down', third!.address, '--wait', '30s');
    // The failure detector may have been quicker.
    assert(downed.code === 0 || downed.code === 5, downed.err);
    assertEquals((await run('node', 'status', '--members', '1', '--wait', '30s')).code, 0);

    assertEquals((await run('bun', 'leave', '--wait', '30s')).code, 0);
    const seen = await watching;
    assertEquals(seen.code, 0, seen.err);
    const kinds = seen.out.trim().split('\n').map((line) => JSON.parse(line).kind);
    for (const kind of ['member-left', 'member-removed', 'singleton-hosted', 'self-removed']) {
      assert(kinds.includes(kind), kinds.join());
    }
    for (const { out, err } of printed) assertFalse(`${out}${err}`.includes(token));
  }),
);

for (const runtime of runtimes) {
  test(`wrong usage and files on ${runtime}`, async () => {
    const wrong = await cli(runtime, ['status', '--membres', '3']);
    assertEquals([wrong.code, wrong.out, wrong.err.trim().split('\n').length], [2, '', 1], wrong.err);
    const directory = mkdtempSync(`${tmpdir()}/singlet-cli-`);
    try {
      const stores = await openFileStores(directory);
      const writer = { epoch: 1, uid: 'u', clusterId: 'c' };
      await stores.journal.claim('a', writer);
      await stores.journal.append('a', [{ payload: { n: 1 } }], 0, writer);
      await stores.journal.append('a', [{ payload: { n: 2 } }], 1, writer);
      await stores.close();
      const good = await cli(runtime, ['journal', 'check', directory, '--json']);
      assertEquals([good.code, JSON.parse(good.out).logs[0].ids], [0, 1], good.err);
      const segment = `${directory}/journal/${
        readdirSync(`${directory}/journal`).find((name) => name.endsWith('.seg'))
      }`;
      const bytes = readFileSync(segment);
      bytes[40] = bytes[40]! ^ 0xff;
      writeFileSync(segment, bytes);
      const damaged = await cli(runtime, ['journal', 'check', directory]);
      assertEquals(damaged.code, 1);
      assertStringIncludes(damaged.out, 'journal: damaged');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
}
