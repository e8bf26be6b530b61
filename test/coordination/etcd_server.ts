/** A real etcd on loopback for one test file, or the reason why there is none. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { runtimeMeans } from '../../src/coordination/http_means.ts';
import { testTls } from '../contract/tls_fixture.ts';

const places = ['/usr/bin/etcd', '/usr/local/bin/etcd', '/bin/etcd'];

/** Installs Debian's `etcd-server` where that is possible and it is missing. */
function findEtcd(): string | undefined {
  const found = places.find((path) => existsSync(path));
  if (found !== undefined) return found;
  const root = typeof process.getuid === 'function' && process.getuid() === 0;
  if (!root || !existsSync('/usr/bin/apt-get')) return undefined;
  spawnSync('apt-get', ['install', '-y', '-qq', 'etcd-server'], {
    timeout: 100_000,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return places.find((path) => existsSync(path));
}

const binary = findEtcd();

/** False when etcd can be run. */
export const noEtcd: string | false = binary === undefined ? 'there is no etcd (Debian package etcd-server)' : false;

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

export class EtcdServer {
  readonly url: string;
  readonly #folder: string;
  readonly #peerUrl: string;
  readonly #secure: boolean;
  readonly #signedTokens: boolean;
  #child: ReturnType<typeof spawn> | undefined;

  private constructor(port: number, peerPort: number, secure: boolean, signedTokens: boolean) {
    this.#secure = secure;
    this.#signedTokens = signedTokens;
    this.url = `${secure ? 'https' : 'http'}://127.0.0.1:${port}`;
    this.#peerUrl = `http://127.0.0.1:${peerPort}`;
    this.#folder = mkdtempSync(join(tmpdir(), 'etcd-'));
  }

  /**
   * `secure`: clients come over TLS, with the certificate of the tests. `signedTokens`: who logs in is given a JWT, which ends
   * with every change of users and roles.
   */
  static async start({ secure = false, signedTokens = false } = {}): Promise<EtcdServer> {
    const server = new EtcdServer(await freePort(), await freePort(), secure, signedTokens);
    await server.run();
    return server;
  }

  /** Starts it, again after `stop`, with the same data. */
  async run(): Promise<void> {
    const options: Record<string, string> = {
      'name': 'test',
      'data-dir': join(this.#folder, 'data'),
      'listen-client-urls': this.url,
      'advertise-client-urls': this.url,
      'listen-peer-urls': this.#peerUrl,
      'initial-advertise-peer-urls': this.#peerUrl,
      'initial-cluster': `test=${this.#peerUrl}`,
      'heartbeat-interval': '50',
      'election-timeout': '500',
      'bcrypt-cost': '4',
      ...(this.#secure ? this.#certificate() : {}),
      ...(this.#signedTokens ? this.#signing() : {}),
    };
    const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    this.#child = spawn(binary!, flags, { stdio: 'ignore' });
    const means = await runtimeMeans();
    const tls = this.#secure ? { ca: testTls.ca } : undefined;
    for (let tries = 0; tries < 200; tries += 1) {
      const answer = means.fetch(`${this.url}/health`, {}, tls);
      const healthy = await answer.then((given) => given.text()).catch(() => '');
      if (healthy.includes('true')) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('etcd did not start');
  }

  #certificate(): Record<string, string> {
    const [cert, key] = [join(this.#folder, 'cert.pem'), join(this.#folder, 'key.pem')];
    writeFileSync(cert, testTls.cert);
    writeFileSync(key, testTls.key);
    return { 'cert-file': cert, 'key-file': key };
  }

  #signing(): Record<string, string> {
    const key = join(this.#folder, 'signing.key');
    writeFileSync(key, 'a key to sign the tokens of these tests with');
    return { 'auth-token': `jwt,priv-key=${key},sign-method=HS256,ttl=10m` };
  }

  /** SIGSTOP makes it one that does not answer, SIGCONT wakes it. (Deno's `child.kill` works once only.) */
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    if (this.#child?.pid !== undefined) process.kill(this.#child.pid, name);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    this.signal('SIGKILL');
    this.#child = undefined;
    await gone;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
