/**
 * `npm run docs:pictures`: the pictures of the status page in `docs/pictures`, taken with Chromium from three nodes on three
 * runtimes, after a planned move and a crash of the host.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { isReady, postJob, until } from '../demo/jobs_client.ts';
import { killAllNodes, NodeProcess } from '../demo/node_process.ts';
import { Receiver } from '../demo/receiver.ts';
import { browserFlags, ciTools, findBrowser } from './testing/ci_tools.ts';
import { root } from './testing/files.ts';

interface Page {
  goto(url: string): Promise<unknown>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  emulateMedia(media: { colorScheme: 'light' | 'dark' }): Promise<void>;
  screenshot(options: object): Promise<Uint8Array>;
}

const folder = `${root}/docs/pictures`;
const patienceMs = 20_000;

async function startNode(runtime: 'bun' | 'deno' | 'node', port: number, seeds: readonly string[]) {
  const flags = ['--port', String(port), ...(seeds.length === 0 ? [] : ['--seeds', seeds.join(',')])];
  const node = new NodeProcess({ runtime, flags });
  const line = await node.line;
  await until(`${runtime} is ready`, patienceMs, async () => await isReady(line.url) ? true : undefined);
  return { node, line };
}

async function hostOf(url: string): Promise<string | null> {
  const response = await fetch(new URL('/cluster/singletons/job-scheduler', url));
  return (await response.json() as { host: string | null }).host;
}

async function takePictures(page: Page): Promise<void> {
  const receiver = await Receiver.start();
  const bun = await startNode('bun', 2551, []);
  const deno = await startNode('deno', 2552, [bun.line.address]);
  const node = await startNode('node', 2553, [bun.line.address]);
  await page.goto(node.line.url);
  for (let n = 0; n < 20; n += 1) {
    await postJob(node.line.url, { id: `job-${n}`, everyMs: 1_000, url: receiver.url(`/job-${n}`) }, patienceMs);
  }
  const reading = setInterval(() => {
    for (let n = 0; n < 4; n += 1) {
      void fetch(new URL('/jobs', node.line.url)).then((answer) => answer.text(), () => {});
    }
  }, 50);
  await sleep(20_000);
  bun.node.signal('SIGTERM');
  await until('the move', patienceMs, async () => await hostOf(node.line.url) === deno.line.address || undefined);
  const again = await startNode('bun', 2551, [node.line.address]);
  await sleep(25_000);
  deno.node.signal('SIGKILL');
  await until('the failover', patienceMs, async () => await hostOf(node.line.url) === node.line.address || undefined);
  await sleep(12_000);
  await save(page, 'status-page.png', { width: 1_000, height: 790 }, 'light');
  await save(page, 'status-page-phone.png', { width: 360, height: 790 }, 'dark');
  clearInterval(reading);
  for (const { node: each } of [again, node]) each.signal('SIGTERM');
  await receiver.stop();
}

async function save(page: Page, name: string, size: { width: number; height: number }, colorScheme: 'light' | 'dark') {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme });
  await sleep(2_500);
  writeFileSync(`${folder}/${name}`, await page.screenshot({ type: 'png' }));
  console.log(`docs/pictures/${name}`);
}

const tools = await ciTools();
const program = findBrowser();
if (tools.kind === 'missing' || program === undefined) {
  console.error(tools.kind === 'missing' ? tools.reason : 'no Chromium: apt-get install chromium');
  process.exit(1);
}
const { chromium } = tools.require('playwright-core');
const browser = await chromium.launch({ executablePath: program, headless: true, args: browserFlags });
try {
  mkdirSync(folder, { recursive: true });
  await takePictures(await browser.newPage());
} finally {
  killAllNodes();
  await browser.close();
}
process.exit(0);
