/**
 * Checks and reads most frames in one pass, without the codec library: what `plain_writer.ts` writes, and the same values from
 * anybody. Undefined for everything else, malformed or not: it goes the whole way, which knows what is wrong with it.
 */
import { type Envelope, FRAME_HEADER_BYTES } from './batch.ts';
import { littleEndian } from './plain_writer.ts';

const maxDepth = 16;
const shortText = 64;
const maxKnown = 24;
/** A message in fewer bytes cannot have more items than are allowed. */
const mostBytes = 1_000_000;

/** What is not plain; no value of a message is this object. */
const refused: unknown = Object.freeze({});
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);
/** By length: the character codes of a text. */
const codes: number[][] = Array.from({ length: shortText + 1 }, (_, length) => new Array<number>(length).fill(0));
/** Keys and names seen lately, by their length and a few of their bytes. */
const known: string[] = new Array<string>(512).fill('');

let bytes = new Uint8Array(0);
let at = 0;
let end = 0;

/** The envelopes of a batch frame whose head has been checked. */
export function readPlainBatch(frame: Uint8Array): Envelope[] | undefined {
  if (frame.length > mostBytes || frame.length === FRAME_HEADER_BYTES) return undefined;
  bytes = frame as Uint8Array<ArrayBuffer>;
  at = FRAME_HEADER_BYTES;
  end = frame.length;
  const envelopes: Envelope[] = [];
  try {
    while (at < end) {
      const head = bytes[at]!;
      // An array that starts with an integer below 2^32.
      if (head < 0x81 || head > 0x97 || at + 1 >= end || bytes[at + 1]! > 0x1a) return undefined;
      const envelope = take(0);
      if (envelope === refused) return undefined;
      envelopes.push(envelope as Envelope);
    }
    return envelopes;
  } catch {
    // Bytes that are no text.
    return undefined;
  } finally {
    bytes = nothing;
  }
}

const nothing = bytes;

function take(depth: number): unknown {
  if (at >= end) return refused;
  const head = bytes[at++]!;
  const major = head >> 5;
  if (major === 7) return takeSimple(head);
  const info = head & 31;
  let argument = info;
  if (info > 23) {
    if (info > 26) return refused;
    argument = takeArgument(1 << (info - 24));
    if (argument < 0) return refused;
  }
  switch (major) {
    case 0:
      return argument;
    case 1:
      return -1 - argument;
    case 2:
      return takeBytes(argument);
    case 3:
      return takeText(argument, false);
    case 4:
      return takeItems(argument, depth + 1);
    case 5:
      return takeMembers(argument, depth + 1);
    default:
      return refused;
  }
}

/** −1: the bytes end. */
function takeArgument(width: number): number {
  if (at + width > end) return -1;
  let argument = 0;
  for (let i = 0; i < width; i += 1) argument = argument * 256 + bytes[at++]!;
  return argument;
}

function takeSimple(head: number): unknown {
  switch (head) {
    case 0xf4:
      return false;
    case 0xf5:
      return true;
    case 0xf6:
      return null;
    case 0xf7:
      return undefined;
    case 0xfb:
      if (at + 8 > end) return refused;
      for (let i = 0; i < 8; i += 1) floatBytes[littleEndian ? 7 - i : i] = bytes[at++]!;
      return float[0];
    default:
      return refused;
  }
}

function takeBytes(length: number): unknown {
  if (length > end - at) return refused;
  at += length;
  return Uint8Array.prototype.slice.call(bytes, at - length, at);
}

function takeText(length: number, key: boolean): unknown {
  if (length > end - at) return refused;
  const start = at;
  at += length;
  if (length > shortText) return longText(start);
  const text = codes[length]!;
  let hash = length;
  for (let i = 0; i < length; i += 1) {
    const code = bytes[start + i]!;
    if (code > 0x7f) return longText(start);
    text[i] = code;
    hash = hash * 31 + code & 511;
  }
  if (!key || length > maxKnown) return String.fromCharCode.apply(undefined, text);
  const guess = known[hash]!;
  if (matches(guess, text)) return guess;
  return known[hash] = String.fromCharCode.apply(undefined, text);
}

function matches(guess: string, text: readonly number[]): boolean {
  if (guess.length !== text.length) return false;
  for (let i = 0; i < text.length; i += 1) if (guess.charCodeAt(i) !== text[i]) return false;
  return true;
}

function longText(start: number): string {
  return utf8.decode(bytes.subarray(start, at));
}

function takeItems(count: number, depth: number): unknown {
  if (depth > maxDepth || count > end - at) return refused;
  const items: unknown[] = [];
  for (let i = 0; i < count; i += 1) {
    const item = take(depth);
    if (item === refused) return refused;
    items.push(item);
  }
  return items;
}

function takeMembers(count: number, depth: number): unknown {
  if (depth > maxDepth || count * 2 > end - at) return refused;
  const value: Record<string, unknown> = {};
  for (let i = 0; i < count; i += 1) {
    const head = at < end ? bytes[at]! : 0;
    if (head < 0x60 || head > 0x7a) return refused;
    at += 1;
    const length = head < 0x78 ? head & 31 : takeArgument(1 << (head - 0x78));
    const key = length < 0 ? refused : takeText(length, true);
    if (typeof key !== 'string' || key === '__proto__' || key === 'constructor') return refused;
    const member = take(depth);
    if (member === refused) return refused;
    value[key] = member;
  }
  return value;
}
