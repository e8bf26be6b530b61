/** Secrets and tokens are never seen: real nodes are provoked in every way that makes them talk, and all they say is searched. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse } from '@std/assert';
import { tokenOf } from '../../node/token.ts';
import { exitOf, NodeProcess, ready, runtimes, scene, until } from './cluster_process.ts';

const secret = 'Tr0ub4dor-and-3-horses';
const token = 'operators-token-8f3a9c';
const wrong = 'a-wrong-secret-of-somebody';
const password = 'passw0rd-of-the-database';
/** Nobody listens there, so that errors say what they can. */
const database = `postgres://jobs:${password}@127.0.0.1:1/jobs`;

/** Each spelling in which one of them could slip out. */
async function spellings(): Promise<readonly string[]> {
  const all = [secret, token, password, await tokenOf(secret)];
  const hex = (text: string) =>
    [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return [...all, ...all.map((text) => btoa(text).replace(/=+$/, '')), ...all.map(hex), ...all.map(encodeURIComponent)];
}

function commandLine(process: NodeProcess): string {
  const file = `/proc/${process.pid}/cmdline`;
  return existsSync(file) ? readFileSync(file, 'latin1') : '';
}

async function provoke(url: string, heard: string[]): Promise<void> {
  const attempts: [string, RequestInit][] = [
    ...[
      '/',
      '/alive',
      '/ready',
      '/metrics',
      '/cluster/seed',
      '/cluster/members',
      '/cluster/singletons',
      '/jobs',
      '/nowhere',
    ]
      .map((path): [string, RequestInit] => [path, {}]),
    ...['/cluster/down', '/cluster/singletons/none/move', '/jobs'].flatMap((path): [string, RequestInit][] => [
      [path, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '{' }],
      [path, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '{"address":"h:1"}' }],
      [path, { method: 'POST', headers: { authorization: `Bearer ${wrong}` } }],
      [path, { method: 'PUT' }],
    ]),
  ];
  for (const [path, init] of attempts) {
    const response = await fetch(`${url}${path.replace(/^\//, '')}`, init);
    heard.push(JSON.stringify([...response.headers]), await response.text());
  }
}

describe('secrets', () => {
  for (const runtime of runtimes) {
    test(
      `S7: on ${runtime} they are in no log, error, answer, metric or process title`,
      scene(async (s) => {
        const heard: string[] = [];
        const env = { SINGLET_SECRET: secret, SINGLET_TOKEN: token, SINGLET_POSTGRES: database };
        // The client of the database reads more than the variables that are named in the help.
        const permissions = ['--allow-env', '--allow-read'];
        const spawn = (flags: readonly string[], variables: Readonly<Record<string, string>>) =>
          s.spawn(runtime, flags, variables, permissions);
        const process = spawn(['--log-level', 'debug'], env);
        const node = { process, line: await process.line };
        await ready(node);
        heard.push(commandLine(process));
        const operation = await fetch(`${node.line.url}cluster/down`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}` },
          body: '{"address":"h:1"}',
        });
        assertEquals(operation.status, 404, 'the token of the environment is the token');
        await operation.text();
        await provoke(node.line.url, heard);
        await until('the database of the environment is asked', 40_000, () => {
          return /jobs cannot be .*PostgreSQL/.test(process.output()) || undefined;
        });
        const stranger = spawn(['--seeds', node.line.address, '--log-level', 'debug'], {
          ...env,
          SINGLET_SECRET: wrong,
        });
        await until('the stranger is refused', 40_000, () => /peer refused/.test(process.output()) || undefined);
        const unfit = spawn(['--port', '70000'], env);
        const tooShort = spawn([], { ...env, SINGLET_TOKEN: 'short-one' });
        const unread = spawn([], { ...env, SINGLET_POSTGRES: database.replace('postgres:', 'mysql:') });
        for (const each of [unfit, tooShort, unread]) assertEquals((await exitOf(each)).code, 2);
        process.signal('SIGTERM');
        await exitOf(process);
        for (const each of [process, stranger, unfit, tooShort, unread]) heard.push(each.output());
        assert(heard.join('').length > 5_000);
        for (const text of await spellings()) assertFalse(heard.some((each) => each.includes(text)), text);
        assertFalse(heard.some((each) => each.includes(wrong)), "the wrong secret is somebody's too");
        assertFalse(heard.some((each) => each.includes('short-one')));
      }),
    );
  }

  test(
    'S7: files hold them as well',
    scene(async (s) => {
      const directory = mkdtempSync(join(tmpdir(), 'singlet-secrets-'));
      try {
        const [secretFile, tokenFile, databaseFile] = ['secret', 'token', 'database'].map((name) =>
          join(directory, name)
        ) as [
          string,
          string,
          string,
        ];
        writeFileSync(databaseFile, `${database}\n`);
        writeFileSync(secretFile, `${secret}\n`);
        writeFileSync(tokenFile, `${token}\n`);
        const process = s.spawn('node', [
          '--secret-file',
          secretFile,
          '--token-file',
          tokenFile,
          '--postgres-file',
          databaseFile,
        ]);
        const { url } = await process.line;
        const asked = (bearer: string) =>
          fetch(`${url}jobs`, { headers: { authorization: `Bearer ${bearer}` } }).then(async (response) => {
            await response.text();
            return response.status;
          });
        assertEquals([await asked(wrong), await asked(await tokenOf(secret))], [401, 401]);
        assert(await asked(token) !== 401);
        await until(
          'the database of the file is asked',
          40_000,
          () => /PostgreSQL/.test(process.output()) || undefined,
        );
        for (const text of await spellings()) {
          assertFalse(commandLine(process).includes(text) || process.output().includes(text), text);
        }
      } finally {
        rmSync(directory, { recursive: true });
      }
    }),
  );
});
