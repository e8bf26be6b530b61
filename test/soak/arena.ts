/** The cluster of a soak test: the registry, nodes that may host, senders under load, and what is known of them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseNodeLine } from '../../demo/node_process.ts';
import { runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import type { LedgerReport } from './ledger.ts';
import type { SenderReport } from './load.ts';
import type { Notice } from './registry.ts';
import { deadlineMs, SoakProcess } from './soak_process.ts';

export type Handling = Extract<Notice, { kind: 'handling' }>;

const token = 'token-of-the-soak-tests';

export interface SoakNode {
  readonly runtime: RuntimeName;
  readonly process: SoakProcess;
  /** Resolves once it is up and has started the singleton. */
  readonly up: Promise<string>;
  /** `host:port`; undefined before it is up. */
  address: string | undefined;
  readonly sender: number;
  readonly hosts: boolean;
  /** It was told to end. */
  ending: boolean;
}

export interface JoinOptions {
  readonly hosts?: boolean;
  readonly sender?: number;
  readonly port?: number;
}

/** Numbers from a seed, the same on every run (Mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Arena {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'singlet-soak-'));
  readonly nodes: SoakNode[] = [];
  readonly notices: Notice[] = [];
  /** The runtime of each host, by epoch. */
  readonly runtimes = new Map<number, RuntimeName>();
  readonly #trace: ((text: string) => void) | undefined;
  #registry: SoakProcess | undefined;
  #registryPort = 0;
  #ended = false;
  readonly #waits = new Set<() => void>();

  /** `trace` is told everything that is done and seen. */
  constructor(trace?: (text: string) => void) {
    this.#trace = trace;
  }

  async start(): Promise<void> {
    const program = new URL('./registry.ts', import.meta.url).pathname;
    const listening = Promise.withResolvers<number>();
    this.#registry = new SoakProcess('registry', process.execPath, [program, 'serve'], (line) => {
      if (!line.startsWith('{')) return;
      const notice = JSON.parse(line) as Notice;
      if (notice.kind === 'listening') return listening.resolve(notice.port);
      this.notices.push(notice);
      if (notice.kind === 'handling') this.#noteRuntime(notice);
      this.#trace?.(line);
      this.#wake();
    });
    void this.#registry.exited.then((exit) => {
      listening.reject(new Error(`the registry ended with ${exit}: ${this.#registry!.output()}`));
      this.#wake();
    });
    this.#registryPort = await listening.promise;
  }

  #noteRuntime({ name, epoch }: Handling): void {
    // The latest of the nodes that had this address.
    const node = this.nodes.findLast(({ address }) => address === name);
    if (node) this.runtimes.set(epoch, node.runtime);
  }

  /** Starts a node; with `await node.up` it is a member. Its seeds are those that are up. */
  join(runtime: RuntimeName, { hosts = false, sender = 0, port = 0 }: JoinOptions = {}): SoakNode {
    const { file, args } = runtimeCommand(runtime, true);
    const seeds = this.live().flatMap(({ address }) => address ?? []);
    const more = runtime === 'deno' ? ['--allow-read', '--allow-write', '--allow-env'] : [];
    const flags = ['--registry', String(this.#registryPort), '--folder', this.folder, '--seeds', seeds.join(',')];
    flags.push('--token', token, '--sender', String(sender), '--port', String(port), ...(hosts ? ['--hosts'] : []));
    const child = new SoakProcess(
      `${runtime} node`,
      file,
      [...args, ...more, 'test/soak/soak_node.ts', ...flags],
      (line) => {
        if (line.includes('singleton ledger')) this.#trace?.(`    ${node.address} ${line}`);
      },
    );
    const node: SoakNode = {
      runtime,
      process: child,
      up: child.line('is up', (line) => parseNodeLine(line)?.address),
      address: undefined,
      sender,
      hosts,
      ending: false,
    };
    node.up.then((address) => {
      node.address = address;
      this.#trace?.(`${address} (${runtime}) is up`);
      this.#wake();
    }, () => {});
    void child.exited.then(() => this.#wake());
    this.nodes.push(node);
    return node;
  }

  live(): SoakNode[] {
    return this.nodes.filter((node) => !node.ending && node.process.exit === undefined);
  }

  senders(): SoakNode[] {
    return this.nodes.filter((node) => node.sender > 0);
  }

  kill(node: SoakNode): void {
    this.#trace?.(`SIGKILL ${node.address} (${node.runtime})`);
    node.ending = true;
    node.process.signal('SIGKILL');
  }

  /** SIGTERM; resolves when it has left and ended, with exit code 0. */
  async leave(node: SoakNode): Promise<void> {
    this.#trace?.(`SIGTERM ${node.address} (${node.runtime})`);
    node.ending = true;
    node.process.signal('SIGTERM');
    const exit = await Promise.race([node.process.exited, this.until('the leaver ends', () => node.process.exit)]);
    if (exit !== 0) throw new Error(`a leaver ended with ${exit}:\n${node.process.output()}`);
  }

  /** The hostings in turn, as the registry saw their first messages handled. */
  handlings(): Handling[] {
    return this.notices.filter((notice) => notice.kind === 'handling');
  }

  /** The node of the live instance, once it has handled something. */
  host(): SoakNode | undefined {
    const last = this.notices.at(-1);
    if (last?.kind !== 'handling') return undefined;
    return this.live().find((node) => node.address === last.name);
  }

  /** Asks `by` to have the singleton moved to `to`; false when `by` does not know that `to` may host. */
  async move(by: SoakNode, to: SoakNode): Promise<boolean> {
    this.#trace?.(`move to ${to.address} (${to.runtime}), by ${by.address} (${by.runtime})`);
    const response = await fetch(`http://${by.address}/cluster/singletons/ledger/move`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ to: to.address }),
      signal: AbortSignal.timeout(deadlineMs),
    });
    const text = await response.text();
    if (response.status !== 200 && response.status !== 409) throw new Error(`move: ${response.status} ${text}`);
    return response.status === 200;
  }

  /** Looks again at every notice and every end of a process. Fails with the registry, or with a node nobody ended. */
  until<T>(what: string, look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => end(new Error(`${what}: not within ${deadlineMs} ms`)), deadlineMs);
      const end = (error: unknown): void => {
        clearTimeout(timeout);
        this.#waits.delete(check);
        reject(error);
      };
      const check = (): void => {
        try {
          this.check();
          const found = look();
          if (found === undefined) return;
          clearTimeout(timeout);
          this.#waits.delete(check);
          resolve(found);
        } catch (error) {
          end(error);
        }
      };
      this.#waits.add(check);
      check();
    });
  }

  check(): void {
    const overlap = this.notices.find((notice) => notice.kind === 'overlap');
    if (overlap) throw new Error(`two at once: ${overlap.why}`);
    const registry = this.#registry;
    if (!this.#ended && registry?.exit !== undefined) throw new Error(registry.output());
    const dead = this.nodes.find((node) => !node.ending && node.process.exit !== undefined);
    if (dead) throw new Error(`a node ended by itself:\n${dead.process.output()}`);
  }

  load(perSender: number): void {
    for (const { process } of this.senders()) process.send(`load ${perSender}`);
  }

  /** Stops the load and waits until nothing is buffered any more. */
  async settle(): Promise<SenderReport[]> {
    this.load(0);
    const startedAt = performance.now();
    for (;;) {
      const reports = await Promise.all(this.senders().map(({ process }) => process.ask<SenderReport>('counters')));
      if (reports.every(({ counters }) => counters.buffered === 0) || performance.now() - startedAt > deadlineMs) {
        return reports;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
      this.check();
    }
  }

  /** What the singleton itself says. */
  async ledgerReport(): Promise<LedgerReport> {
    const [asker] = this.live().filter((node) => node.sender === 0 && node.address !== undefined);
    return await asker!.process.ask<LedgerReport>('report');
  }

  async end(): Promise<void> {
    this.#ended = true;
    for (const node of this.nodes) this.kill(node);
    this.#registry?.signal('SIGKILL');
    await Promise.all([...this.nodes.map((node) => node.process.exited), this.#registry?.exited]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The latest output of every process that still runs or ended by itself. */
  output(): string {
    return this.nodes.filter((node) => !node.ending || node.process.exit !== 'SIGKILL').slice(-10)
      .map((node) => node.process.output()).join('\n');
  }

  #wake(): void {
    for (const wait of [...this.#waits]) wait();
  }
}
