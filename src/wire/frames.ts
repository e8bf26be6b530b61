/**
 * Frames between nodes. Four bytes of header, then content:
 *
 *     'S'  version  lane  kind
 *
 * - `batch`: a CBOR sequence of envelopes, each an array that starts with its code.
 * - `part-first` (uint32 total length first), `part`, `part-last`: pieces of one envelope that is larger than a frame.
 *   Parts of one lane follow each other without anything between; the other lane may come between.
 * - `use`, `ready` (uint32 link number): how two nodes agree on one link, see `transport/link_choice.ts`.
 */
import { fastPaths } from '../fast_paths.ts';
import { limits } from '../limits.ts';
import { BATCH, type Envelope, FRAME_HEADER_BYTES, type Lane, lanes, MAGIC, VERSION, writeHeader } from './batch.ts';
import type { Codec } from './codec.ts';
import { FrameError } from './errors.ts';
import { readPlainBatch } from './plain_reader.ts';
import { scanItem, scanSequence } from './scan.ts';

export { type Envelope, FRAME_HEADER_BYTES, type Lane };

const NUMBER_BYTES = 4;
const kindBytes = { batch: BATCH, partFirst: 1, part: 2, partLast: 3, use: 4, ready: 5 } as const;

export type Frame =
  | {
    readonly kind: 'messages';
    readonly lane: Lane;
    readonly envelopes: readonly Envelope[];
    /** Of all envelopes together, encoded. */
    readonly bytes: number;
    readonly failed: number;
    readonly failure: string | undefined;
  }
  /** A piece was taken in; its message is not complete. */
  | { readonly kind: 'piece'; readonly lane: Lane }
  | { readonly kind: 'use' | 'ready'; readonly link: number };

/** Collects encoded envelopes into one batch frame. */
export class FrameWriter {
  private readonly lane: Lane;
  private buffer: Uint8Array<ArrayBuffer>;
  private end = FRAME_HEADER_BYTES;
  /** Envelopes in it. */
  count = 0;

  constructor(lane: Lane) {
    this.lane = lane;
    this.buffer = new Uint8Array(1024);
    writeHeader(this.buffer, lane, kindBytes.batch);
  }

  /** Bytes of the frame so far, header included. */
  get size(): number {
    return this.end;
  }

  /** What `append` would make the size. */
  sizeWith(bytes: Uint8Array): number {
    return this.end + bytes.length;
  }

  /** Copies `bytes`, one encoded envelope. The caller keeps the frame within `limits.frameBytes`. */
  append(bytes: Uint8Array): void {
    const end = this.end + bytes.length;
    if (end > this.buffer.length) {
      const grown = new Uint8Array(Math.max(end, this.buffer.length * 2));
      grown.set(this.buffer.subarray(0, this.end));
      this.buffer = grown;
    }
    this.buffer.set(bytes, this.end);
    this.end = end;
    this.count++;
  }

  /** The frame, in memory of its own. The writer is empty afterwards; a buffer that grew beyond a batch is given back. */
  take(): Uint8Array<ArrayBuffer> {
    const frame = this.buffer.slice(0, this.end);
    this.clear();
    return frame;
  }

  /** One frame of this lane with what `first` has and then what is here; both are empty afterwards. */
  takeBehind(first: FrameWriter): Uint8Array<ArrayBuffer> {
    const frame = new Uint8Array(first.end + this.end - FRAME_HEADER_BYTES);
    writeHeader(frame, this.lane, kindBytes.batch);
    frame.set(first.buffer.subarray(FRAME_HEADER_BYTES, first.end), FRAME_HEADER_BYTES);
    frame.set(this.buffer.subarray(FRAME_HEADER_BYTES, this.end), first.end);
    first.clear();
    this.clear();
    return frame;
  }

  private clear(): void {
    if (this.buffer.length > limits.batchBytes) {
      this.buffer = new Uint8Array(1024);
      writeHeader(this.buffer, this.lane, kindBytes.batch);
    }
    this.end = FRAME_HEADER_BYTES;
    this.count = 0;
  }
}

