/** A real PostgreSQL of its own for a test, on loopback, as an ordinary user. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { promisify } from 'node:util';

const run = promisify(execFile);

function findPrograms(): string | undefined {
  const parent = '/usr/lib/postgresql';
  const versions = existsSync(parent) ? readdirSync(parent).map(Number).filter((one) => one >= 13) : [];
  const debian = versions.sort((a, b) => b - a).map((version) => `${parent}/${version}/bin`);
  const onPath = (process.env['PATH'] ?? '').split(':').filter((folder) => existsSync(`${folder}/initdb`));
  const folder = [...debian, ...onPath].find((one) => existsSync(`${one}/initdb`));
  return folder === undefined ? undefined : realpathSync(folder);
}

const programs = findPrograms();
const root = process.getuid?.() === 0;
/** PostgreSQL refuses to run as root. */
const asUser = root ? ['runuser', '-u', 'postgres', '--'] : [];

/** Why there can be no server here; false when there can. */
export async function postgresMissing(): Promise<string | false> {
  if (programs === undefined) return 'no PostgreSQL is installed (Debian: apt-get install postgresql)';
  if (!root) return false;
  return await run('runuser', ['-u', 'postgres', '--', 'true']).then(() => false as const, () => {
    return 'this is root, PostgreSQL does not run as root, and there is no user postgres to become';
  });
}

export interface PostgresServer {
  readonly url: string;
  /** Crashes it, and starts it on the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
  const base = await mkdtemp(`${tmpdir()}/singlet-postgres-`);
  const password = crypto.randomUUID();
  const data = `${base}/data`;
  const port = await freePort();
  await writeFile(`${base}/password`, `${password}\n`);
  if (root) await run('chown', ['-R', 'postgres', base]);
  const as = (program: string, ...args: string[]) => {
    const [file = '', ...rest] = [...asUser, `${programs}/${program}`, ...args];
    return { file, args: rest };
  };
  const init = as(
    'initdb',
    '-D',
    data,
    '-U',
    'singlet',
    '-A',
    'scram-sha-256',
    `--pwfile=${base}/password`,
    '-E',
    'UTF8',
    '--no-sync',
  );
  await run(init.file, init.args, { cwd: '/' });
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const server = as('postgres', '-D', data, ...settings.flatMap((setting) => ['-c', setting]));
  const end = as('pg_ctl', 'stop', '-D', data, '-m', 'immediate');
  let crash: () => Promise<void> = () => Promise.resolve();
  const start = async (): Promise<void> => {
    const child = spawn(server.file, server.args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    child.stderr.on('data', (bytes) => output += String(bytes));
    const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
    crash = async () => {
      await run(end.file, end.args, { cwd: '/' }).catch(() => child.kill('SIGTERM'));
      await ended;
    };
    for (let waited = 0; !output.includes('ready to accept connections'); waited += 50) {
      if (waited > 30_000 || child.exitCode !== null) throw new Error(`PostgreSQL does not start: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const stop = async (): Promise<void> => {
    await crash();
    await rm(base, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  const restart = async (): Promise<void> => {
    await crash();
    await start();
  };
  return { url: `postgres://singlet:${password}@127.0.0.1:${port}/postgres`, restart, stop };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
