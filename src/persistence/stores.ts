/** Which stores the persistent actors of a system use, and as whom they write. */
import { ActorUsageError } from '../actor/errors.ts';
import { checkOption, rules } from '../actor/options.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { DurableStateStore } from './durable_state_store.ts';
import type { Journal } from './journal.ts';
import type { SnapshotStore } from './snapshot_store.ts';
import type { Writer } from './writer.ts';

/**
 * The stores of a system. An actor that needs one that is missing fails to start, and the error
 * says which.
 */
export interface PersistenceStores {
  readonly journal?: Journal;
  /** Without one there are no snapshots. */
  readonly snapshots?: SnapshotStore;
  readonly durableState?: DurableStateStore;
}

const extension = 'persistence';

/** What a layer that knows the cluster puts into the system's extensions under this name: gives uid and cluster id. */
export const writerIdentityExtension = 'writer-identity';

/** Names this process and its cluster when a store is claimed. */
export type WriterIdentity = () => { readonly uid: string; readonly clusterId: string | undefined };

/**
 * Gives the persistent actors of `system` their stores; to be called before the first of them is spawned. Closing the
 * stores, after the system has terminated, stays with the caller.
 * @throws OptionsError
 */
export function usePersistence(system: ActorSystem, stores: PersistenceStores): void {
  for (const field of ['journal', 'snapshots', 'durableState'] as const) {
    checkOption('PersistenceStores', field, stores[field], rules.object);
  }
  system.extensions.set(extension, stores);
}

/** @throws ActorUsageError when `usePersistence` has not been called */
export function storesOf(system: ActorSystem): PersistenceStores {
  const stores = system.extensions.get(extension) as PersistenceStores | undefined;
  if (stores === undefined) {
    throw new ActorUsageError(
      `actor system '${system.name}' has no stores for persistent actors: call usePersistence(system, { journal, … }) first`,
    );
  }
  return stores;
}

/**
 * As whom an actor writes. One with an epoch, a singleton, writes for its node and cluster. Any other counts as a cluster of
 * its own: the one that started last has the claim, and the one before it is fenced.
 */
export function writerFor(system: ActorSystem, epoch: number): Writer {
  if (epoch > 0) {
    const identity = system.extensions.get(writerIdentityExtension) as WriterIdentity | undefined;
    const cluster = system.extensions.get('cluster') as { readonly uid?: string; readonly name?: string } | undefined;
    const uid = identity?.().uid ?? cluster?.uid;
    if (uid !== undefined) return { epoch, uid, clusterId: identity?.().clusterId ?? cluster?.name ?? system.name };
  }
  const { random } = system.environment;
  const digits = () => Math.floor(random.next() * 2 ** 48).toString(16).padStart(12, '0');
  const uid = digits() + digits();
  return { epoch, uid, clusterId: `local-${uid}` };
}
