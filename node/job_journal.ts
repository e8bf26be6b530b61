/**
 * Keeps a job table in a journal. An event holds the present rows of the jobs that have changed, so that writing one again
 * does no harm; a snapshot holds the rows of all. What is written is what the table says at that moment.
 */
import type { Environment, Logger } from '../src/actor/environment.ts';
import {
  type Claim,
  type Journal,
  JournalConcurrencyError,
  type SnapshotStore,
  StorageError,
  type Writer,
} from '../src/persistence/mod.ts';
import { recover } from '../src/persistence/recovery.ts';
import { limits } from '../src/limits.ts';
import type { JobTable } from './job_table.ts';
import { decodeRow, encodeOpenRow, type Row } from './job_table_state.ts';

export interface JobStores {
  readonly journal: Journal;
  /** Must itself remove old snapshots, and keep two at least. */
  readonly snapshots: SnapshotStore;
  close(): Promise<void>;
}

export interface JobJournalOptions {
  readonly persistenceId: string;
  readonly table: JobTable;
  readonly open: () => Promise<JobStores>;
  /** As whom to write. Throws when nothing may be written any more; asked before each write. */
  readonly writer: () => Writer;
  readonly environment: Environment;
  readonly log: Logger;
}

interface JobEvent {
  readonly rows: readonly Row[];
  readonly removed: readonly string[];
}

interface Opened {
  readonly stores: JobStores;
  readonly writer: Writer;
}

type Rows = Map<string, Row>;

const eventVersion = 1;

export class JobJournal {
  readonly #options: JobJournalOptions;
  /** Changes that are not durable; true when the definition is among them. */
  #changes = new Map<string, boolean>();
  /** Undefined before recovery, and from a failure to the next attempt. */
  #opened: Opened | undefined;
  /** Of the last event that is known to be durable; undefined before recovery. */
  #seq: number | undefined;
  /** As whom an event was written of which nobody knows whether it is there. */
  #doubtful: Writer | undefined;
  /** Jobs that are durable, as far as this table knows. */
  #storedJobs = 0;
  /** The store has lost what it had acknowledged, and that could not be written again. */
  #setBack = false;
  #rowsSinceSnapshot = 0;
  #saving: Promise<void> | undefined;
  #closed = false;

  constructor(options: JobJournalOptions) {
    this.#options = options;
  }

  get recovered(): boolean {
    return this.#seq !== undefined;
  }

  /** The store ends before what it had acknowledged, and that has been logged. */
  get setBack(): boolean {
    return this.#setBack;
  }

  /** To be told of each change of the table. */
  changed(id: string, what: 'definition' | 'run'): void {
    this.#changes.set(id, what === 'definition' || this.#changes.get(id) === true);
  }

