/** A journal in the memory of one process: for tests, and for state that need not survive the process. */
import type { Codec } from '../wire/codec.ts';
import { JournalConcurrencyError, StorageError } from './errors.ts';
import {
  checkAppend,
  decodePayload,
  encodePayloads,
  type Journal,
  type NewEvent,
  payloadCodec,
  type StoredEvent,
  type TaggedEvent,
} from './journal.ts';
import { checkNumber, checkPersistenceId, checkRange } from './validation.ts';
import { checkFence, checkWriter, type Claim, decideClaim, fencedBy, type HeldClaim, type Writer } from './writer.ts';

interface Entry {
  readonly event: Omit<StoredEvent, 'payload'>;
  readonly bytes: Uint8Array;
  readonly offset: number;
}

interface Log {
  /** Those that have not been deleted, ascending. */
  entries: Entry[];
  highestSeq: number;
  deletedTo: number;
  claim: HeldClaim | undefined;
}

const noTags: readonly string[] = [];

/** Payloads go through the real codec, so that what a test sees is what a disk would give back. */
export class MemoryJournal implements Journal {
  readonly #codec: Codec;
  readonly #logs = new Map<string, Log>();
  readonly #tagged = new Map<string, Entry[]>();
  #offsets = 0;
  #closed = false;

  constructor(options: { readonly codec?: Codec } = {}) {
    this.#codec = options.codec ?? payloadCodec;
  }

  async claim(persistenceId: string, writer: Writer): Promise<Claim> {
    this.#checkOpen();
    checkPersistenceId(persistenceId);
    checkWriter(writer);
    const log = this.#logOf(persistenceId);
    const verdict = decideClaim(log.claim, writer);
    if (verdict.kind === 'fenced') throw fencedBy(persistenceId, writer, verdict.by);
    log.claim = verdict.claim;
    const { epoch, uid, clusterId } = verdict.claim;
    return { writer: { epoch, uid, clusterId }, highestSeq: log.highestSeq, deletedTo: log.deletedTo };
  }

  async append(
    persistenceId: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]> {
    this.#checkOpen();
    checkAppend(persistenceId, events, expectedSeq, writer);
    if (events.length === 0) return [];
    const encoded = encodePayloads(this.#codec, events);
    const log = this.#logOf(persistenceId);
    checkFence(persistenceId, log.claim, writer);
    if (log.highestSeq !== expectedSeq) {
      throw new JournalConcurrencyError(persistenceId, expectedSeq, log.highestSeq);
    }
    return events.map(({ payload, tags = noTags, version = 0 }, index) => {
      const sequenceNr = expectedSeq + 1 + index;
      const event = {
        persistenceId,
        sequenceNr,
        tags: [...new Set(tags)],
        version,
        epoch: writer.epoch,
        uid: writer.uid,
      };
      const entry: Entry = { event, bytes: encoded[index]!, offset: this.#offsets += 1 };
      log.entries.push(entry);
      log.highestSeq = sequenceNr;
      for (const tag of event.tags) this.#taggedWith(tag).push(entry);
      return { ...event, payload };
    });
  }

  async *read(persistenceId: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    this.#checkOpen();
    checkRange(fromSeq, toSeq);
    const log = this.#logs.get(persistenceId);
    if (log === undefined) return;
    const end = Math.min(toSeq, log.highestSeq);
    // Looked up again for each event, since some may be deleted while the consumer is busy.
    for (let seq = fromSeq; seq <= end; seq += 1) {
      const first = log.entries[0]?.event.sequenceNr;
      if (first === undefined) return;
      seq = Math.max(seq, first);
      const entry = log.entries[seq - first];
      if (entry !== undefined && seq <= end) yield this.#stored(entry);
    }
  }

  async *readByTag(tag: string, after?: string): AsyncGenerator<TaggedEvent, void, void> {
    this.#checkOpen();
    const start = after === undefined ? 0 : Number(after);
    checkNumber('Journal', 'after', start);
    for (const entry of [...this.#tagged.get(tag) ?? []]) {
      if (entry.offset <= start) continue;
      const { persistenceId, sequenceNr } = entry.event;
      if (sequenceNr <= (this.#logs.get(persistenceId)?.deletedTo ?? 0)) continue;
      yield { ...this.#stored(entry), offset: String(entry.offset) };
    }
  }

  async highestSeq(persistenceId: string): Promise<number> {
    this.#checkOpen();
    return this.#logs.get(persistenceId)?.highestSeq ?? 0;
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    this.#checkOpen();
    checkPersistenceId(persistenceId);
    checkNumber('Journal', 'toSeq', toSeq);
    const log = this.#logs.get(persistenceId);
    if (log === undefined) return;
    const end = Math.min(toSeq, log.highestSeq);
    if (end <= log.deletedTo) return;
    log.deletedTo = end;
    const gone = log.entries.filter((entry) => entry.event.sequenceNr <= end);
    log.entries = log.entries.slice(gone.length);
    const dropped = new Set(gone);
    for (const tag of new Set(gone.flatMap((entry) => entry.event.tags))) {
      this.#tagged.set(tag, this.#taggedWith(tag).filter((entry) => !dropped.has(entry)));
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  #stored({ event, bytes }: Entry): StoredEvent {
    const { persistenceId, sequenceNr } = event;
    return { ...event, payload: decodePayload(this.#codec, bytes, persistenceId, sequenceNr) };
  }

  #logOf(persistenceId: string): Log {
    let log = this.#logs.get(persistenceId);
    if (log === undefined) {
      log = { entries: [], highestSeq: 0, deletedTo: 0, claim: undefined };
      this.#logs.set(persistenceId, log);
    }
    return log;
  }

  #taggedWith(tag: string): Entry[] {
    let entries = this.#tagged.get(tag);
    if (entries === undefined) this.#tagged.set(tag, entries = []);
    return entries;
  }

  #checkOpen(): void {
    if (this.#closed) throw new StorageError('the journal is closed');
  }
}
