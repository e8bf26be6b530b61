/**
 * Most messages to bytes in one pass, without the codec library: plain objects, arrays, text, numbers, booleans and bytes, not
 * deep and each object once. Anything else is refused without a word, and goes the whole way (`codec.ts`).
 */
import { limits } from '../limits.ts';

const maxDepth = 8;
/** Objects of one value; each is compared with those before it. */
const maxObjects = 16;
/** Longer ones are copied by the runtime. */
const shortText = 128;
const keptBytes = 256 * 1024;
const mostBytes = 1_000_000;

const utf8 = new TextEncoder();
const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);
float[0] = 1;
export const littleEndian: boolean = floatBytes[7] !== 0;

/**
 * Where it begins to write. A copy to a place that lies a few bytes behind its source, counted within a page of memory, takes
 * a processor ten times as long: frames begin with a page, and this goes into them behind a short head.
 */
const origin = 2080;

let out = new Uint8Array(16 * 1024);
let at = 0;
const seen: unknown[] = new Array(maxObjects).fill(undefined);
let seenCount = 0;

/** `value` in a buffer that the next call overwrites; undefined for what is not plain, or has more than `maxBytes`. */
export function writePlain(value: unknown, maxBytes: number): Uint8Array | undefined {
  if (out.length > keptBytes) out = new Uint8Array(16 * 1024);
  at = origin;
  seenCount = 0;
  try {
    const written = put(value, 0) && at - origin <= Math.min(maxBytes, mostBytes);
    return written ? out.subarray(origin, at) : undefined;
  } catch {
    // Too large, or a getter that throws: the whole way says so.
    return undefined;
  } finally {
    for (let i = 0; i < seenCount; i += 1) seen[i] = undefined;
  }
}

/** Thrown on the way, for what becomes too large: a small value can stand for more than there is memory. */
const tooLarge = new Error('too large');

function room(bytes: number): void {
  if (at + bytes <= out.length) return;
  if (at + bytes > origin + 4 * mostBytes) throw tooLarge;
  const grown = new Uint8Array(Math.max(at + bytes, out.length * 2));
  grown.set(out.subarray(0, at));
  out = grown;
}

function put(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
      return putText(value);
    case 'number':
      return putNumber(value);
    case 'boolean':
      return putByte(value ? 0xf5 : 0xf4);
    case 'undefined':
      return putByte(0xf7);
    case 'object':
      return value === null ? putByte(0xf6) : putObject(value, depth);
    default:
      return false;
  }
}

function putByte(byte: number): true {
  room(1);
  out[at++] = byte;
  return true;
}

/** The head of an item; `argument` is below 2^32. */
function putHead(major: number, argument: number): void {
  room(5);
  if (argument < 24) {
    out[at++] = major | argument;
  } else if (argument < 0x100) {
    out[at++] = major | 24;
    out[at++] = argument;
  } else if (argument < 0x10000) {
    out[at++] = major | 25;
    out[at++] = argument >> 8;
    out[at++] = argument;
  } else {
    out[at++] = major | 26;
    out[at++] = argument >>> 24;
    out[at++] = argument >>> 16;
    out[at++] = argument >>> 8;
    out[at++] = argument;
  }
}

function putNumber(value: number): boolean {
  if (value === 0 && 1 / value < 0) return false;
  if (value === value >>> 0) {
    putHead(0, value);
    return true;
  }
  if (value === value >> 0) {
    putHead(0x20, -1 - value);
    return true;
  }
  room(9);
  out[at++] = 0xfb;
  float[0] = value;
  for (let i = 0; i < 8; i += 1) out[at++] = floatBytes[littleEndian ? 7 - i : i]!;
  return true;
}

function putText(text: string): boolean {
  const { length } = text;
  if (length > shortText) return putLongText(text, length);
  room(length + 2);
  const start = at;
  if (length < 24) {
    out[at++] = 0x60 | length;
  } else {
    out[at++] = 0x78;
    out[at++] = length;
  }
  for (let i = 0; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      at = start;
      return putLongText(text, length);
    }
    out[at++] = code;
  }
  return true;
}

/** Text of any kind. Its head has room for the longest that it could become. */
function putLongText(text: string, length: number): boolean {
  if (length > limits.frameBytes || text.charCodeAt(0) === 0xfeff) return false;
  const most = length * 3;
  room(most + 5);
  const head = most < 0x100 ? 2 : most < 0x10000 ? 3 : 5;
  const { written } = utf8.encodeInto(text, out.subarray(at + head));
  if (head === 2) out[at++] = 0x78;
  else if (head === 3) {
    out[at++] = 0x79;
    out[at++] = written >> 8;
  } else {
    out[at++] = 0x7a;
    out[at++] = written >>> 24;
    out[at++] = written >>> 16;
    out[at++] = written >>> 8;
  }
  out[at] = written;
  at += 1 + written;
  return true;
}

function putObject(value: object, depth: number): boolean {
  if (depth >= maxDepth || seenCount >= maxObjects) return false;
  for (let i = 0; i < seenCount; i += 1) if (seen[i] === value) return false;
  seen[seenCount++] = value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype) return putMembers(value as Record<string, unknown>, depth + 1);
  if (prototype === Array.prototype && Array.isArray(value)) return putItems(value, depth + 1);
  return prototype === Uint8Array.prototype && putBytes(value as Uint8Array);
}

function putItems(items: readonly unknown[], depth: number): boolean {
  const { length } = items;
  if ((items as object).constructor !== Array || length > mostBytes) return false;
  putHead(0x80, length);
  for (let i = 0; i < length; i += 1) if (!put(items[i], depth)) return false;
  return true;
}

function putMembers(value: Record<string, unknown>, depth: number): boolean {
  const keys = Object.keys(value);
  putHead(0xa0, keys.length);
  for (let i = 0; i < keys.length; i += 1) {
    const key = keys[i]!;
    // Keys that assignment would treat as more than data.
    if (key === '__proto__' || key === 'constructor') return false;
    if (!putText(key) || !put(value[key], depth)) return false;
  }
  return true;
}

function putBytes(bytes: Uint8Array): boolean {
  if (bytes.constructor !== Uint8Array || bytes.length > mostBytes) return false;
  putHead(0x40, bytes.length);
  room(bytes.length);
  out.set(bytes, at);
  at += bytes.length;
  return true;
}
