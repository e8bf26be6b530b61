/** The programs that the README and the first guide show do what is said beside them, on each runtime. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { blocksOf, fileOf } from '../../scripts/docs/pages.ts';
import { root } from '../../scripts/testing/files.ts';

const runtimes = ['bun', 'deno', 'node'] as const;
const blocks = ['README.md', 'docs/getting-started.md'].flatMap((page) => {
  return blocksOf(page, readFileSync(`${root}/${page}`, 'utf8'));
});

/** A program of the reader's, with what it has printed. */
class Running {
  readonly #child: ChildProcess;
  #printed = '';
  #ended: string | undefined;
  #heard = () => {};

  constructor(runtime: RuntimeName, args: readonly string[]) {
    const { file, args: own } = runtimeCommand(runtime, true);
    this.#child = spawn(file, [...own, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const take = (chunk: Uint8Array) => {
      this.#printed += new TextDecoder().decode(chunk);
      this.#heard();
    };
    this.#child.stdout!.on('data', take);
    this.#child.stderr!.on('data', take);
    this.#child.on('close', (code) => {
      this.#ended = `it ended with ${code}`;
      this.#heard();
    });
  }

  async says(pattern: RegExp): Promise<RegExpExecArray> {
    const deadline = Date.now() + 40_000;
    for (;;) {
      const found = pattern.exec(this.#printed);
      if (found !== null) return found;
      assert(this.#ended === undefined && Date.now() < deadline, `${this.#ended ?? 'it said only'}: ${this.#printed}`);
      const more = new Promise<void>((resolve) => this.#heard = resolve);
      await Promise.race([more, new Promise((resolve) => setTimeout(resolve, deadline - Date.now()))]);
    }
  }

  kill(): Promise<string> {
    return this.#end('SIGKILL');
  }

  interrupt(): Promise<string> {
    return this.#end('SIGINT');
  }

  async #end(signal: NodeJS.Signals): Promise<string> {
    if (this.#ended === undefined) this.#child.kill(signal);
    while (this.#ended === undefined) await new Promise<void>((resolve) => this.#heard = resolve);
    return this.#ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The files in a folder of their own, from which `singlet` is this package. */
async function inFolder(name: string, files: Readonly<Record<string, string>>, run: (folder: string) => Promise<void>) {
  const folder = `${root}/.tmp/${name}`;
  mkdirSync(folder, { recursive: true });
  try {
    for (const [file, text] of Object.entries(files)) writeFileSync(`${folder}/${file}`, text);
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('programs that are shown', () => {
  for (const runtime of runtimes) {
    test(`the ten lines of the README run on ${runtime}`, () => {
      const { text } = blocks.find(({ page, text }) => page === 'README.md' && text.includes('class JobScheduler'))!;
      assert(text.split('\n').length <= 16);
      // On a port that is free.
      const program = text.replace('.withPort(2551)', '').replace(/\.withSeeds\([^)]*\)/, '');
      return inFolder(`ten_lines_${runtime}`, { 'app.ts': program }, async (folder) => {
        const running = new Running(runtime, [`${folder}/app.ts`]);
        try {
          await running.says(/scheduling 42/);
        } finally {
          await running.kill();
        }
      });
    });

    test(`the counter of getting started runs on ${runtime}, and fails over`, async () => {
      const ports = [await freePort(), await freePort()];
      const files = Object.fromEntries(blocks.flatMap((block) => {
        const name = block.page === 'docs/getting-started.md' ? fileOf(block) : undefined;
        return name === undefined
          ? []
          : [[name, block.text.replaceAll('2551', `${ports[0]}`).replaceAll('2552', `${ports[1]}`)]];
      }));
      assertEquals(Object.keys(files), ['counter.ts', 'app.ts']);
      files['app.ts'] += `\n${
        blocks.find(({ page, text }) => page.endsWith('started.md') && text.includes('leave()'))!.text
      }`;
      await inFolder(`getting_started_${runtime}`, files, async (folder) => {
        const nodes = ports.map((port) => new Running(runtime, [`${folder}/app.ts`, `${port}`]));
        try {
          const hosts = await Promise.all(
            nodes.map(async (node) => (await node.says(/^\d, says 127\.0\.0\.1:(\d+)$/m))[1]),
          );
          assertEquals(hosts[0], hosts[1]);
          const at = ports.findIndex((port) => `${port}` === hosts[0]);
          await nodes[at]!.kill();
          await nodes[1 - at]!.says(
            /INFO singleton counter: this node hosts \{"from":"[^"]+","to":"[^"]+","reason":"crash","epoch":\d+/,
          );
          assertEquals(await nodes[1 - at]!.interrupt(), 'it ended with 0');
          await nodes[1 - at]!.says(/INFO this node has ended .*"left"/);
        } finally {
          await Promise.all(nodes.map((node) => node.kill()));
        }
      });
    });
  }
});
