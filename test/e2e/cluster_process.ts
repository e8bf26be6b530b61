/** Real nodes for the end-to-end tests: started, watched over HTTP, and always gone when the test ends. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../demo/jobs_client.ts';
import { type Exit, type NodeLine, NodeProcess } from '../../demo/node_process.ts';
import { Receiver } from '../../demo/receiver.ts';
import type { RuntimeName } from '../../demo/runtime_commands.ts';

export { until } from '../../demo/jobs_client.ts';
export { type ReceivedCall, Receiver } from '../../demo/receiver.ts';
export { NodeProcess } from '../../demo/node_process.ts';
export type { RuntimeName } from '../../demo/runtime_commands.ts';

export const runtimes: readonly RuntimeName[] = ['bun', 'deno', 'node'];

/** Nothing here takes this long; a loaded machine may. */
export const deadlineMs = 40_000;

export interface TestNode {
  readonly process: NodeProcess;
  readonly line: NodeLine;
}

/** What a node says about itself to joiners. */
export interface SeedView {
  readonly clusterId: string | null | undefined;
  readonly uid: string;
  readonly members: readonly string[];
}

/** The nodes and receivers of one test. */
export class Scene {
  /** What its nodes run. */
  program = 'node.ts';
  readonly #processes: NodeProcess[] = [];
  readonly #receivers: Receiver[] = [];

  spawn(
    runtime: RuntimeName,
    flags: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
    permissions = permissionsFor(flags),
  ): NodeProcess {
    const process = new NodeProcess({
      runtime,
      program: this.program,
      flags,
      env,
      denoPermissions: permissions,
    });
    this.#processes.push(process);
    return process;
  }

  /** Starts a node and waits until it has printed its line. */
  async start(runtime: RuntimeName, flags: readonly string[] = []): Promise<TestNode> {
    const process = this.spawn(runtime, flags);
    return { process, line: await withDeadline(process.line, () => `${runtime} node starts\n${process.output()}`) };
  }

  /** Starts a node and waits until it is up in a cluster. */
  async startReady(runtime: RuntimeName, flags: readonly string[] = []): Promise<TestNode> {
    const node = await this.start(runtime, flags);
    await ready(node);
    return node;
  }

  /** The first forms a cluster, the others join it one after the other: their age is the order given. */
  async cluster(kinds: readonly RuntimeName[], flags: readonly string[] = []): Promise<TestNode[]> {
    const nodes: TestNode[] = [];
    for (const kind of kinds) {
      const seeds = nodes.length === 0 ? [] : ['--seeds', nodes.map((node) => node.line.address).join(',')];
      nodes.push(await this.startReady(kind, [...seeds, ...flags]));
    }
    await sameCluster(nodes);
    return nodes;
  }

  async receiver(): Promise<Receiver> {
    const receiver = await Receiver.start();
    this.#receivers.push(receiver);
    return receiver;
  }

  async end(): Promise<void> {
    for (const process of this.#processes) {
      process.signal('SIGCONT');
      process.signal('SIGKILL');
    }
    await Promise.all(this.#processes.map((process) => process.exited));
    await Promise.all(this.#receivers.map((receiver) => receiver.stop()));
  }

  /** Everything the nodes have printed, for a failure message. */
  output(): string {
    return this.#processes.map((process) => `--- ${process.runtime} ${process.pid}\n${process.output()}`).join('\n');
  }
}

/** As `--help` says. */
function permissionsFor(flags: readonly string[]): readonly string[] {
  if (flags.includes('--postgres')) return ['--allow-env', '--allow-read'];
  const at = flags.indexOf('--journal');
  return at < 0 ? [] : [`--allow-read=${flags[at + 1]}`, `--allow-write=${flags[at + 1]}`];
}

/** Runs a test with a scene of its own; a failure shows what the nodes printed. */
export function scene(run: (scene: Scene) => Promise<void>): () => Promise<void> {
  return async () => {
    const own = new Scene();
    try {
      await run(own);
    } catch (error) {
      const text = error instanceof Error ? error.stack ?? error.message : String(error);
      throw new Error(`${text}\n${own.output()}`, { cause: error });
    } finally {
      await own.end();
    }
  };
}

export async function withDeadline<T>(promise: Promise<T>, what: () => string, ms: number = deadlineMs): Promise<T> {
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`not within ${ms} ms: ${what()}`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    timeout.abort();
  }
}

export function exitOf(process: NodeProcess): Promise<Exit> {
  return withDeadline(process.exited, () => `${process.runtime} node exits\n${process.output()}`);
}

/** Ports nothing listens on at present; all are held until the last is known, so they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () =>
      new Promise<ReturnType<typeof createServer>>((resolve) => {
        const server = createServer();
        server.listen(0, '127.0.0.1', () => resolve(server));
      })),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export async function ready(node: TestNode): Promise<void> {
  await until(`${node.line.runtime} node ${node.line.address} is ready`, deadlineMs, async () => {
    const response = await request(node, '/ready');
    const text = await response.text();
    if (response.status === 200) return true;
    throw new Error(`${response.status} ${text}`);
  });
}

/** Waits until all nodes are in one cluster that has exactly them as members; returns its id. */
export async function sameCluster(nodes: readonly TestNode[]): Promise<string> {
  const addresses = nodes.map((node) => node.line.address).sort().join();
  return await until(`one cluster of ${addresses}`, deadlineMs, async () => {
    const views = await Promise.all(nodes.map(seedView));
    const [first] = views;
    for (const view of views) {
      const members = [...view.members].sort().join();
      if (typeof view.clusterId !== 'string' || view.clusterId !== first?.clusterId || members !== addresses) {
        throw new Error(`node ${view.uid} says cluster ${view.clusterId}, members ${members}`);
      }
    }
    return first!.clusterId!;
  });
}

export async function seedView(node: TestNode): Promise<SeedView> {
  return await json<SeedView>(await request(node, '/cluster/seed'));
}

export function request(node: TestNode, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(path, node.line.url), { signal: AbortSignal.timeout(10_000), ...init });
}

export async function json<T>(response: Response): Promise<T> {
  return await response.json() as T;
}

export function post(
  node: TestNode,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return request(node, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export { sleep };
