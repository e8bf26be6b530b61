/** Saving snapshots beside the commands, and tidying up after one. */
import type { Logger } from '../actor/environment.ts';
import type { Journal } from './journal.ts';
import type { SnapshotPolicy } from './snapshot_policy.ts';
import type { Snapshot, SnapshotStore } from './snapshot_store.ts';

export class Snapshotting {
  /** Of the newest snapshot that is saved or being saved. */
  lastSeq = 0;
  readonly #persistenceId: string;
  readonly #store: SnapshotStore;
  readonly #journal: Journal;
  readonly #log: Logger;
  #saving: Promise<void> | undefined = undefined;

  constructor(persistenceId: string, store: SnapshotStore, journal: Journal, log: Logger) {
    this.#persistenceId = persistenceId;
    this.#store = store;
    this.#journal = journal;
    this.#log = log;
  }

  /** One save at a time; a policy that asks again meanwhile is asked later. */
  get busy(): boolean {
    return this.#saving !== undefined;
  }

  /** Saves in the background; a failure is a warning, since the events are there. */
  start(snapshot: Snapshot, policy: SnapshotPolicy): void {
    const before = this.lastSeq;
    this.save(snapshot, policy).catch((error) => {
      this.lastSeq = before;
      this.#log.warn(`the snapshot of number ${snapshot.sequenceNr} was not saved: ${String(error)}`, {
        persistenceId: this.#persistenceId,
        error,
      });
    });
  }

  /** The state is encoded before the promise is returned, unless another save is under way. */
  save(snapshot: Snapshot, policy: SnapshotPolicy): Promise<void> {
    this.lastSeq = Math.max(this.lastSeq, snapshot.sequenceNr);
    const write = () => this.#store.save(this.#persistenceId, snapshot);
    const saved = this.#saving === undefined ? write() : this.#saving.then(write);
    const tidied = saved.then(() => this.#tidy(policy));
    const done: Promise<void> = tidied.catch(() => {}).then(() => {
      if (this.#saving === done) this.#saving = undefined;
    });
    this.#saving = done;
    return saved;
  }

  /** Whether a snapshot holds everything up to `sequenceNr`. */
  async covers(sequenceNr: number): Promise<boolean> {
    const snapshot = await this.#store.loadLatest(this.#persistenceId);
    return snapshot !== undefined && snapshot.sequenceNr >= sequenceNr;
  }

  async #tidy(policy: SnapshotPolicy): Promise<void> {
    const { keepSnapshots, deleteEvents } = policy;
    if (keepSnapshots === 0 && !deleteEvents) return;
    try {
      const numbers = await this.#store.list(this.#persistenceId);
      const kept = keepSnapshots === 0 ? numbers : numbers.slice(-keepSnapshots);
      const oldest = kept[0];
      if (oldest === undefined) return;
      if (kept.length < numbers.length) await this.#store.delete(this.#persistenceId, oldest - 1);
      if (deleteEvents) await this.#journal.delete(this.#persistenceId, oldest);
    } catch (error) {
      this.#log.warn('old snapshots or events could not be deleted', { persistenceId: this.#persistenceId, error });
    }
  }
}
