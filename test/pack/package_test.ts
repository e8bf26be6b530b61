/** The published package: packed from a copy of the working tree, installed elsewhere, used from JavaScript and TypeScript. */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { ciTools, toolsFolder } from '../../scripts/testing/ci_tools.ts';
import { listFiles, root } from '../../scripts/testing/files.ts';
import { startRegistry } from './registry.ts';

const work = mkdtempSync(`${tmpdir()}/singlet-pack-`);
const user = `${work}/user`;
const tarball = 'singlet-0.1.0.tgz';

function shell(cwd: string, program: string, ...args: string[]): Promise<string> {
  return shellWith(process.env, cwd, program, ...args);
}

async function shellWith(env: NodeJS.ProcessEnv, cwd: string, program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env, maxBuffer: 1 << 24 });
    return stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

const tools = await ciTools();
const noTools = tools.kind === 'missing' && tools.reason;

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
const system = core.ActorSystem.create('a', { logLevel: 'off' });
const refused = await cluster.Cluster.join(system, { port: -1 }).catch((error) => error);
console.log('one copy of each class:', refused instanceof core.OptionsError);
const { address } = await cluster.Cluster.join(system);
await system.terminate();
console.log('a node:', /^127.0.0.1:[0-9]+$/.test(address));
`;
const printedByProgram = 'function function function\none copy of each class: true\na node: true';

const typed = `
import { Actor, type ActorRef, ActorSystem } from 'singlet';
import { SingletonKey } from 'singlet/cluster';
class Counter extends Actor<number> {
  static readonly singleton = SingletonKey.of<number>('counter');
  override onReceive(message: number): void { console.log(message); }
}
const system = ActorSystem.create('a', { logLevel: 'off' });
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
    const manifest = {
      type: 'module',
      dependencies: { singlet: `file:../${tarball}`, '@opentelemetry/api': '^1.9.0' },
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
    assertEquals((await shell(user, process.execPath, 'program.mjs')).trim(), printedByProgram);
  });

  const node22 = `${toolsFolder}/node_modules/node22/bin/node`;
  test('runs on Node 22', { skip: existsSync(node22) ? false : 'no Node 22 package for this machine' }, async () => {
    assertEquals((await shell(user, node22, 'program.mjs')).trim(), printedByProgram);
  });

  const node = olderNode();
  test('runs on the Node of this machine', { skip: node === undefined ? 'no node on the path' : false }, async () => {
    assertEquals((await shell(user, node ?? '', 'program.mjs')).trim(), printedByProgram);
  });

  const deno = `${root}/node_modules/.bin/deno`;
  for (const runtime of ['bun', 'deno']) {
    test(`runs on ${runtime}`, async () => {
      const args = runtime === 'deno' ? ['run', '-A', '--node-modules-dir=manual', 'program.mjs'] : ['program.mjs'];
      const printed = await shell(user, `${root}/node_modules/.bin/${runtime}`, ...args);
      assertEquals(printed.trim(), printedByProgram);
    });
  }

  test('npm: on Deno, without installing: a program, its types, and the command line tool', async () => {
    const registry = await startRegistry('singlet', `${work}/singlet-0.1.0.tgz`);
    try {
      const empty = mkdtempSync(`${work}/empty-`);
      // For registries that have not all of the newest cbor-extract, which is optional.
      writeFileSync(`${empty}/package.json`, '{ "overrides": { "cbor-extract": "2.2.2" } }');
      writeFileSync(`${empty}/deno.json`, '{ "nodeModulesDir": "none" }');
      writeFileSync(`${empty}/typed.ts`, typed.replaceAll(/'singlet([^']*)'/g, "'npm:singlet@0.1.0$1'"));
      const env = { ...process.env, NPM_CONFIG_REGISTRY: registry.url, DENO_DIR: `${empty}/cache`, NO_COLOR: '1' };
      await shellWith(env, empty, deno, 'check', 'typed.ts');
      await shellWith(env, empty, deno, 'run', '--allow-net', '--no-prompt', 'typed.ts');
      const help = await shellWith(env, empty, deno, 'run', '-A', 'npm:singlet@0.1.0', '--help');
      assertStringIncludes(help, 'Exit codes:');
    } finally {
      await registry.stop();
    }
  });

  test('is as small as the docs say', () => {
    assert(statSync(`${work}/${tarball}`).size < 1_100_000, String(statSync(`${work}/${tarball}`).size));
  });

  test('has the command line tool, and no script that runs on installing', async () => {
    assertStringIncludes(await shell(user, `${user}/node_modules/.bin/singlet`, '--help'), 'Exit codes:');
    const manifest = JSON.parse(readFileSync(`${user}/node_modules/singlet/package.json`, 'utf8'));
    assertEquals([manifest.scripts, manifest.peerDependenciesMeta], [undefined, {
      '@opentelemetry/api': { optional: true },
      postgres: { optional: true },
    }]);
  });

  test('publint finds nothing', { skip: noTools }, async () => {
    const printed = await shell(
      work,
      process.execPath,
      `${toolsFolder}/node_modules/publint/src/cli.js`,
      '--strict',
      tarball,
    );
    assertStringIncludes(printed, 'All good!');
  });

  test('arethetypeswrong finds nothing', { skip: noTools }, async () => {
    const cli = `${toolsFolder}/node_modules/@arethetypeswrong/cli/dist/index.js`;
    await shell(work, process.execPath, cli, tarball, '--profile', 'esm-only', '--quiet');
  });

  test('deno publish --dry-run passes', async () => {
    const source = `${work}/source`;
    rmSync(`${source}/node_modules`);
    const printed = await shell(source, deno, 'publish', '--dry-run', '--allow-dirty');
    assertEquals(printed.includes('slow type'), false);
    symlinkSync(`${root}/node_modules`, `${source}/node_modules`);
  });

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
