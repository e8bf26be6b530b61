/** Encoded envelopes of one lane on their way to one peer: collected into frames, bounded in number and bytes. */
import { fastPaths } from '../fast_paths.ts';
import { limits } from '../limits.ts';
import { batchFrame } from '../wire/batch.ts';
import { type Envelope, fitsFrame, FrameWriter, type Lane, PartWriter } from '../wire/frames.ts';

/** What goes out as one frame, or one message that goes out in parts. All of it is meant for the same process. */
interface Chunk {
  /** Undefined: for whoever is there. */
  readonly uid: string | undefined;
  /** Collects messages. */
  readonly writer: FrameWriter | undefined;
  /** A large message, complete. */
  readonly frame: Uint8Array | undefined;
  readonly parts: PartWriter | undefined;
  /** Empty when the lane keeps none. */
  readonly envelopes: Envelope[];
  messages: number;
  bytes: number;
}

export interface SendQueueOptions {
  readonly lane: Lane;
  /** Whether what cannot be sent is given back; otherwise it is only counted. */
  readonly keepsEnvelopes: boolean;
  readonly maxMessages: number;
  readonly maxBytes: number;
  /** See `PeersOptions`. */
  readonly frameBytes?: number;
}

export interface Returned {
  readonly envelopes: readonly Envelope[];
  readonly messages: number;
}

/** Of two lanes together: more would let the one wait for the other, and copying it costs more than a second frame. */
const maxJointBytes = 16 * 1024;
/** A message that gains nothing from others in its frame: it is copied once, not into a buffer and out of it. */
export const largeBytes = 16 * 1024;
const nothing: Returned = { envelopes: [], messages: 0 };

export class SendQueue {
  private readonly options: SendQueueOptions;
  private chunks: Chunk[] = [];
  private spare: FrameWriter | undefined = undefined;
  messages = 0;
  bytes = 0;

  constructor(options: SendQueueOptions) {
    this.options = options;
  }

  get empty(): boolean {
    return this.chunks.length === 0;
  }

  /** True when the oldest frame has no reason to wait for more. */
  get frameFull(): boolean {
    return this.chunks.length > 1 || (this.chunks[0]?.bytes ?? 0) >= limits.batchBytes;
  }

  /** Takes a copy of `bytes`, the encoded `envelope`. False when the queue is full. */
  add(bytes: Uint8Array, envelope: Envelope, uid: string | undefined): boolean {
    const { maxMessages, maxBytes, keepsEnvelopes, lane, frameBytes } = this.options;
    if (this.messages >= maxMessages || (this.messages > 0 && this.bytes + bytes.length > maxBytes)) return false;
    let chunk: Chunk;
    if (!fitsFrame(bytes, frameBytes)) {
      chunk = this.push({ uid, parts: new PartWriter(lane, new Uint8Array(bytes), frameBytes) });
    } else if (fastPaths.largeFrames && bytes.length >= largeBytes) {
      chunk = this.push({ uid, frame: batchFrame(lane, [bytes], bytes.length) });
    } else {
      chunk = this.chunkFor(bytes, uid);
      chunk.writer!.append(bytes);
    }
    if (keepsEnvelopes) chunk.envelopes.push(envelope);
    chunk.messages++;
    chunk.bytes += bytes.length;
    this.messages++;
    this.bytes += bytes.length;
    return true;
  }

  /** The next frame, in memory of its own; undefined when there is none. `messages` counts those that are now complete. */
  next(): { readonly frame: Uint8Array; readonly messages: number } | undefined {
    const head = this.chunks[0];
    if (head === undefined) return undefined;
    if (head.parts === undefined) {
      const frame = head.frame ?? head.writer!.take();
      this.spare = head.writer ?? this.spare;
      this.shift();
      return { frame, messages: head.messages };
    }
    const frame = head.parts.next();
    if (!head.parts.done) return { frame, messages: 0 };
    this.shift();
    return { frame, messages: head.messages };
  }

  /** One frame of this lane with all that waits in `first` and then here; undefined when it is much, or either is empty. */
  nextBehind(first: SendQueue): { readonly frame: Uint8Array; readonly messages: number } | undefined {
    const [ahead] = first.chunks;
    const [own] = this.chunks;
    const alone = first.chunks.length === 1 && this.chunks.length === 1;
    if (!alone || !ahead?.writer || !own?.writer || ahead.bytes + own.bytes > maxJointBytes) return undefined;
    if (!fastPaths.jointFrames) return undefined;
    const messages = ahead.messages + own.messages;
    const frame = own.writer.takeBehind(ahead.writer);
    first.spare = ahead.writer;
    this.spare = own.writer;
    first.shift();
    this.shift();
    return { frame, messages };
  }

  /** A new link to process `uid`: parts start again, and what was meant for another process is given back. */
  relink(uid: string): Returned {
    this.chunks[0]?.parts?.restart();
    const foreign = this.chunks.filter((chunk) => chunk.uid !== undefined && chunk.uid !== uid);
    if (foreign.length === 0) return nothing;
    this.chunks = this.chunks.filter((chunk) => !foreign.includes(chunk));
    return this.release(foreign);
  }

  /** Empties the queue. */
  drain(): Returned {
    const all = this.chunks;
    this.chunks = [];
    return this.release(all);
  }

  private release(chunks: readonly Chunk[]): Returned {
    if (chunks.length === 0) return nothing;
    let messages = 0;
    for (const chunk of chunks) {
      messages += chunk.messages;
      this.bytes -= chunk.bytes;
    }
    this.messages -= messages;
    return { envelopes: chunks.flatMap((chunk) => chunk.envelopes), messages };
  }

  private chunkFor(bytes: Uint8Array, uid: string | undefined): Chunk {
    const tail = this.chunks.at(-1);
    const fits = tail?.writer !== undefined && tail.uid === uid && tail.writer.sizeWith(bytes) <= limits.batchBytes;
    if (fits && fastPaths.batching) return tail;
    const writer = this.spare ?? new FrameWriter(this.options.lane);
    this.spare = undefined;
    return this.push({ uid, writer });
  }

  private push({ uid, writer, frame, parts }: Partial<Chunk>): Chunk {
    const chunk: Chunk = { uid, writer, frame, parts, envelopes: [], messages: 0, bytes: 0 };
    this.chunks.push(chunk);
    return chunk;
  }

  private shift(): void {
    const head = this.chunks.shift()!;
    this.messages -= head.messages;
    this.bytes -= head.bytes;
  }
}
