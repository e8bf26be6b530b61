/** The head of a frame, and frames of whole envelopes; see `frames.ts`. */
import { FrameError } from './errors.ts';

/** One message between nodes; `code` says what the fields are. */
export type Envelope = readonly [code: number, ...fields: unknown[]];

export type Lane = 'system' | 'user';

export const MAGIC = 0x53;
export const VERSION = 1;
export const FRAME_HEADER_BYTES = 4;
export const lanes: readonly Lane[] = ['system', 'user'];
/** The kind of a frame that is a sequence of envelopes. */
export const BATCH = 0;

export function writeHeader(into: Uint8Array, lane: Lane, kind: number): void {
  into[0] = MAGIC;
  into[1] = VERSION;
  into[2] = lanes.indexOf(lane);
  into[3] = kind;
}

/** Encoded envelopes, `size` bytes together, as one frame. */
export function batchFrame(lane: Lane, envelopes: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + size);
  writeHeader(frame, lane, BATCH);
  let at = FRAME_HEADER_BYTES;
  for (const bytes of envelopes) {
    frame.set(bytes, at);
    at += bytes.length;
  }
  return frame;
}

/** The largest frame that is made in memory used again. */
const sharedBytes = 256 * 1024;
/** Not at the begin of a page: sockets copy it to a place shortly behind one, see `plain_writer.ts`. */
const sharedOrigin = 1024;
let shared: Uint8Array<ArrayBuffer> | undefined;

/** One encoded envelope as a frame that the next call overwrites; undefined when it is too large for that. */
export function sharedFrame(lane: Lane, envelope: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  const size = FRAME_HEADER_BYTES + envelope.length;
  if (size > sharedBytes) return undefined;
  shared ??= new Uint8Array(sharedOrigin + sharedBytes).subarray(sharedOrigin);
  writeHeader(shared, lane, BATCH);
  shared.set(envelope, FRAME_HEADER_BYTES);
  return shared.subarray(0, size);
}

/**
 * What follows the head of a batch.
 * @throws FrameError for any other frame, and for one of more than `maxBytes`
 */
export function batchContent(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length > maxBytes) {
    throw new FrameError('frame-too-large', `${bytes.length} bytes, at most ${maxBytes} are allowed`);
  }
  const batch = bytes[0] === MAGIC && bytes[1] === VERSION && bytes[2]! < lanes.length && bytes[3] === BATCH;
  if (!batch) throw new FrameError('header', 'it is no batch of messages of this protocol version');
  return bytes.subarray(FRAME_HEADER_BYTES);
}
