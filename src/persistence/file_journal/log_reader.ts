/** Reads records back, a stretch of the file at a time, and checks each. */
import { decodePayload, StoreDamagedError, type StoredEvent } from '../mod.ts';
import type { Codec } from '../../wire/codec.ts';
import { crc32 } from '../../wire/crc32.ts';
import { ByteReader } from './bytes.ts';
import type { FileHandle } from './file_system.ts';
import type { LogFiles } from './log_files.ts';
import type { Place } from './log_index.ts';
import { decodeRecord, type LogRecord } from './record.ts';
import { recordHeaderBytes } from './segment_format.ts';

/** Bytes that are read at once: few at first in each file, twice as many each time that its reader goes on. */
const firstWindowBytes = 16 * 1024;
const windowBytes = 256 * 1024;

type Events = Extract<LogRecord, { kind: 'events' }>;

/** One reader's file and window; to be closed. */
export class LogReader {
  readonly #files: LogFiles;
  readonly #codec: Codec;
  #segment = -1;
  #file: FileHandle | undefined = undefined;
  #window: Uint8Array = new Uint8Array(0);
  #windowAt = 0;
  #nextWindow = firstWindowBytes;

  constructor(files: LogFiles, codec: Codec) {
    this.#files = files;
    this.#codec = codec;
  }

  /** The events at `place`; undefined when the file is gone and `deleted` says that this is right. */
  async events(place: Place, deleted: () => boolean): Promise<Events | undefined> {
    let bytes: Uint8Array;
    try {
      bytes = await this.#recordAt(place);
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT' && deleted()) return undefined;
      throw error;
    }
    const header = new ByteReader(bytes);
    const body = bytes.subarray(recordHeaderBytes);
    const good = header.left >= recordHeaderBytes && header.u32() === place.length && header.u32() === crc32(body);
    const record = good ? decodeRecord(body) : undefined;
    if (record?.kind === 'events') return record;
    throw new StoreDamagedError(
      `segment ${place.segment}`,
      place.position,
      'its content has changed since it was opened',
    );
  }

  decode({ id, firstSeq, epoch, uid, events }: Events): StoredEvent[] {
    return events.map(({ payload, tags, version }, index) => ({
      persistenceId: id,
      sequenceNr: firstSeq + index,
      payload: decodePayload(this.#codec, payload, id, firstSeq + index),
      tags,
      version,
      epoch,
      uid,
    }));
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #recordAt({ segment, position, length }: Place): Promise<Uint8Array> {
    const start = position - recordHeaderBytes;
    const wanted = recordHeaderBytes + length;
    if (segment !== this.#segment) {
      await this.close();
      this.#segment = -1;
      this.#window = new Uint8Array(0);
      this.#file = await this.#files.openSegment(segment);
      this.#segment = segment;
      this.#nextWindow = firstWindowBytes;
    }
    const offset = start - this.#windowAt;
    if (offset >= 0 && offset + wanted <= this.#window.length) return this.#window.subarray(offset, offset + wanted);
    const target = new Uint8Array(Math.max(wanted, this.#nextWindow));
    this.#nextWindow = Math.min(windowBytes, 2 * this.#nextWindow);
    const count = await (this.#file as FileHandle).read(target, start);
    this.#window = target.subarray(0, count);
    this.#windowAt = start;
    return this.#window.subarray(0, wanted);
  }
}