/** The largest message of each lane, encoded. */
export const laneBytes: Readonly<Record<Lane, number>> = {
  system: limits.systemMessageBytes,
  user: limits.messageBytes,
};

/** Whether one encoded envelope fits a frame as it is. */
export function fitsFrame(bytes: Uint8Array, frameBytes: number = limits.frameBytes): boolean {
  return bytes.length + FRAME_HEADER_BYTES <= frameBytes;
}

/** Cuts one encoded envelope into part frames, made one at a time. */
export class PartWriter {
  private readonly lane: Lane;
  private readonly bytes: Uint8Array;
  private readonly frameBytes: number;
  private position = 0;

  /** `bytes` must not change any more, fit `laneBytes` and not fit one frame. */
  constructor(lane: Lane, bytes: Uint8Array, frameBytes: number = limits.frameBytes) {
    this.lane = lane;
    this.bytes = bytes;
    this.frameBytes = frameBytes;
  }

  get done(): boolean {
    return this.position === this.bytes.length;
  }

  /** Starts again: the link on which the first parts went is gone. */
  restart(): void {
    this.position = 0;
  }

  next(): Uint8Array<ArrayBuffer> {
    const first = this.position === 0;
    const head = FRAME_HEADER_BYTES + (first ? NUMBER_BYTES : 0);
    const length = Math.min(this.frameBytes - head, this.bytes.length - this.position);
    const last = this.position + length === this.bytes.length;
    const frame = new Uint8Array(head + length);
    writeHeader(frame, this.lane, first ? kindBytes.partFirst : last ? kindBytes.partLast : kindBytes.part);
    if (first) new DataView(frame.buffer).setUint32(FRAME_HEADER_BYTES, this.bytes.length);
    frame.set(this.bytes.subarray(this.position, this.position + length), head);
    this.position += length;
    return frame;
  }
}

export function linkFrame(kind: 'use' | 'ready', link: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + NUMBER_BYTES);
  writeHeader(frame, 'system', kindBytes[kind]);
  new DataView(frame.buffer).setUint32(FRAME_HEADER_BYTES, link);
  return frame;
}

interface Assembly {
  readonly total: number;
  received: number;
  readonly pieces: Uint8Array[];
}

/** Reads the frames of one link, in order; keeps the pieces of at most one large message per lane. */
export class FrameReader {
  private readonly codec: Codec;
  private readonly assemblies: Record<Lane, Assembly | undefined> = { system: undefined, user: undefined };

  constructor(codec: Codec) {
    this.codec = codec;
  }

  /**
   * @throws FrameError, and nothing else, for anything that is not a frame of ours. A message that is well-formed but
   * cannot become a value here is only counted (`failed`).
   */
  read(bytes: Uint8Array): Frame {
    if (bytes.length > limits.frameBytes) {
      throw new FrameError('frame-too-large', `${bytes.length} bytes, at most ${limits.frameBytes} are allowed`);
    }
    if (bytes.length < FRAME_HEADER_BYTES || bytes[0] !== MAGIC || bytes[1] !== VERSION) {
      throw new FrameError('header', 'it does not start like a frame of this protocol version');
    }
    const lane = lanes[bytes[2]!];
    if (lane === undefined) throw new FrameError('header', `lane ${bytes[2]} does not exist`);
    switch (bytes[3]) {
      case kindBytes.batch:
        return this.readBatch(lane, bytes);
      case kindBytes.partFirst:
      case kindBytes.part:
      case kindBytes.partLast:
        return this.readPart(lane, bytes[3], bytes);
      case kindBytes.use:
      case kindBytes.ready:
        if (bytes.length !== FRAME_HEADER_BYTES + NUMBER_BYTES) {
          throw new FrameError('length', 'a link number has 4 bytes');
        }
        return { kind: bytes[3] === kindBytes.use ? 'use' : 'ready', link: numberAfterHeader(bytes) };
      default:
        throw new FrameError('header', `frame kind ${bytes[3]} does not exist`);
    }
  }

