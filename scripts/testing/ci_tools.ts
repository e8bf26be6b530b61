/** The large tools of `ci/tools`, which have a lock of their own and are installed when a test first needs them. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { root } from './files.ts';

export const toolsFolder: string = `${root}/ci/tools`;

export type Tools = { readonly kind: 'ready'; readonly require: NodeJS.Require } | {
  readonly kind: 'missing';
  /** Why, for the skipped tests. */
  readonly reason: string;
};

let installed: Promise<Tools> | undefined;

/** Installs them once, at most two minutes; never rejects. */
export function ciTools(): Promise<Tools> {
  return installed ??= install();
}

/** npm writes this file last. */
const written = `${toolsFolder}/node_modules/.package-lock.json`;
/** There while one process installs; two at once would undo each other's work. */
const installing = `${toolsFolder}/.installing`;

/** True when it is this process's turn to install; false once another one has done it, or has taken too long. */
async function takesTurn(): Promise<boolean> {
  for (let left = 240; left > 0 && !existsSync(written); left -= 1) {
    try {
      mkdirSync(installing);
      return true;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  return !existsSync(written);
}

async function install(): Promise<Tools> {
  if (await takesTurn()) {
    try {
      const options = { cwd: toolsFolder, timeout: 120_000 };
      await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], options);
    } catch (error) {
      return { kind: 'missing', reason: `npm could not install ci/tools: ${firstLine(error)}` };
    } finally {
      rmSync(installing, { recursive: true, force: true });
    }
  }
  return { kind: 'ready', require: createRequire(`${toolsFolder}/package.json`) };
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Undefined when there is none. */
export function findBrowser(): string | undefined {
  return browsers.find((path) => existsSync(path));
}

/** Quiet, and without a network of its own. */
export const browserFlags: readonly string[] = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
