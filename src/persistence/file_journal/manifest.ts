/**
 * The manifest of a log: which segments it has, how long the sealed ones are, and what is known of each id apart from its
 * events, so that this survives when segments go.
 */
import { StoreDamagedError } from '../mod.ts';
import { crc32 } from '../../wire/crc32.ts';
import { ByteReader, ByteWriter } from './bytes.ts';
import { decodeRecord, encodeRecord, formatVersion, type LogRecord } from './record.ts';

/**
 * Each owner of the directory writes one of its own, named by the epoch of its lock, and the highest counts. So an owner
 * that was taken for dead in the middle of a change cannot undo what its successor has written.
 */
export function manifestName(epoch: number): string {
  return epoch === 0 ? 'MANIFEST' : `MANIFEST.${epoch}`;
}

/** The epoch in a manifest's file name; undefined for other files. */
export function manifestEpoch(name: string): number | undefined {
  if (name === 'MANIFEST') return 0;
  return /^MANIFEST\.[1-9]\d{0,14}$/.test(name) ? Number(name.slice('MANIFEST.'.length)) : undefined;
}

const magic = new TextEncoder().encode('SGLTMANI');

export type HeadRecord = Extract<LogRecord, { kind: 'head' }>;

export interface SegmentEntry {
  readonly number: number;
  /** Bytes that count; undefined for the one that is written to. */
  readonly sealedAt: number | undefined;
}

export interface Manifest {
  readonly segments: readonly SegmentEntry[];
  readonly heads: readonly HeadRecord[];
}

export function encodeManifest({ segments, heads }: Manifest): Uint8Array<ArrayBuffer> {
  const body = new ByteWriter(1_024);
  body.u32(segments.length);
  for (const { number, sealedAt } of segments) body.u32(number).int(sealedAt ?? -1);
  body.u32(heads.length);
  for (const head of heads) {
    const bytes = encodeRecord(head);
    body.u32(bytes.length).raw(bytes);
  }
  const bytes = body.done();
  return new ByteWriter(bytes.length + 20).raw(magic).u32(formatVersion).u32(bytes.length).u32(crc32(bytes)).raw(bytes)
    .done();
}

/** @throws StoreDamagedError */
export function decodeManifest(path: string, bytes: Uint8Array): Manifest {
  try {
    const input = new ByteReader(bytes);
    if (!input.raw(magic.length).every((byte, index) => byte === magic[index])) throw new RangeError('no manifest');
    const version = input.u32();
    if (version !== formatVersion) {
      throw new RangeError(`it has format version ${version}; this program reads ${formatVersion}`);
    }
    const length = input.u32();
    const crc = input.u32();
    const body = input.raw(length);
    if (input.left > 0 || crc32(body) !== crc) throw new RangeError('its checksum is wrong');
    return decodeBody(new ByteReader(body));
  } catch (error) {
    throw new StoreDamagedError(path, 0, (error as Error).message);
  }
}

function decodeBody(input: ByteReader): Manifest {
  const segments: SegmentEntry[] = [];
  for (let left = input.u32(); left > 0; left -= 1) {
    const number = input.u32();
    const sealedAt = input.int();
    segments.push({ number, sealedAt: sealedAt < 0 ? undefined : sealedAt });
  }
  const heads: HeadRecord[] = [];
  for (let left = input.u32(); left > 0; left -= 1) {
    const head = decodeRecord(input.raw(input.u32()));
    if (head.kind !== 'head') throw new RangeError(`a ${head.kind} record`);
    heads.push(head);
  }
  return { segments, heads };
}

export function segmentName(number: number): string {
  return `${String(number).padStart(10, '0')}.seg`;
}

/** The number in a segment's file name; undefined for other files. */
export function segmentNumber(name: string): number | undefined {
  return /^\d{10}\.seg$/.test(name) ? Number.parseInt(name, 10) : undefined;
}
