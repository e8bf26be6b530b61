/** A kind that counts its instances, and clusters of whole nodes that have it, on one manual clock. */
import { assertRejects } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { SingletonRegistry } from '../../src/singleton/registry.ts';
import type { SpawnError } from '../../src/singleton/spawn_errors.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';

/** Instances that exist, and the most that have existed at one time. */
export const count = { live: 0, peak: 0 };

export class Scheduler extends Actor<'where' | 'props' | 'fail'> {
  static readonly kind: string = 'scheduler';
  readonly #props: unknown;
  constructor(props: unknown) {
    super();
    this.#props = props;
  }
  override preStart(): void {
    count.live += 1;
    count.peak = Math.max(count.peak, count.live);
  }
  override postStop(): void {
    count.live -= 1;
  }
  override onReceive(message: 'where' | 'props' | 'fail'): void {
    if (message === 'fail') throw new Error('planned');
    this.context.sender.tell(message === 'where' ? this.cluster.address : this.#props);
  }
}

export class Reporter extends Scheduler {
  static override readonly kind = 'reporter';
}

export async function clusterOf(nodes: number, settings = {}): Promise<MemoryCluster> {
  count.live = 0;
  count.peak = 0;
  const cluster = new MemoryCluster();
  await cluster.grow(nodes, { kinds: [Scheduler, Reporter], ...settings });
  return cluster;
}

export function singletonOf(cluster: MemoryCluster, at: number): SingletonRegistry {
  return cluster.nodes[at]!.cluster.singleton;
}

export async function failure(cluster: MemoryCluster, promise: Promise<unknown>): Promise<SpawnError> {
  return await assertRejects(() => cluster.get(promise)) as SpawnError;
}
