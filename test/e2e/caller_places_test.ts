/**
 * Callers where nodes cannot be: in workerd, the runtime of Workers, and in Chromium; through a planned move and the death of
 * the host and of the node they are connected to. And what a page or a Worker has to load for it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { runtimeCommand } from '../../demo/runtime_commands.ts';
import { browserFlags, ciTools, findBrowser, toolsFolder } from '../../scripts/testing/ci_tools.ts';
import { root } from '../../scripts/testing/files.ts';
import type { LoadOptions, LoadReport } from './caller_load.ts';
import { assertAccounted, callerToken, disturb, startHosts } from './caller_scene.ts';
import { scene, until, withDeadline } from './cluster_process.ts';

const tools = await ciTools();
const browser = findBrowser();
const withoutTools = tools.kind === 'missing' && tools.reason;
const withoutBrowser = browser === undefined ? 'no Chromium on this machine (apt-get install chromium)' : withoutTools;
const count = 300;

function tool<T>(name: string): T {
  if (tools.kind === 'missing') throw new Error(tools.reason);
  return tools.require(name) as T;
}

interface Bundler {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>;
}

async function bundle(entry: string, options: object): Promise<string> {
  const { outputFiles } = await tool<Bundler>('esbuild').build({
    entryPoints: [`${root}/${entry}`],
    bundle: true,
    write: false,
    platform: 'browser',
    logLevel: 'error',
    ...options,
  });
  return outputFiles[0]!.text;
}

function load(from: string, urls: readonly string[]): LoadOptions {
  return { from, urls, token: callerToken, count, everyMs: 20 };
}

/** The Worker `script` in workerd; ends with `stop`. */
async function startWorkerd(script: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(`${tmpdir()}/singlet-worker-`);
  await writeFile(`${folder}/worker.mjs`, script);
  const child: ChildProcess = spawn(runtimeCommand('node', true).file, [
    `${root}/test/e2e/workerd_host.mjs`,
    toolsFolder,
    'worker.mjs',
  ], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] });
  const output: string[] = [];
  const exited = new Promise<void>((resolve) => child.on('close', () => resolve()));
  createInterface({ input: child.stdout! }).on('line', (line) => output.push(line));
  createInterface({ input: child.stderr! }).on('line', (line) => output.push(line));
  const url = await until('workerd runs', 40_000, () => {
    if (child.exitCode !== null) throw new Error(output.join('\n'));
    return output.find((line) => line.startsWith('workerd '))?.slice('workerd '.length);
  });
  return {
    url,
    async stop() {
      child.stdin!.end();
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await exited;
      clearTimeout(late);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test(
  'R149: a Worker calls and cannot join',
  { skip: withoutTools },
  scene(async (s) => {
    const nodes = await startHosts(s);
    const script = await bundle('test/e2e/caller_worker.ts', {
      format: 'esm',
      conditions: ['workerd', 'worker', 'browser'],
    });
    const worker = await startWorkerd(script);
    try {
      const refusal = await (await fetch(new URL('/join', worker.url))).text();
      assertStringIncludes(refusal, 'ListenError');
      assertStringIncludes(refusal, 'Cluster.connect');
      const body = JSON.stringify(load('worker', nodes.map(({ line }) => line.address)));
      const running = fetch(new URL('/run', worker.url), { method: 'POST', body });
      const gateway = async () => [await (await fetch(new URL('/url', worker.url))).text()].filter((url) => url !== '');
      await until('it is connected', 40_000, async () => (await gateway()).length === 1);
      await disturb(nodes, gateway);
      const response = await withDeadline(running, () => 'the Worker ends', 90_000);
      const text = await response.text();
      assertEquals(response.status, 200, text);
      assertAccounted(JSON.parse(text) as LoadReport, nodes, count);
    } finally {
      await worker.stop();
    }
  }),
);

test('what a page loads to be a caller is under 60 kB, minified', { skip: withoutTools }, async () => {
  const { build } = tool<Bundler>('esbuild');
  const bundled = await build({
    stdin: { contents: `export { connect } from './src/callers/mod.ts';`, resolveDir: root, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['browser'],
    // Loaded only where frame integrity is asked for.
    external: ['./sealing.ts'],
    logLevel: 'error',
  });
  const { minify } = tool<{ minify(code: string, options: object): Promise<{ code: string }> }>('terser');
  const { code } = await minify(bundled.outputFiles[0]!.text, {
    module: true,
    ecma: 2022,
    compress: { passes: 3, ecma: 2022 },
    mangle: true,
  });
  const bytes = new TextEncoder().encode(code).length;
  assert(bytes < 60_000, `${bytes} bytes`);
  // Nothing that only nodes need: neither the codec of frames between nodes, nor HTTP.
  for (const text of ['cbor', 'hono', '/cluster/members']) assert(!code.includes(text), text);
});

interface Page {
  goto(url: string): Promise<unknown>;
  on(event: string, listener: (value: never) => void): void;
  evaluate<T>(run: string): Promise<T>;
}
interface Browser {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

function launch(): Promise<Browser> {
  const { chromium } = tool<{ chromium: { launch(options: object): Promise<Browser> } }>('playwright-core');
  return chromium.launch({ executablePath: browser, headless: true, args: browserFlags });
}

for (const runtime of ['bun', 'node'] as const) {
  test(
    `the chat room of the examples on ${runtime}: two pages hear each other`,
    { skip: withoutBrowser },
    scene(async (s) => {
      s.program = 'examples/chat_room.ts';
      const room = s.spawn(runtime, ['--serve']);
      const url = await until('the room is open', 40_000, () => {
        return room.stdout.find((line) => line.startsWith('open '))?.slice('open '.length);
      });
      const running = await launch();
      try {
        const pages = [await running.newPage(), await running.newPage()];
        const problems: string[] = [];
        for (const page of pages) {
          page.on('pageerror', (error: Error) => problems.push(error.message));
          await page.goto(url);
          const state = `document.getElementById('state').textContent`;
          await until('it is in', 20_000, async () => (await page.evaluate<string>(state)).startsWith('guest-'));
        }
        await pages[0]!.evaluate(`document.getElementById('text').value = 'hello';
          document.getElementById('say').requestSubmit()`);
        for (const page of pages) {
          const lines = `document.getElementById('lines').textContent`;
          await until('it is heard', 20_000, async () => (await page.evaluate<string>(lines)).endsWith(': hello'));
        }
        assertEquals(problems, []);
      } finally {
        await running.close();
      }
    }),
  );
}

test(
  'R149: a page in Chromium calls, under a policy that forbids code from text',
  { skip: withoutBrowser },
  scene(async (s) => {
    const nodes = await startHosts(s);
    const script = await bundle('test/e2e/caller_page.ts', { format: 'iife', conditions: ['browser'] });
    const pages = createServer((request, response) => {
      const isScript = request.url === '/page.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      response.setHeader('content-security-policy', "default-src 'none'; script-src 'self'; connect-src *");
      response.end(isScript ? script : '<!doctype html><title>caller</title><script src="/page.js"></script>');
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', () => resolve()));
    const running = await launch();
    try {
      const page = await running.newPage();
      const problems: string[] = [];
      page.on('pageerror', (error: Error) => problems.push(error.message));
      await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
      const options = JSON.stringify(load('page', nodes.map(({ line }) => line.address)));
      await page.evaluate(`void (globalThis.report = globalThis.runLoad(${options}))`);
      const gateway = async () =>
        [await page.evaluate<string>(`globalThis.callerUrl ?? ''`)].filter((url) => url !== '');
      await until('it is connected', 40_000, async () => (await gateway()).length === 1);
      await disturb(nodes, gateway);
      const report = await withDeadline(page.evaluate<LoadReport>('globalThis.report'), () => 'the page ends', 90_000);
      assertAccounted(report, nodes, count);
      assert(report.reconnects > 0);
      assertEquals(problems, []);
    } finally {
      await running.close();
      pages.close();
      pages.closeAllConnections();
    }
  }),
);
