/**
 * The bytes of a segment file. A header, then frames; a frame is one write, made durable before the next one begins, and
 * holds records, each with its length and checksum. So whatever a crash did to the last write, it is the last frame.
 *
 *   segment: 'SGLTJRNL', u32 format version, u32 segment number, frames
 *   frame:   u32 mark, u32 bytes of records, u32 number of records, u32 CRC of segment number and these three, records
 *   record:  u32 length, u32 CRC of the body, body
 */
import { crc32 } from '../../wire/crc32.ts';
import { ByteReader, ByteWriter } from './bytes.ts';
import { formatVersion } from './record.ts';

export const segmentHeaderBytes = 16;
const frameHeaderBytes = 16;
export const recordHeaderBytes = 8;
const magic = new TextEncoder().encode('SGLTJRNL');
const frameMark = 0x464c4753;
/** What a disk writes as a whole. */
const sectorBytes = 512;

export function segmentHeader(segment: number): Uint8Array<ArrayBuffer> {
  return new ByteWriter().raw(magic).u32(formatVersion).u32(segment).done();
}

/** One frame, and where in it each body begins. */
export function encodeFrame(
  segment: number,
  bodies: readonly Uint8Array[],
): { readonly bytes: Uint8Array<ArrayBuffer>; readonly bodyPositions: readonly number[] } {
  const length = bodies.reduce((sum, body) => sum + recordHeaderBytes + body.length, 0);
  const out = new ByteWriter(frameHeaderBytes + length);
  out.u32(frameMark).u32(length).u32(bodies.length).u32(headerCrc(segment, length, bodies.length));
  const bodyPositions: number[] = [];
  for (const body of bodies) {
    out.u32(body.length).u32(crc32(body));
    bodyPositions.push(out.length);
    out.raw(body);
  }
  return { bytes: out.done(), bodyPositions };
}

function headerCrc(segment: number, length: number, count: number): number {
  return crc32(new ByteWriter(16).u32(segment).u32(frameMark).u32(length).u32(count).done());
}

export interface BodyRange {
  readonly position: number;
  readonly length: number;
}

export type SegmentEnd =
  | { readonly kind: 'clean' }
  /** A write that a crash cut off: nobody was told that it was done. */
  | { readonly kind: 'torn'; readonly detail: string }
  | { readonly kind: 'damaged'; readonly detail: string };

export interface ScannedSegment {
  readonly bodies: readonly BodyRange[];
  /** Where the last good frame begins. */
  readonly lastFrame: number;
  /** Bytes that are good. */
  readonly end: number;
  readonly rest: SegmentEnd;
}

/**
 * Finds the records. With `sealed`, the bytes are known to have been written completely, so anything wrong is damage. Else
 * the end may be torn, by this rule: no good frame follows, and the rest is shorter than it says it is, or a stretch of it
 * that shares a disk sector is all zeros. Other wrong bytes are damage, even at the end.
 */
export function scanSegment(bytes: Uint8Array, segment: number, sealed: boolean): ScannedSegment {
  const bad = checkHeader(bytes, segment);
  if (bad !== undefined) return { bodies: [], lastFrame: 0, end: 0, rest: { kind: 'damaged', detail: bad } };
  const bodies: BodyRange[] = [];
  let lastFrame = 0;
  let at = segmentHeaderBytes;
  while (at < bytes.length) {
    const frame = readFrame(bytes, at, segment);
    if (frame === undefined) return { bodies, lastFrame, end: at, rest: judgeRest(bytes, at, segment, sealed) };
    bodies.push(...frame.bodies);
    lastFrame = at;
    at = frame.end;
  }
  return { bodies, lastFrame, end: at, rest: { kind: 'clean' } };
}

function checkHeader(bytes: Uint8Array, segment: number): string | undefined {
  if (bytes.length < segmentHeaderBytes) return 'the file is shorter than its header';
  const input = new ByteReader(bytes);
  const start = input.raw(magic.length);
  if (!start.every((byte, index) => byte === magic[index])) return 'this is no journal segment';
  const version = input.u32();
  if (version !== formatVersion) return `it has format version ${version}; this program reads ${formatVersion}`;
  const number = input.u32();
  return number === segment ? undefined : `it says that it is segment ${number}`;
}

function readFrame(
  bytes: Uint8Array,
  at: number,
  segment: number,
): { readonly bodies: readonly BodyRange[]; readonly end: number } | undefined {
  const input = new ByteReader(bytes, at);
  if (input.left < frameHeaderBytes || input.u32() !== frameMark) return undefined;
  const length = input.u32();
  const count = input.u32();
  if (input.u32() !== headerCrc(segment, length, count) || length > input.left) return undefined;
  const end = input.at + length;
  const bodies: BodyRange[] = [];
  for (let left = count; left > 0; left -= 1) {
    if (end - input.at < recordHeaderBytes) return undefined;
    const bodyLength = input.u32();
    const crc = input.u32();
    if (bodyLength === 0 || bodyLength > end - input.at) return undefined;
    const position = input.at;
    if (crc32(input.raw(bodyLength)) !== crc) return undefined;
    bodies.push({ position, length: bodyLength });
  }
  return input.at === end ? { bodies, end } : undefined;
}

function judgeRest(bytes: Uint8Array, at: number, segment: number, sealed: boolean): SegmentEnd {
  const left = bytes.length - at;
  if (sealed) return { kind: 'damaged', detail: `${left} bytes that were written completely are not as written` };
  const next = findFrame(bytes, at + 1, segment);
  if (next !== undefined) return { kind: 'damaged', detail: `a good record follows at byte ${next}` };
  const claimed = left < frameHeaderBytes ? Infinity : claimedLength(bytes, at, segment);
  const end = Math.min(at + claimed, bytes.length);
  if (claimed > left) return { kind: 'torn', detail: `the last write is incomplete: ${left} bytes` };
  if (hasZeroSector(bytes, at, end)) {
    return { kind: 'torn', detail: `the last write has zeros for content: ${left} bytes` };
  }
  return { kind: 'damaged', detail: `${left} bytes at the end are not as written, and no crash leaves such an end` };
}

/** Bytes of the frame as its header says, if the header is good; else all there is. */
function claimedLength(bytes: Uint8Array, at: number, segment: number): number {
  const input = new ByteReader(bytes, at);
  const mark = input.u32();
  const length = input.u32();
  const count = input.u32();
  const good = mark === frameMark && input.u32() === headerCrc(segment, length, count);
  return good ? frameHeaderBytes + length : bytes.length - at;
}

function findFrame(bytes: Uint8Array, from: number, segment: number): number | undefined {
  const first = frameMark & 0xff;
  for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1)) {
    if (readFrame(bytes, at, segment) !== undefined) return at;
  }
  return undefined;
}

function hasZeroSector(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to;) {
    const end = Math.min(to, (Math.floor(at / sectorBytes) + 1) * sectorBytes);
    if (bytes.subarray(at, end).every((byte) => byte === 0)) return true;
    at = end;
  }
  return false;
}
