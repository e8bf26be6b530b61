/** A node beside a `node_modules` without the PostgreSQL client. */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { describe, test } from 'node:test';
import { assertEquals, assertMatch } from '@std/assert';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';

async function withoutClient(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(`${tmpdir()}/singlet-missing-`);
  try {
    for (const part of ['node.ts', 'node', 'src', 'adapters', 'package.json']) {
      await cp(`${repositoryRoot}${part}`, `${folder}/${part}`, { recursive: true });
    }
    await mkdir(`${folder}/node_modules`);
    for (const name of await readdir(`${repositoryRoot}node_modules`)) {
      if (name !== 'postgres') await symlink(`${repositoryRoot}node_modules/${name}`, `${folder}/node_modules/${name}`);
    }
    await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function startIn(folder: string, runtime: RuntimeName, flags: readonly string[]) {
  const { file, args } = runtimeCommand(runtime, true);
  const permissions = runtime === 'deno' ? ['--allow-env', '--allow-read'] : [];
  const child = spawn(file, [...args, ...permissions, 'node.ts', ...flags], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 40_000,
    env: { ...process.env, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
  });
  let output = '';
  child.stdout.on('data', (bytes) => output += String(bytes));
  child.stderr.on('data', (bytes) => output += String(bytes));
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, output }));
  });
}

describe('--postgres without its package', () => {
  for (const runtime of ['bun', 'deno', 'node'] as const) {
    test(`one line and exit code 2 (${runtime})`, () =>
      withoutClient(async (folder) => {
        const { code, output } = await startIn(folder, runtime, ['--postgres', 'postgres://user:hidden@127.0.0.1/x']);
        assertEquals(code, 2, output);
        assertMatch(output, /^--postgres: needs the package 'postgres', which is not installed \(npm i postgres\)\n$/);
      }));
  }
});
