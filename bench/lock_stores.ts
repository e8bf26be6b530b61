/** The servers that elections by a lock need, on loopback, with nothing kept. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';

export interface Store {
  readonly port: number;
  /** What its client needs to be allowed to do, on runtimes that ask. */
  readonly flags: Readonly<Record<string, readonly string[]>>;
  close(): Promise<void>;
}

/** A string says why there is none. */
type Open = (folder: string) => Promise<Store | string>;

export const stores: Readonly<Record<string, Open>> = {
  redlock: (folder) =>
    open(folder, ['redlock', 'ioredis'], 'redis-server', ({ port, data }) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', data],
      ...['--save', '', '--appendonly', 'no'],
    ]),
  etcd3: (folder) =>
    open(folder, ['etcd3'], 'etcd', ({ port, data, spare }) => [
      `--data-dir=${data}`,
      `--listen-client-urls=http://127.0.0.1:${port}`,
      `--advertise-client-urls=http://127.0.0.1:${port}`,
      `--listen-peer-urls=http://127.0.0.1:${spare}`,
    ]),
};

const flags = { deno: ['--allow-read', '--allow-env', '--allow-sys'] };

async function open(
  folder: string,
  packages: readonly string[],
  program: string,
  args: (place: { readonly port: number; readonly spare: number; readonly data: string }) => string[],
): Promise<Store | string> {
  const require = createRequire(`${folder}/package.json`);
  for (const name of packages) {
    try {
      require.resolve(name);
    } catch {
      return `${folder} has no ${name}`;
    }
  }
  if (spawnSync(program, ['--version'], { stdio: 'ignore' }).error) return `this machine has no ${program}`;
  const data = mkdtempSync(`${tmpdir()}/singlet-locks-`);
  const [port, spare] = [await freePort(), await freePort()];
  const child = spawn(program, args({ port, spare, data }), { stdio: 'ignore' });
  const close = async (): Promise<void> => {
    await ended(child);
    rmSync(data, { recursive: true, force: true });
  };
  for (let tries = 0; tries < 400; tries += 1) {
    if (await answers(port)) return { port, flags, close };
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  await close();
  return `${program} did not start`;
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
