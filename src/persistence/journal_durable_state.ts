/**
 * Durable states on top of any journal: each write is an event that holds the whole state, its number is the revision, and
 * older ones are deleted. So states get the journal's fencing, atomicity and group commit.
 */
import { DurableStateConcurrencyError, JournalConcurrencyError, StoreDamagedError } from './errors.ts';
import type { DurableState, DurableStateStore } from './durable_state_store.ts';
import type { Journal } from './journal.ts';
import { MemoryJournal } from './memory_journal.ts';
import { checkNumber } from './validation.ts';
import type { Claim, Writer } from './writer.ts';

/** Superseded states of one id that may wait for their deletion. */
const keptStates = 16;

/** Durable states in any `Journal`: of each id the latest event is the state, earlier ones are deleted. */
export class JournalDurableState implements DurableStateStore {
  readonly #journal: Journal;

  /** Takes a journal of its own: its ids are the ids of the states. */
  constructor(journal: Journal) {
    this.#journal = journal;
  }

  claim(persistenceId: string, writer: Writer): Promise<Claim> {
    return this.#journal.claim(persistenceId, writer);
  }

  async load(persistenceId: string): Promise<DurableState | undefined> {
    const revision = await this.#journal.highestSeq(persistenceId);
    if (revision === 0) return undefined;
    for await (const event of this.#journal.read(persistenceId, revision)) {
      // Whoever writes meanwhile has made a newer one, which is as good.
      return { value: event.payload, revision: event.sequenceNr, version: event.version };
    }
    throw new StoreDamagedError(
      persistenceId,
      0,
      `its revision is ${revision}, and there is no state of that revision`,
    );
  }

  async save(
    persistenceId: string,
    revision: number,
    state: { readonly value: unknown; readonly version?: number },
    writer: Writer,
  ): Promise<number> {
    checkNumber('DurableState', 'revision', revision);
    const { value, version = 0 } = state;
    try {
      await this.#journal.append(persistenceId, [{ payload: value, version }], revision, writer);
    } catch (error) {
      if (!(error instanceof JournalConcurrencyError)) throw error;
      throw new DurableStateConcurrencyError(persistenceId, error.expected, error.actual);
    }
    // The state is written; tidying up may fail and is tried again later.
    if (revision > 0 && revision % keptStates === 0) {
      await this.#journal.delete(persistenceId, revision).catch(() => {});
    }
    return revision + 1;
  }

  close(): Promise<void> {
    return this.#journal.close();
  }
}

/** Durable states in the memory of one process. */
export class MemoryDurableStateStore extends JournalDurableState {
  constructor() {
    super(new MemoryJournal());
  }
}
