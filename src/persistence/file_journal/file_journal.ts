/** A journal in files. Many actors share one log, and one sync makes the appends of all of them durable. */
import { limits } from '../../limits.ts';
import {
  checkAppend,
  checkFence,
  checkNumber,
  checkPersistenceId,
  checkRange,
  checkWriter,
  type Claim,
  decideClaim,
  encodePayloads,
  fencedBy,
  type HeldClaim,
  type Journal,
  JournalConcurrencyError,
  type NewEvent,
  payloadCodec,
  StorageError,
  StoreDamagedError,
  type StoredEvent,
  type TaggedEvent,
  type Writer,
} from '../mod.ts';
import type { Codec } from '../../wire/codec.ts';
import type { FileSystem } from './file_system.ts';
import { GroupCommit, type Outcome, type Task } from './group_commit.ts';
import { type CutTail, loadLog, LogFiles } from './log_files.ts';
import { LogReader } from './log_reader.ts';
import { encodeRecord, type EventBytes, type LogRecord } from './record.ts';

/** Options of `FileJournal.open`. */
export interface FileJournalOptions {
  readonly system: FileSystem;
  readonly directory: string;
  /** Encodes payloads; default: the plain wire codec. */
  readonly codec?: Codec;
  /** Default `limits.journalSegmentBytes`. */
  readonly segmentBytes?: number;
  /** Of whoever owns the directory; later owners have higher ones. Default 0. */
  readonly epoch?: number;
  /** Throws when the directory belongs to somebody else now. Asked after each write and before its acknowledgement. */
  readonly checkOwner?: () => Promise<void>;
  readonly onWarning?: (message: string) => void;
}

type Request =
  | { readonly kind: 'claim'; readonly id: string; readonly writer: Writer }
  | { readonly kind: 'delete'; readonly id: string; readonly toSeq: number }
  | {
    readonly kind: 'append';
    readonly id: string;
    readonly expectedSeq: number;
    readonly writer: Writer;
    readonly events: readonly EventBytes[];
  };

interface JournalTask extends Task {
  readonly request: Request;
}

/** An id's head as it will be once the group is durable. */
interface Staged {
  highestSeq: number;
  deletedTo: number;
  claim: HeldClaim | undefined;
}

/**
 * A journal in the files of one directory: what `append` has acknowledged survives a crash and a loss of power. For the
 * processes of one machine, one at a time.
 */
export class FileJournal implements Journal {
  /** What opening it has cut off: the remains of writes that nobody was told of. */
  readonly cut: readonly CutTail[];
  readonly #files: LogFiles;
  readonly #codec: Codec;
  readonly #segmentBytes: number;
  readonly #checkOwner: () => Promise<void>;
  readonly #warn: (message: string) => void;
  readonly #commits: GroupCommit<JournalTask>;
  /** Bytes of the active segment from which on the next one is begun. */
  #rollAt: number;
  #closed = false;

