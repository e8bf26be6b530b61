/** Stores in memory that outlive those who open them, and that fail when a test says so. */
import type { JobStores } from '../../node/job_journal.ts';
import {
  MemoryJournal,
  MemorySnapshotStore,
  type NewEvent,
  StorageError,
  type StoredEvent,
  type Writer,
} from '../../src/persistence/mod.ts';

export type Fault = 'open' | 'append' | 'append-after-write';

/** A journal that survives its users' `close`. */
class LastingJournal extends MemoryJournal {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    super();
    this.#disk = disk;
  }

  override async append(
    id: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]> {
    if (this.#disk.fault === 'append') throw new StorageError('the disk is full (ENOSPC)', 'ENOSPC');
    const stored = await super.append(id, events, expectedSeq, writer);
    this.#disk.appends++;
    if (this.#disk.fault === 'append-after-write') throw new StorageError('the device failed (EIO)', 'EIO');
    return stored;
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}

class LastingSnapshots extends MemorySnapshotStore {
  override close(): Promise<void> {
    return Promise.resolve();
  }
}

export class Disk {
  fault: Fault | undefined;
  appends = 0;
  opens = 0;
  /** How many have it open. */
  users = 0;
  readonly journal: MemoryJournal = new LastingJournal(this);
  readonly snapshots: MemorySnapshotStore = new LastingSnapshots({ keepN: 2 });

  /** Gives the stores to one user at a time. */
  readonly open = async (): Promise<JobStores> => {
    if (this.fault === 'open') throw new StorageError('cannot open: this user may not (EACCES)', 'EACCES');
    if (this.users > 0) throw new StorageError('in use');
    this.opens++;
    this.users++;
    let closed = false;
    return {
      journal: this.journal,
      snapshots: this.snapshots,
      close: async () => {
        if (!closed) this.users--;
        closed = true;
      },
    };
  };
}
