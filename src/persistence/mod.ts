/** The public entry `singlet/persistence`: state that survives, and what it takes of stores. */
export type { DurableState, DurableStateStore } from './durable_state_store.ts';
export {
  DurableStateConcurrencyError,
  JournalConcurrencyError,
  RecoveryError,
  StorageError,
  StoreDamagedError,
  StoreLockedError,
} from './errors.ts';
export {
  checkAppend,
  decodePayload,
  encodePayloads,
  type Journal,
  type NewEvent,
  payloadCodec,
  type StoredEvent,
  type TaggedEvent,
} from './journal.ts';
export { JournalDurableState, MemoryDurableStateStore } from './journal_durable_state.ts';
export { MemoryJournal } from './memory_journal.ts';
export { MemorySnapshotStore } from './memory_snapshot_store.ts';
export type { Snapshot, SnapshotDamage, SnapshotStore, SnapshotStoreOptions } from './snapshot_store.ts';
export { checkNumber, checkPersistenceId, checkRange, checkTag, checkTags } from './validation.ts';
export { checkFence, checkWriter, type Claim, decideClaim, fencedBy, type HeldClaim, type Writer } from './writer.ts';
export { DurableStateActor } from './durable_state_actor.ts';
export { PersistentActor } from './persistent_actor.ts';
export type { Schema } from './schema.ts';
export { everyNEvents, neverSnapshot, type RetentionOptions, type SnapshotPolicy } from './snapshot_policy.ts';
export {
  type PersistenceStores,
  storesOf,
  usePersistence,
  type WriterIdentity,
  writerIdentityExtension,
} from './stores.ts';
