/** A cluster in which one singleton is watched: who hosts it, what each sender got back, and what nobody got. */
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { hasInstance } from '../../src/singleton/manager.ts';
import type { StartSingletonSettings } from '../../src/singleton/start_options.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

export type Job = number | 'where';

export const jobKey: SingletonKey<Job> = SingletonKey.of<Job>('jobs');

/** What happened, in order: `start`, `stop` and numbers, each with the address it happened at. */
export type Line = readonly [what: 'start' | 'stop' | number, at: string];

export class Scene {
  readonly cluster: MemoryCluster = new MemoryCluster();
  readonly lines: Line[] = [];
  stopMs = 0;
  /** Milliseconds that one number takes. */
  workMs = 0;
  told = 0;

  get nodes(): MemoryNode[] {
    return this.cluster.nodes;
  }

  /** `settings` null: the node has only a ref. */
  async add(
    settings: StartSingletonSettings<Job> | null = {},
    node: ClusterSettings = {},
    at?: string,
  ): Promise<MemoryNode> {
    const joined = await this.cluster.join(node, at);
    if (settings !== null) this.start(joined, settings);
    return joined;
  }

  start(node: MemoryNode, settings: StartSingletonSettings<Job> = {}): void {
    node.cluster.singleton.start(jobKey, () => new Worker(this, node.address), settings);
  }

  ref(node: MemoryNode): ActorRef<Job> {
    return node.cluster.singleton.ref(jobKey);
  }

  /** Nodes that have an instance; those that crashed do not count. */
  hosts(): MemoryNode[] {
    return this.nodes.filter(({ cluster }) => {
      const phase = cluster.singleton.find('jobs')?.manager.state.phase;
      return phase !== undefined && hasInstance(phase);
    });
  }

  runs(node: MemoryNode): boolean {
    const hosts = this.hosts();
    const phase = hosts[0]?.cluster.singleton.find('jobs')?.manager.state.phase;
    return hosts.length === 1 && hosts[0] === node && phase?.kind === 'hosting' && phase.instance === 'running';
  }

  /** Until `node` alone hosts; how long it took. Never more than one meanwhile. */
  async untilHost(node: MemoryNode, ms = 30_000): Promise<number> {
    const { clock } = this.cluster.environment;
    const from = clock.now();
    await this.cluster.until(() => {
      assert(this.hosts().length <= 1, `two at once: ${this.hosts().map(({ address }) => address)}`);
      return this.runs(node);
    }, ms);
    return clock.now() - from;
  }

  tell(from: MemoryNode, count: number): void {
    for (let n = 0; n < count; n += 1) this.ref(from).tell(this.told++);
  }

  numbers(): number[] {
    return this.lines.map(([what]) => what).filter((what) => typeof what === 'number');
  }

  starts(): string[] {
    return this.lines.filter(([what]) => what === 'start').map(([, at]) => at);
  }

  /** Everyone reaches it, at `node`. */
  async reachedAt(node: MemoryNode): Promise<void> {
    for (const from of this.nodes) {
      assertEquals(await this.cluster.get(this.ref(from).ask('where', 1_000)), node.address);
    }
  }

  /** Every number told was handled once, and those of one call of `tell` in order. */
  async allHandled(): Promise<void> {
    await this.cluster.until(() => this.numbers().length >= this.told);
    await this.cluster.pass(500);
    assertEquals([...this.numbers()].sort((a, b) => a - b), Array.from({ length: this.told }, (_, n) => n));
    for (const { system } of this.nodes) assertEquals(system.deadLetters.count, 0);
  }
}

class Worker extends Actor<Job> {
  readonly #scene: Scene;
  readonly #at: string;

  constructor(scene: Scene, at: string) {
    super();
    this.#scene = scene;
    this.#at = at;
  }

  override preStart(): void {
    this.#scene.lines.push(['start', this.#at]);
  }

  override onReceive(job: Job): void | Promise<void> {
    if (job === 'where') return this.context.sender.tell(this.#at);
    const { workMs } = this.#scene;
    if (workMs === 0) this.#done(job);
    else return this.#sleep(workMs).then(() => this.#done(job));
  }

  override async postStop(): Promise<void> {
    if (this.#scene.stopMs > 0) await this.#sleep(this.#scene.stopMs);
    this.#scene.lines.push(['stop', this.#at]);
  }

  #done(job: number): void {
    this.#scene.lines.push([job, this.#at]);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.context.system.environment.timers.set(ms, resolve));
  }
}
