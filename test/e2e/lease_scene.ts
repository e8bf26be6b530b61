/** Worker processes with a leased singleton, and the fenced store they write to. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { deadlineMs, freePorts, until } from './cluster_process.ts';
import { FencedStore } from './fenced_store.ts';
import { Forwarder } from './forwarder.ts';
import type { WorkerLine, WorkerSettings } from './lease_worker.ts';

export class Worker {
  readonly runtime: RuntimeName;
  readonly lines: WorkerLine[] = [];
  readonly exited: Promise<void>;
  readonly #log: string[] = [];
  readonly #child: ChildProcess;

  constructor(runtime: RuntimeName, settings: WorkerSettings) {
    this.runtime = runtime;
    const { file, args } = runtimeCommand(runtime, true);
    // What the package `postgres` needs.
    const more = runtime === 'deno' && settings.postgres !== undefined ? ['--allow-env', '--allow-read'] : [];
    this.#child = spawn(file, [...args, ...more, 'test/e2e/lease_worker.ts', JSON.stringify(settings)], {
      cwd: repositoryRoot,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.exited = new Promise((resolve) => {
      this.#child.on('error', (error) => this.#log.push(String(error)));
      this.#child.on('close', (code, signal) => {
        this.#log.push(`ended: ${signal ?? code}`);
        resolve();
      });
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => this.#take(line));
    createInterface({ input: this.#child.stderr! }).on('line', (line) => this.#log.push(line));
  }

  get url(): string | undefined {
    return this.of('listening')[0]?.url;
  }

  get address(): string | undefined {
    return this.of('listening')[0]?.address;
  }

  of<K extends WorkerLine['kind']>(kind: K): Extract<WorkerLine, { kind: K }>[] {
    return this.lines.filter((line): line is Extract<WorkerLine, { kind: K }> => line.kind === kind);
  }

  /** When its instances have started to handle a message. */
  handled(): { readonly token: number; readonly at: number }[] {
    return this.lines.flatMap((line) => line.kind === 'handled' ? [line] : []);
  }

  /** Has it logged a line with this text? */
  says(text: string): boolean {
    return this.#log.some((line) => line.includes(text));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** What it printed, without the thousands of handled messages. */
  output(): string {
    const shown = this.lines.filter((line) => line.kind !== 'handled').map((line) => JSON.stringify(line));
    return [`--- ${this.runtime}, handled ${this.handled().length}`, ...shown, ...this.#log].join('\n');
  }

  #take(line: string): void {
    if (line.startsWith('{"kind"')) this.lines.push(JSON.parse(line) as WorkerLine);
    else this.#log.push(line);
  }
}

export interface SceneBackend {
  /** URLs, one for each worker, or one for all. */
  readonly etcd?: readonly string[];
  readonly postgres?: string;
  /** Whoever reaches a worker does so by a way that can be cut, and etcd decides about splits. */
  readonly split?: boolean;
}

const wallOffsetsMs = [0, 3_600_000, -3_600_000];

export class LeaseScene {
  readonly store: FencedStore;
  readonly workers: Worker[] = [];
  /** To each of the workers. */
  readonly ways: Forwarder[] = [];

  private constructor(store: FencedStore) {
    this.store = store;
  }

  /** Runs a test with workers of its own; they are gone when it ends, and a failure shows what they printed. */
  static test(run: (scene: LeaseScene) => Promise<void>): () => Promise<void> {
    return async () => {
      const scene = new LeaseScene(await FencedStore.start());
      try {
        await run(scene);
      } catch (error) {
        const text = error instanceof Error ? error.stack ?? error.message : String(error);
        throw new Error(`${text}\n${scene.workers.map((worker) => worker.output()).join('\n')}`, { cause: error });
      } finally {
        for (const worker of scene.workers) worker.signal('SIGKILL');
        await Promise.all(scene.workers.map((worker) => worker.exited));
        await Promise.all(scene.ways.map((way) => way.cut()));
        await scene.store.stop();
      }
    };
  }

  /**
   * One cluster; they join one after the other, so that their age is the order given. All of them vote, or each has its URL
   * of etcd or PostgreSQL, where the names are of this scene alone. The wall clock of the second is an hour ahead, that of
   * the third an hour behind.
   */
  async start(runtimes: readonly RuntimeName[], ttlMs: number, backend: SceneBackend = {}): Promise<void> {
    const { etcd, postgres, split = false } = backend;
    const { length } = runtimes;
    const ports = await freePorts(split ? 2 * length : length);
    for (const [index, at] of ports.splice(length).entries()) {
      this.ways.push(await Forwarder.to(`http://127.0.0.1:${ports[index]}`, at));
    }
    const addresses = ports.map((port, index) => `127.0.0.1:${this.ways[index]?.port ?? port}`);
    for (const [index, runtime] of runtimes.entries()) {
      const way = this.ways[index];
      const worker = new Worker(runtime, {
        port: ports[index]!,
        seeds: addresses.slice(0, index),
        voters: etcd === undefined && postgres === undefined ? addresses : [],
        ttlMs,
        wallOffsetMs: wallOffsetsMs[index] ?? 0,
        prefix: `scene_${ports[0]}_`,
        store: this.store.url,
        ...(etcd === undefined ? {} : { etcd: etcd[index] ?? etcd[0]! }),
        ...(postgres === undefined ? {} : { postgres }),
        ...(way === undefined ? {} : { advertisedPort: way.port, leaseMajority: true }),
      });
      this.workers.push(worker);
      await this.ready(worker);
    }
    await this.members(addresses.length);
  }

  /** Waits until a worker is in a cluster. */
  async ready(worker: Worker): Promise<void> {
    await until(`${worker.runtime} worker is up`, deadlineMs, async () => {
      const members = await this.#members(worker);
      return members.some(({ address, status }) => address === worker.address && status === 'up') || undefined;
    });
  }

  /** Waits until the youngest sees so many members, all of them up. */
  async members(count: number): Promise<void> {
    await until(`${count} members are up`, deadlineMs, async () => {
      const members = await this.#members(this.workers.at(-1)!);
      return (members.length === count && members.every(({ status }) => status === 'up')) || undefined;
    });
  }

  async #members(worker: Worker): Promise<readonly { readonly address: string; readonly status: string }[]> {
    if (worker.url === undefined) return [];
    const response = await fetch(new URL('/cluster/members', worker.url), { signal: AbortSignal.timeout(2_000) });
    return (await response.json() as { members: { address: string; status: string }[] }).members;
  }

  /** Has the instance on `worker` begin a handler that stands at the gate of the store. */
  async hold(worker: Worker): Promise<void> {
    await fetch(new URL('/hold', worker.url), { method: 'POST', signal: AbortSignal.timeout(10_000) });
    await until('a handler is held', deadlineMs, () => this.store.waiting > 0 || undefined);
  }

  /** Waits until an instance with a token above `token` has handled and written something; where, and since when. */
  async successor(token: number): Promise<{ readonly worker: Worker; readonly token: number; readonly at: number }> {
    return await until(`an instance after ${token}`, deadlineMs, () => {
      const next = this.store.successorOf(token);
      const worker = this.workers.find((one) => one.handled().some((line) => line.token === next));
      if (next === undefined || worker === undefined) return undefined;
      return { worker, token: next, at: worker.handled().find((line) => line.token === next)!.at };
    });
  }
}
