/** Snapshots in the memory of one process. */
import { Codec, plainCodec } from '../wire/codec.ts';
import { StorageError } from './errors.ts';
import type { Snapshot, SnapshotDamage, SnapshotStore, SnapshotStoreOptions } from './snapshot_store.ts';
import { checkNumber, checkPersistenceId } from './validation.ts';

interface Kept {
  readonly sequenceNr: number;
  readonly version: number;
  readonly bytes: Uint8Array;
}

/** Snapshots in the memory of this process, for tests and for what a restart may forget. */
export class MemorySnapshotStore implements SnapshotStore {
  readonly #codec: Codec;
  readonly #keepN: number;
  /** Ascending for each id. */
  readonly #snapshots = new Map<string, readonly Kept[]>();
  #closed = false;

  constructor(options: SnapshotStoreOptions & { readonly codec?: Codec } = {}) {
    this.#codec = options.codec ?? plainCodec;
    this.#keepN = options.keepN ?? 0;
    checkNumber('SnapshotStoreOptions', 'keepN', this.#keepN);
  }

  async save(persistenceId: string, { sequenceNr, state, version }: Snapshot): Promise<void> {
    this.#checkOpen();
    checkPersistenceId(persistenceId);
    checkNumber('Snapshot', 'sequenceNr', sequenceNr);
    checkNumber('Snapshot', 'version', version);
    const kept = [
      ...this.#of(persistenceId).filter((one) => one.sequenceNr !== sequenceNr),
      { sequenceNr, version, bytes: this.#codec.encode(state) },
    ].sort((a, b) => a.sequenceNr - b.sequenceNr);
    this.#snapshots.set(persistenceId, this.#keepN === 0 ? kept : kept.slice(-this.#keepN));
  }

  loadLatest(persistenceId: string, onDamage?: (damage: SnapshotDamage) => void): Promise<Snapshot | undefined> {
    return this.loadBefore(persistenceId, Infinity, onDamage);
  }

  async loadBefore(
    persistenceId: string,
    sequenceNr: number,
    onDamage?: (damage: SnapshotDamage) => void,
  ): Promise<Snapshot | undefined> {
    this.#checkOpen();
    for (const kept of this.#of(persistenceId).filter((one) => one.sequenceNr < sequenceNr).reverse()) {
      try {
        return { sequenceNr: kept.sequenceNr, version: kept.version, state: this.#codec.decode(kept.bytes) };
      } catch (error) {
        onDamage?.({ sequenceNr: kept.sequenceNr, detail: String(error) });
      }
    }
    return undefined;
  }

  async list(persistenceId: string): Promise<readonly number[]> {
    this.#checkOpen();
    return this.#of(persistenceId).map((one) => one.sequenceNr);
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    this.#checkOpen();
    checkNumber('SnapshotStore', 'toSeq', toSeq);
    this.#snapshots.set(persistenceId, this.#of(persistenceId).filter((one) => one.sequenceNr > toSeq));
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  #of(persistenceId: string): readonly Kept[] {
    return this.#snapshots.get(persistenceId) ?? [];
  }

  #checkOpen(): void {
    if (this.#closed) throw new StorageError('the snapshot store is closed');
  }
}
