/** What is in the log: the records, and their bytes. */
import type { HeldClaim } from '../mod.ts';
import { ByteReader, ByteWriter } from './bytes.ts';

/** Of the files. Readers refuse a newer one. */
export const formatVersion = 1;

const kinds = { events: 1, claim: 2, delete: 3, head: 4 } as const;

export interface EventBytes {
  readonly payload: Uint8Array;
  readonly tags: readonly string[];
  readonly version: number;
}

export type LogRecord =
  | {
    readonly kind: 'events';
    readonly id: string;
    readonly firstSeq: number;
    readonly epoch: number;
    readonly uid: string;
    readonly events: readonly EventBytes[];
  }
  | { readonly kind: 'claim'; readonly id: string; readonly claim: HeldClaim }
  | { readonly kind: 'delete'; readonly id: string; readonly toSeq: number }
  /** All that is known of an id apart from its events; in manifests. */
  | {
    readonly kind: 'head';
    readonly id: string;
    readonly highestSeq: number;
    readonly deletedTo: number;
    readonly claim: HeldClaim | undefined;
  };

export function encodeRecord(record: LogRecord): Uint8Array<ArrayBuffer> {
  const out = new ByteWriter();
  out.u8(kinds[record.kind]).text(record.id);
  switch (record.kind) {
    case 'events':
      out.int(record.firstSeq).u32(record.events.length).int(record.epoch).text(record.uid);
      for (const { payload, tags, version } of record.events) {
        out.int(version).u8(tags.length);
        for (const tag of tags) out.text(tag);
        out.u32(payload.length).raw(payload);
      }
      break;
    case 'claim':
      putClaim(out, record.claim);
      break;
    case 'delete':
      out.int(record.toSeq);
      break;
    case 'head':
      out.int(record.highestSeq).int(record.deletedTo).u8(record.claim === undefined ? 0 : 1);
      if (record.claim !== undefined) putClaim(out, record.claim);
      break;
    default:
      return record satisfies never;
  }
  return out.done();
}

/** Payloads are views of `bytes`. @throws RangeError, TypeError when these are no record */
export function decodeRecord(bytes: Uint8Array): LogRecord {
  const input = new ByteReader(bytes);
  const kind = input.u8();
  const id = input.text();
  const record = decodeBody(kind, id, input);
  if (input.left > 0) throw new RangeError(`${input.left} bytes follow a record`);
  return record;
}

function decodeBody(kind: number, id: string, input: ByteReader): LogRecord {
  switch (kind) {
    case kinds.events: {
      const firstSeq = input.int();
      const count = input.u32();
      const epoch = input.int();
      const uid = input.text();
      const events: EventBytes[] = [];
      for (let index = 0; index < count; index += 1) {
        const version = input.int();
        const tagCount = input.u8();
        const tags: string[] = [];
        for (let tag = 0; tag < tagCount; tag += 1) tags.push(input.text());
        events.push({ version, tags, payload: input.raw(input.u32()) });
      }
      return { kind: 'events', id, firstSeq, epoch, uid, events };
    }
    case kinds.claim:
      return { kind: 'claim', id, claim: takeClaim(input) };
    case kinds.delete:
      return { kind: 'delete', id, toSeq: input.int() };
    case kinds.head: {
      const highestSeq = input.int();
      const deletedTo = input.int();
      const claim = input.u8() === 0 ? undefined : takeClaim(input);
      return { kind: 'head', id, highestSeq, deletedTo, claim };
    }
    default:
      throw new RangeError(`a record of kind ${kind}`);
  }
}

function putClaim(out: ByteWriter, claim: HeldClaim): void {
  out.int(claim.epoch).int(claim.asked).text(claim.uid).text(claim.clusterId);
}

function takeClaim(input: ByteReader): HeldClaim {
  return { epoch: input.int(), asked: input.int(), uid: input.text(), clusterId: input.text() };
}