  /** Every job of the table is to be written. */
  changedAll(): void {
    for (const job of this.#options.table.jobs()) this.changed(job.id, 'definition');
  }

  /**
   * Opens the stores and fills the table. Gives false when nothing was ever written. May be called again after a failure.
   * @throws FencedError, RecoveryError, and whatever the stores throw
   */
  async recover(): Promise<boolean> {
    const { persistenceId, table, environment, log } = this.#options;
    const { opened, claim } = await this.#open();
    try {
      const recovered = await recover<JobEvent, Rows>({
        persistenceId,
        journal: opened.stores.journal,
        snapshots: opened.stores.snapshots,
        environment,
        log,
        events: { version: eventVersion, read: (stored) => stored as JobEvent },
        states: { version: eventVersion, read: (stored) => toRows(stored as readonly Row[]) },
        warm: undefined,
        initialState: () => new Map(),
        onEvent: fold,
        check: () => void this.#options.writer(),
      }, claim);
      table.adopt([...recovered.state.values()].map(decodeRow), environment.clock.wall());
      this.#seq = recovered.sequenceNr;
      this.#storedJobs = table.size;
      this.#rowsSinceSnapshot = recovered.replayed;
    } catch (error) {
      await this.#drop();
      throw error;
    }
    return this.#seq > 0;
  }

  /**
   * Makes everything durable that has changed. When it fails the changes stay, and another call opens the stores anew.
   * @throws FencedError, JournalConcurrencyError: somebody else writes; others may go away
   */
  async write(): Promise<void> {
    this.#options.writer();
    if (this.#changes.size === 0) return;
    let changes: ReadonlyMap<string, boolean> = new Map();
    try {
      const { stores, writer } = this.#opened ?? await this.#reopen();
      // After the opening, which adds to them when the store has lost its jobs.
      changes = this.#changes;
      this.#changes = new Map();
      const payload = this.#event(changes);
      this.#doubtful = writer;
      await stores.journal.append(
        this.#options.persistenceId,
        [{ payload, version: eventVersion }],
        this.#seq!,
        writer,
      );
      this.#doubtful = undefined;
      this.#seq!++;
      this.#storedJobs = this.#options.table.size;
      this.#rowsSinceSnapshot += changes.size;
      this.#snapshotIfDue(stores);
    } catch (error) {
      for (const [id, definition] of changes) this.changed(id, definition ? 'definition' : 'run');
      await this.#drop();
      throw error;
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
  }

  #event(changes: ReadonlyMap<string, boolean>): JobEvent {
    const rows: Row[] = [];
    const removed: string[] = [];
    for (const [id, definition] of changes) {
      const job = this.#options.table.job(id);
      if (job === undefined) {
        removed.push(id);
        continue;
      }
      const row = encodeOpenRow(job);
      rows.push(definition ? row : withDefinition(row, id));
    }
    return { rows, removed };
  }

  async #open(): Promise<{ readonly opened: Opened; readonly claim: Claim }> {
    const { persistenceId, open, writer } = this.#options;
    const asked = writer();
    const stores = await open();
    try {
      if (this.#closed) throw new StorageError('the job scheduler has ended');
      const claim = await stores.journal.claim(persistenceId, asked);
      this.#opened = { stores, writer: claim.writer };
      return { opened: this.#opened, claim };
    } catch (error) {
      await stores.close().catch(() => {});
      throw error;
    }
  }

  /** After a failed write. The table goes on only from a journal in which nobody else has written meanwhile. */
  async #reopen(): Promise<Opened> {
    const { persistenceId } = this.#options;
    const { opened, claim: { highestSeq } } = await this.#open();
    if (highestSeq === this.#seq) return opened;
    if (highestSeq < this.#seq!) return await this.#lost(opened, highestSeq);
    if (highestSeq === this.#seq! + 1 && this.#doubtful !== undefined) {
      const { epoch, uid } = this.#doubtful;
      for await (const event of opened.stores.journal.read(persistenceId, highestSeq)) {
        if (event.epoch !== epoch || event.uid !== uid) continue;
        // The write had arrived. Its rows are written once more, as they are now.
        this.#seq = highestSeq;
        return opened;
      }
    }
    throw new JournalConcurrencyError(persistenceId, this.#seq!, highestSeq);
  }

  /**
   * The store has less than it had acknowledged: somebody has removed or replaced it under this host. An empty one begins anew
   * with this table. What something else is in may be somebody's: it stays as it is.
   */
  async #lost(opened: Opened, highestSeq: number): Promise<Opened> {
    const { persistenceId, table, log } = this.#options;
    const acknowledged = this.#seq!;
    const fields = { jobs: this.#storedJobs, acknowledged, found: highestSeq };
    const snapshots = await opened.stores.snapshots.list(persistenceId);
    if (highestSeq > 0 || snapshots.length > 0) {
      this.#setBack = true;
      log.error(
        `the store has lost what ${this.#storedJobs} jobs had on record since: it ends with event ${highestSeq}, ` +
          `and ${acknowledged} were acknowledged; the next instance goes on with what is there`,
        fields,
      );
      throw new JournalConcurrencyError(persistenceId, acknowledged, highestSeq);
    }
    log.error(
      `the store has lost ${this.#storedJobs} jobs: it is empty, and ${acknowledged} events were acknowledged; ` +
        `the ${table.size} jobs of this host are written to it as its new beginning`,
      fields,
    );
    this.#seq = 0;
    this.#doubtful = undefined;
    this.#rowsSinceSnapshot = 0;
    this.changedAll();
    return opened;
  }

  async #drop(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await this.#saving;
    await opened?.stores.close().catch(() => {});
  }

  #snapshotIfDue(stores: JobStores): void {
    const { table, log } = this.#options;
    const due = Math.max(limits.jobRowsPerSnapshot, 4 * table.size);
    if (this.#saving !== undefined || this.#rowsSinceSnapshot < due) return;
    this.#rowsSinceSnapshot = 0;
    this.#saving = this.#saveSnapshot(stores, this.#seq!)
      .catch((error) => log.warn(`no snapshot of the jobs was saved: ${String(error)}`))
      .then(() => this.#saving = undefined);
  }

  async #saveSnapshot({ snapshots, journal }: JobStores, sequenceNr: number): Promise<void> {
    const { persistenceId, table } = this.#options;
    const state = Array.from(table.jobs(), encodeOpenRow);
    await snapshots.save(persistenceId, { sequenceNr, state, version: eventVersion });
    const [oldest] = await snapshots.list(persistenceId);
    if (oldest !== undefined) await journal.delete(persistenceId, oldest);
  }
}

function fold(rows: Rows, { rows: changed, removed }: JobEvent): Rows {
  for (const id of removed) rows.delete(id);
  for (const row of changed) {
    const [definition] = row;
    if (typeof definition !== 'string') {
      rows.set((definition as { id: string }).id, row);
      continue;
    }
    const before = rows.get(definition);
    if (before === undefined) throw new Error(`a run of the job ${definition}, which is not there`);
    rows.set(definition, withDefinition(row, before[0]));
  }
  return rows;
}

function withDefinition([, ...rest]: Row, definition: unknown): Row {
  return [definition, ...rest];
}

function toRows(stored: readonly Row[]): Rows {
  return new Map(stored.map((row) => [(row[0] as { id: string }).id, row]));
}
