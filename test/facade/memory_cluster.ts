/** Several nodes in one process on one manual clock and an in-memory network: whole `Cluster`s, no sockets. */
import { ActorSystem } from '../../src/actor/system.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';

export interface MemoryNode {
  readonly system: ActorSystem;
  readonly cluster: Cluster;
  readonly address: string;
}

export class MemoryCluster {
  readonly environment: ManualEnvironment = new ManualEnvironment({ seed: 7 });
  /** One-way, between any two nodes. */
  delayMs = 0;
  readonly network: MemoryNetwork = new MemoryNetwork({ environment: this.environment, delayMs: () => this.delayMs });
  readonly nodes: MemoryNode[] = [];
  #port = 100;

  /** A node that joins by the first one that is still there; `at`: where an earlier one was. */
  async join(settings: ClusterSettings = {}, at?: string): Promise<MemoryNode> {
    const address = at ?? `127.0.0.1:${(this.#port += 1)}`;
    const system = ActorSystem.create('test', { environment: this.environment, logger: this.environment.log });
    const seeds = this.nodes.slice(0, 1).map((node) => node.address);
    const joining = Cluster.join(system, {
      seeds,
      http: false,
      transport: (identity) => this.network.transport({ address, ...identity }),
      ...settings,
    });
    let cluster: Cluster | undefined;
    let failure: unknown;
    joining.then((joined) => cluster = joined, (error) => failure = error);
    await this.until(() => cluster !== undefined || failure !== undefined);
    if (failure !== undefined) throw failure;
    const node = { system, cluster: cluster!, address };
    this.nodes.push(node);
    return node;
  }

  async grow(count: number, settings: ClusterSettings = {}): Promise<MemoryNode[]> {
    for (let at = 0; at < count; at += 1) await this.join(settings);
    return this.nodes;
  }

  /** Lets virtual time pass until `condition` holds; fails after `ms` of it. */
  async until(condition: () => boolean, ms = 60_000): Promise<void> {
    const end = this.environment.clock.now() + ms;
    await this.environment.settle();
    while (!condition()) {
      if (this.environment.clock.now() >= end) throw new Error(`not within ${ms} ms of virtual time: ${condition}`);
      await this.environment.elapse(5);
    }
  }

  async pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += 5) await this.environment.elapse(5);
  }

  /** The promise's value, with time passing meanwhile. */
  async get<T>(promise: Promise<T>): Promise<T> {
    let done: { value: T } | { error: unknown } | undefined;
    promise.then((value) => done = { value }, (error) => done = { error });
    await this.until(() => done !== undefined);
    if (done && 'error' in done) throw done.error;
    return (done as { value: T }).value;
  }

  async leave(node: MemoryNode): Promise<void> {
    await this.get(node.cluster.leave());
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }

  /** Its process is gone: its links break, and whatever it still does here is nobody's business. */
  lose(node: MemoryNode): void {
    this.network.crash(node.address);
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }
}
