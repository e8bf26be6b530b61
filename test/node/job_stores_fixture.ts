/** Stores in memory that outlive those who open them, and that fail when a test says so. */
import type { JobStores } from '../../node/job_journal.ts';
import { type Journal, MemoryJournal, MemorySnapshotStore, StorageError } from '../../src/persistence/mod.ts';

export type Fault = 'open' | 'append' | 'append-after-write';

export class Disk {
  fault: Fault | undefined;
  /** Writes wait for it. */
  slow: Promise<void> | undefined;
  appends = 0;
  opens = 0;
  /** How many have it open. */
  users = 0;
  /** Those that have crashed: nothing they do reaches the disk any more. */
  readonly dead = new Set<string>();
  journal = new MemoryJournal();
  snapshots = new MemorySnapshotStore({ keepN: 2 });

  /** Gives the stores to one user at a time. */
  readonly open = async (user = ''): Promise<JobStores> => {
    if (this.dead.has(user)) throw new StorageError('crashed');
    if (this.fault === 'open') throw new StorageError('cannot open: this user may not (EACCES)', 'EACCES');
    if (this.users > 0) throw new StorageError('in use');
    this.opens++;
    this.users++;
    let closed = false;
    return {
      journal: this.#journalOf(user),
      snapshots: this.snapshots,
      close: async () => {
        if (!closed && !this.dead.has(user)) this.users--;
        closed = true;
      },
    };
  };

  /** Somebody removes everything under those who have it open: their next write fails. */
  remove(): void {
    this.journal = new MemoryJournal();
    this.snapshots = new MemorySnapshotStore({ keepN: 2 });
  }

  crash(user: string): void {
    this.dead.add(user);
    this.users = 0;
  }

  #journalOf(user: string): Journal {
    const { journal } = this;
    return {
      claim: (id, writer) => journal.claim(id, writer),
      append: async (...args) => {
        if (this.dead.has(user)) throw new StorageError('crashed');
        if (this.journal !== journal) throw new StorageError('the directory is gone (ENOENT)', 'ENOENT');
        if (this.fault === 'append') throw new StorageError('the disk is full (ENOSPC)', 'ENOSPC');
        await this.slow;
        const stored = await journal.append(...args);
        this.appends++;
        if (this.fault === 'append-after-write') throw new StorageError('the device failed (EIO)', 'EIO');
        return stored;
      },
      read: (...args) => journal.read(...args),
      readByTag: (...args) => journal.readByTag(...args),
      highestSeq: (id) => journal.highestSeq(id),
      delete: (id, toSeq) => journal.delete(id, toSeq),
      close: () => Promise.resolve(),
    };
  }
}
