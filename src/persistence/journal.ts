/** The contract of journals: events, numbered from 1 upward for each persistence id, that are never changed. */
import { OptionsError } from '../actor/options.ts';
import { limits } from '../limits.ts';
import { Codec } from '../wire/codec.ts';
import { SerializationError } from '../wire/errors.ts';
import { RecoveryError } from './errors.ts';
import { checkNumber, checkPersistenceId, checkTags } from './validation.ts';
import { checkWriter, type Claim, type Writer } from './writer.ts';

/** An event that is to be written. */
export interface NewEvent {
  /** Anything the wire codec takes. Encoded before `append` returns its promise. */
  readonly payload: unknown;
  readonly tags?: readonly string[];
  /** Of the schema it was written with; default 0. */
  readonly version?: number;
}

/** An event as the journal keeps it. Sequence numbers of an id begin at 1 and have no gaps. */
export interface StoredEvent {
  readonly persistenceId: string;
  readonly sequenceNr: number;
  readonly payload: unknown;
  readonly tags: readonly string[];
  readonly version: number;
  /** The mark of its writer. */
  readonly epoch: number;
  readonly uid: string;
}

/** A `StoredEvent` found by one of its tags. */
export interface TaggedEvent extends StoredEvent {
  /** Its place among all events of the journal; only the journal that gave it can read it. */
  readonly offset: string;
}

/**
 * Every implementation passes the suite in `test/contract/journal_contract.ts`. A promise that resolves means that the
 * write survives a crash, as far as the medium does. A rejection other than those named means `StorageError`: what became
 * of this one write may be unknown, everything before it is safe, and the caller recovers before it writes again.
 */
export interface Journal {
  /**
   * Makes `writer` the only one that may write under this id. To be called before reading for recovery.
   * @throws FencedError when the same cluster has claimed it with a higher epoch, or with this one for somebody else
   * @throws OptionsError for a bad id
   */
  claim(persistenceId: string, writer: Writer): Promise<Claim>;
  /**
   * Writes all `events` or none, numbered from `expectedSeq + 1`, where `expectedSeq` is the highest number so far. Without
   * events nothing is checked and nothing happens.
   * @throws FencedError when `writer` is not the claimant
   * @throws JournalConcurrencyError when `expectedSeq` is not the highest number
   * @throws SerializationError, OptionsError for events that cannot be written
   */
  append(
    persistenceId: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]>;
  /**
   * Events with `fromSeq <= number <= toSeq` in ascending order, as far as they exist when asked for. Reads no more than a
   * bounded amount ahead of its consumer.
   */
  read(persistenceId: string, fromSeq?: number, toSeq?: number): AsyncIterable<StoredEvent>;
  /** Events of all ids with this tag, in the order they were written, after `offset` if one is given. */
  readByTag(tag: string, after?: string): AsyncIterable<TaggedEvent>;
  /** The highest number ever written, whether or not its event has been deleted; 0 if none. */
  highestSeq(persistenceId: string): Promise<number>;
  /** Deletes events up to and including `toSeq`. The numbers go on from where they were. */
  delete(persistenceId: string, toSeq: number): Promise<void>;
  /** Lets what is under way finish, and gives everything back. Idempotent. Calls made after it reject. */
  close(): Promise<void>;
}

/** For payloads, unless the user has a codec of his own. */
export const payloadCodec: Codec = new Codec({ maxBytes: limits.appendBytes });

/** The payloads of one append. @throws SerializationError */
export function encodePayloads(codec: Codec, events: readonly NewEvent[]): readonly Uint8Array[] {
  let size = 0;
  return events.map(({ payload }) => {
    const bytes = codec.encode(payload);
    size += bytes.length;
    if (size <= limits.appendBytes) return bytes;
    const rule =
      `and those before it in one append take ${size} bytes encoded; at most ${limits.appendBytes} are possible`;
    throw new SerializationError('', rule);
  });
}

/** @throws RecoveryError that names the event, such as one of a class that this program does not know */
export function decodePayload(codec: Codec, bytes: Uint8Array, persistenceId: string, sequenceNr: number): unknown {
  try {
    return codec.decode(bytes);
  } catch (error) {
    throw new RecoveryError(
      persistenceId,
      `event ${sequenceNr} cannot be decoded: ${String(error)}`,
      sequenceNr,
      error,
    );
  }
}

/** What every `append` checks first. @throws OptionsError */
export function checkAppend(
  persistenceId: string,
  events: readonly NewEvent[],
  expectedSeq: number,
  writer: Writer,
): void {
  checkPersistenceId(persistenceId);
  checkNumber('Journal', 'expectedSeq', expectedSeq);
  checkWriter(writer);
  if (events.length > limits.eventsPerAppend) {
    throw new OptionsError('Journal', 'events', events, `must be at most ${limits.eventsPerAppend}`);
  }
  checkNumber('Journal', 'expectedSeq', expectedSeq + events.length);
  for (const event of events) {
    checkTags(event.tags);
    if (event.version !== undefined) checkNumber('Event', 'version', event.version);
  }
}
