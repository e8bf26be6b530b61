/** The contract of snapshot stores: states as of a sequence number, so that recovery need not replay everything. */

/** A state as of one event. */
export interface Snapshot {
  /** The last event that is part of the state. */
  readonly sequenceNr: number;
  readonly state: unknown;
  /** Of the schema it was written with. */
  readonly version: number;
}

/** A snapshot that is there and cannot be read. */
export interface SnapshotDamage {
  readonly sequenceNr: number;
  readonly detail: string;
}

/** Options that all snapshot stores have. */
export interface SnapshotStoreOptions {
  /** How many of the newest snapshots of an id are kept; 0 for all. Default 0 in memory, 3 elsewhere. */
  readonly keepN?: number;
}

/** Every implementation passes the suite in `test/contract/snapshot_store_contract.ts`. */
export interface SnapshotStore {
  /**
   * Writes a snapshot; the state is encoded before the promise is returned. One of the same number is replaced. Older ones
   * are then removed as `keepN` says; if that fails, the save has succeeded all the same.
   * @throws OptionsError, SerializationError, StorageError
   */
  save(persistenceId: string, snapshot: Snapshot): Promise<void>;
  /** The newest one that can be read. Damaged ones on the way are told to `onDamage` and passed over. */
  loadLatest(persistenceId: string, onDamage?: (damage: SnapshotDamage) => void): Promise<Snapshot | undefined>;
  /** The newest one with a number below `sequenceNr`. */
  loadBefore(
    persistenceId: string,
    sequenceNr: number,
    onDamage?: (damage: SnapshotDamage) => void,
  ): Promise<Snapshot | undefined>;
  /** Numbers of the snapshots there are, ascending, damaged ones included. */
  list(persistenceId: string): Promise<readonly number[]>;
  /** Deletes those up to and including `toSeq`. */
  delete(persistenceId: string, toSeq: number): Promise<void>;
  close(): Promise<void>;
}
