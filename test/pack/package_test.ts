/** The published package: packed from a copy of the working tree, installed elsewhere, used from JavaScript and TypeScript. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assert, assertEquals } from '@std/assert';
import { listFiles, root } from '../../scripts/testing/files.ts';

const work = mkdtempSync(`${tmpdir()}/singlet-pack-`);
const user = `${work}/user`;

async function shell(cwd: string, program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, maxBuffer: 1 << 24 });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

/** A Node that does not run TypeScript, as most users have it: the one on the path outside of npm scripts. */
function olderNode(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
  return folders.map((folder) => `${folder}/node`).find((path) => existsSync(path));
}

const program = `
import * as core from 'singlet';
import * as cluster from 'singlet/cluster';
import * as http from 'singlet/http';
import manifest from 'singlet/package.json' with { type: 'json' };
const own = globalThis.Bun ? './bun' : globalThis.Deno ? './deno' : './node';
const others = ['./bun', './deno', './node', './package.json'].filter((name) => name !== own);
for (const name of Object.keys(manifest.exports)) {
  if (!others.includes(name)) await import('singlet' + name.slice(1));
}
console.log(typeof core.ActorSystem.create, typeof cluster.SingletonKey.of, typeof http.createApp);
`;

const typed = `
import { Actor, type ActorRef, ActorSystem } from 'singlet';
import { SingletonKey } from 'singlet/cluster';
class Counter extends Actor<number> {
  static readonly singleton = SingletonKey.of<number>('counter');
  override onReceive(message: number): void { console.log(message); }
}
const system = ActorSystem.create('a');
export const ref: ActorRef<number> = system.spawn(Counter, 'counter');
// @ts-expect-error: not a number
ref.tell('text');
`;

describe('the published package', () => {
  before(async () => {
    const source = `${work}/source`;
    for (const path of listFiles()) cpSync(`${root}/${path}`, `${source}/${path}`, { recursive: true });
    symlinkSync(`${root}/node_modules`, `${source}/node_modules`);
    await shell(source, 'npm', 'pack', '--silent', '--pack-destination', work);
    mkdirSync(user);
    const tarball = 'singlet-0.1.0.tgz';
    const manifest = {
      type: 'module',
      dependencies: { singlet: `file:../${tarball}` },
      overrides: { 'cbor-extract': '2.2.2' },
    };
    writeFileSync(`${user}/package.json`, JSON.stringify(manifest));
    writeFileSync(`${user}/program.mjs`, program);
    writeFileSync(`${user}/typed.ts`, typed);
    await shell(user, 'npm', 'i', '--silent', '--no-audit', '--no-fund');
  });
  after(() => rmSync(work, { recursive: true, force: true }));

  test('puts the source package.json back', () => {
    assertEquals(readFileSync(`${work}/source/package.json`, 'utf8'), readFileSync(`${root}/package.json`, 'utf8'));
  });

  test('brings no test runtime along', () => {
    for (const name of ['node24', 'bun', 'deno', 'typescript']) {
      assert(!existsSync(`${user}/node_modules/${name}`), `${name} was installed`);
    }
    assert(!existsSync(`${user}/node_modules/singlet/src`), 'TypeScript sources were packed');
  });

  test('runs on Node 24', async () => {
    assertEquals((await shell(user, process.execPath, 'program.mjs')).trim(), 'function function function');
  });

  const node = olderNode();
  test('runs on the Node of this machine', { skip: node === undefined ? 'no node on the path' : false }, async () => {
    assertEquals((await shell(user, node ?? '', 'program.mjs')).trim(), 'function function function');
  });

  for (const runtime of ['bun', 'deno']) {
    test(`runs on ${runtime}`, async () => {
      const args = runtime === 'deno' ? ['run', '-A', '--node-modules-dir=manual', 'program.mjs'] : ['program.mjs'];
      const printed = await shell(user, `${root}/node_modules/.bin/${runtime}`, ...args);
      assertEquals(printed.trim(), 'function function function');
    });
  }

  for (const resolution of ['nodenext', 'bundler']) {
    test(`has types under ${resolution} resolution`, async () => {
      const module = resolution === 'bundler' ? 'esnext' : resolution;
      await shell(
        user,
        process.execPath,
        `${root}/node_modules/typescript/bin/tsc`,
        '--noEmit',
        '--strict',
        '--target',
        'es2023',
        '--lib',
        'es2023,webworker',
        '--skipLibCheck',
        '--module',
        module,
        '--moduleResolution',
        resolution,
        'typed.ts',
      );
    });
  }
});