  private readBatch(lane: Lane, bytes: Uint8Array): Frame {
    if (this.assemblies[lane] !== undefined) throw new FrameError('parts', 'a batch between the parts of a message');
    const plain = fastPaths.plain ? readPlainBatch(bytes) : undefined;
    if (plain !== undefined) {
      const size = bytes.length - FRAME_HEADER_BYTES;
      return { kind: 'messages', lane, envelopes: plain, bytes: size, failed: 0, failure: undefined };
    }
    return this.messages(lane, bytes, FRAME_HEADER_BYTES, scanSequence(bytes, FRAME_HEADER_BYTES, bytes.length));
  }

  private readPart(lane: Lane, kind: number, bytes: Uint8Array): Frame {
    const first = kind === kindBytes.partFirst;
    const open = this.assemblies[lane];
    if (first !== (open === undefined)) {
      throw new FrameError('parts', first ? 'a second first part' : 'a part without a first');
    }
    const assembly = open ?? startAssembly(lane, bytes);
    const piece = bytes.slice(FRAME_HEADER_BYTES + (first ? NUMBER_BYTES : 0));
    assembly.received += piece.length;
    if (piece.length === 0 || assembly.received > assembly.total) {
      throw new FrameError('parts', `${assembly.received} bytes of a message announced with ${assembly.total}`);
    }
    assembly.pieces.push(piece);
    const complete = assembly.received === assembly.total;
    if (complete !== (kind === kindBytes.partLast)) {
      throw new FrameError('parts', 'the last part is not where it was announced');
    }
    this.assemblies[lane] = complete ? undefined : assembly;
    if (!complete) return { kind: 'piece', lane };
    const whole = join(assembly);
    const end = scanItem(whole, 0, whole.length);
    if (end !== whole.length) throw new FrameError('length', 'bytes follow the value of a message in parts');
    return this.messages(lane, whole, 0, [end]);
  }

  private messages(lane: Lane, bytes: Uint8Array, start: number, ends: readonly number[]): Frame {
    checkEnvelopes(bytes, start, ends);
    const { values, failed, failure } = this.codec.decodeSequence(bytes, start, ends);
    const size = (ends.at(-1) ?? start) - start;
    return { kind: 'messages', lane, envelopes: values as unknown as Envelope[], bytes: size, failed, failure };
  }
}

function startAssembly(lane: Lane, bytes: Uint8Array): Assembly {
  if (bytes.length <= FRAME_HEADER_BYTES + NUMBER_BYTES) {
    throw new FrameError('truncated', 'a first part without content');
  }
  const total = numberAfterHeader(bytes);
  if (total > laneBytes[lane]) {
    throw new FrameError('message-too-large', `${total} bytes announced, at most ${laneBytes[lane]} are allowed`);
  }
  return { total, received: 0, pieces: [] };
}

function join(assembly: Assembly): Uint8Array {
  const whole = new Uint8Array(assembly.total);
  let position = 0;
  for (const piece of assembly.pieces) {
    whole.set(piece, position);
    position += piece.length;
  }
  return whole;
}

function numberAfterHeader(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getUint32(FRAME_HEADER_BYTES);
}

/** Every envelope is an array (major type 4) whose first element is an integer below 2^32 (major type 0). */
function checkEnvelopes(bytes: Uint8Array, start: number, ends: readonly number[]): void {
  let from = start;
  for (const end of ends) {
    const head = bytes[from]!;
    const code = from + headBytes(head);
    if (head >> 5 !== 4 || head === 0x80 || code >= end || bytes[code]! > 0x1a) {
      throw new FrameError('envelope', 'a message is not an array that starts with its code');
    }
    from = end;
  }
}

function headBytes(head: number): number {
  const info = head & 0x1f;
  return info < 24 ? 1 : 1 + (1 << (info - 24));
}