  private constructor(files: LogFiles, cut: readonly CutTail[], options: FileJournalOptions) {
    this.#files = files;
    this.cut = cut;
    this.#codec = options.codec ?? payloadCodec;
    this.#segmentBytes = options.segmentBytes ?? limits.journalSegmentBytes;
    this.#rollAt = this.#segmentBytes;
    this.#checkOwner = options.checkOwner ?? (() => Promise.resolve());
    this.#warn = options.onWarning ?? (() => {});
    this.#commits = new GroupCommit((group) => this.#commit(group), {
      maxTasks: limits.journalGroup,
      maxBytes: limits.journalGroupBytes,
    });
  }

  /** @throws StoreDamagedError, StorageError */
  static async open(options: FileJournalOptions): Promise<FileJournal> {
    const { system, directory, onWarning } = options;
    await system.makeDirectory(directory);
    const loaded = await loadLog(system, directory);
    for (const { path, position, bytes, detail } of loaded.cut) {
      onWarning?.(`${path}: ${bytes} bytes from byte ${position} on are cut off: ${detail}`);
    }
    const files = new LogFiles(system, directory, loaded, options.epoch ?? 0);
    await files.begin(loaded);
    return new FileJournal(files, loaded.cut, options);
  }

  async claim(persistenceId: string, writer: Writer): Promise<Claim> {
    checkPersistenceId(persistenceId);
    checkWriter(writer);
    return await this.#submit({ kind: 'claim', id: persistenceId, writer }, 0) as Claim;
  }

  async append(
    persistenceId: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]> {
    checkAppend(persistenceId, events, expectedSeq, writer);
    if (events.length === 0) return [];
    const payloads = encodePayloads(this.#codec, events);
    const encoded = events.map(({ tags = [], version = 0 }, index) => ({
      payload: payloads[index] as Uint8Array,
      tags: [...new Set(tags)],
      version,
    }));
    const size = payloads.reduce((sum, payload) => sum + payload.length, 0);
    await this.#submit({ kind: 'append', id: persistenceId, expectedSeq, writer, events: encoded }, size);
    return events.map(({ payload }, index) => {
      const { tags, version } = encoded[index] as EventBytes;
      const sequenceNr = expectedSeq + 1 + index;
      return { persistenceId, sequenceNr, payload, tags, version, epoch: writer.epoch, uid: writer.uid };
    });
  }

  async *read(persistenceId: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    this.#checkOpen();
    checkRange(fromSeq, toSeq);
    const head = this.#files.index.heads.get(persistenceId);
    if (head === undefined) return;
    const end = Math.min(toSeq, head.highestSeq);
    const reader = new LogReader(this.#files, this.#codec);
    try {
      let seq = Math.max(1, fromSeq);
      while (seq <= end) {
        // Looked up again each time, since some may be deleted while the consumer is busy.
        seq = Math.max(seq, head.deletedTo + 1);
        const place = head.places.find(seq);
        if (place === undefined || place.firstSeq > end) return;
        const record = await reader.events(place, () => head.deletedTo >= place.lastSeq);
        seq = place.lastSeq + 1;
        for (const event of record === undefined ? [] : reader.decode(record)) {
          const { sequenceNr } = event;
          if (sequenceNr >= fromSeq && sequenceNr <= end && sequenceNr > head.deletedTo) yield event;
        }
      }
    } finally {
      await reader.close();
    }
  }

  async *readByTag(tag: string, after?: string): AsyncGenerator<TaggedEvent, void, void> {
    this.#checkOpen();
    const start = parseOffset(after);
    const { index } = this.#files;
    const reader = new LogReader(this.#files, this.#codec);
    try {
      for (const place of [...index.tagged.get(tag) ?? []]) {
        if (compareOffsets([place.segment, place.position, place.index], start) <= 0) continue;
        const record = await reader.events(place, () => !index.live.has(place.segment));
        const event = record && reader.decode(record)[place.index];
        if (event === undefined || event.sequenceNr <= index.head(event.persistenceId).deletedTo) continue;
        yield { ...event, offset: `${place.segment}.${place.position}.${place.index}` };
      }
    } finally {
      await reader.close();
    }
  }

  async highestSeq(persistenceId: string): Promise<number> {
    this.#checkOpen();
    return this.#files.index.heads.get(persistenceId)?.highestSeq ?? 0;
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    checkPersistenceId(persistenceId);
    checkNumber('Journal', 'toSeq', toSeq);
    await this.#submit({ kind: 'delete', id: persistenceId, toSeq }, 0);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#commits.idle();
    await this.#files.close();
  }

  #submit(request: Request, size: number): Promise<unknown> {
    this.#checkOpen();
    if (this.#commits.waiting >= limits.journalQueue) {
      return Promise.reject(new StorageError(`${limits.journalQueue} writes wait for the disk already`));
    }
    return new Promise((resolve, reject) => this.#commits.add({ request, size, resolve, reject }));
  }

  async #commit(group: readonly JournalTask[]): Promise<readonly Outcome[]> {
    const staged = new Map<string, Staged>();
    const records: LogRecord[] = [];
    const outcomes = group.map(({ request }): Outcome => {
      try {
        return { value: this.#decide(request, this.#stage(staged, request.id), records) };
      } catch (error) {
        return { error };
      }
    });
    if (records.length > 0) await this.#write(records);
    if (this.#files.activeBytes >= this.#rollAt) await this.#roll();
    if (group.some(({ request }) => request.kind === 'delete')) await this.#tidy();
    return outcomes;
  }

  #stage(staged: Map<string, Staged>, id: string): Staged {
    let head = staged.get(id);
    if (head === undefined) {
      const known = this.#files.index.heads.get(id);
      head = { highestSeq: known?.highestSeq ?? 0, deletedTo: known?.deletedTo ?? 0, claim: known?.claim };
      staged.set(id, head);
    }
    return head;
  }

  /** What the answer to a request is once `records` are durable. */
  #decide(request: Request, head: Staged, records: LogRecord[]): unknown {
    const { id } = request;
    switch (request.kind) {
      case 'claim': {
        const verdict = decideClaim(head.claim, request.writer);
        if (verdict.kind === 'fenced') throw fencedBy(id, request.writer, verdict.by);
        const { claim } = verdict;
        if (claim.epoch !== head.claim?.epoch) records.push({ kind: 'claim', id, claim });
        head.claim = claim;
        const { epoch, uid, clusterId } = claim;
        return { writer: { epoch, uid, clusterId }, highestSeq: head.highestSeq, deletedTo: head.deletedTo };
      }
      case 'append': {
        const { expectedSeq, events, writer } = request;
        checkFence(id, head.claim, writer);
        if (head.highestSeq !== expectedSeq) throw new JournalConcurrencyError(id, expectedSeq, head.highestSeq);
        const { epoch, uid } = writer;
        records.push({ kind: 'events', id, firstSeq: expectedSeq + 1, epoch, uid, events });
        head.highestSeq += events.length;
        return undefined;
      }
      case 'delete': {
        const toSeq = Math.min(request.toSeq, head.highestSeq);
        if (toSeq > head.deletedTo) records.push({ kind: 'delete', id, toSeq });
        head.deletedTo = Math.max(head.deletedTo, toSeq);
        return undefined;
      }
      default:
        return request satisfies never;
    }
  }

  async #write(records: readonly LogRecord[]): Promise<void> {
    const bodies = records.map(encodeRecord);
    const { segment, positions } = await this.#files.write(bodies, this.#checkOwner);
    for (const [index, record] of records.entries()) {
      const place = { segment, position: positions[index] as number, length: (bodies[index] as Uint8Array).length };
      this.#files.index.apply(record, place);
    }
  }

  async #roll(): Promise<void> {
    try {
      await this.#files.roll();
      this.#rollAt = this.#segmentBytes;
    } catch (error) {
      // The group is durable all the same. Not at once again, since the disk may be full.
      this.#rollAt = this.#files.activeBytes + Math.max(1, this.#segmentBytes >> 3);
      this.#warn(`no new segment was begun: ${String(error)}`);
    }
  }

  async #tidy(): Promise<void> {
    try {
      await this.#files.dropDead();
    } catch (error) {
      this.#warn(`segments without events could not be removed: ${String(error)}`);
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new StorageError('the journal is closed');
  }
}

function parseOffset(offset: string | undefined): readonly number[] {
  if (offset === undefined) return [0, 0, 0];
  const parts = /^(\d+)\.(\d+)\.(\d+)$/.exec(offset)?.slice(1).map(Number);
  if (parts === undefined) {
    throw new StoreDamagedError('offset', 0, `${JSON.stringify(offset)} is none of this journal`);
  }
  return parts;
}

function compareOffsets(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < 3; index += 1) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
