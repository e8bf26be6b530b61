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
