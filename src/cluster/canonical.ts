/** Text and hashes that are equal on every node for equal plain data, whatever the order of map entries. */
import { compareText } from './member.ts';

/** A text that determines `value`: keys sorted, strings quoted, types kept apart. */
export function canonicalText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Object.is(value, -0) ? '0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'object':
      return value === null ? 'null' : objectText(value);
    default:
      return '?';
  }
}

function objectText(value: object): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (value instanceof Uint8Array) return `bytes(${value.join(',')})`;
  if (value instanceof Date) return `date(${value.getTime()})`;
  if (value instanceof Map) {
    const pairs = [...value].map(([key, item]) => `${canonicalText(key)}:${canonicalText(item)}`);
    return `map{${pairs.sort(compareText).join(',')}}`;
  }
  if (value instanceof Set) return `set{${[...value].map(canonicalText).sort(compareText).join(',')}}`;
  const pairs = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${canonicalText(item)}`);
  return `{${pairs.sort(compareText).join(',')}}`;
}

/** Two 32-bit lanes. */
export type Hash = readonly [high: number, low: number];

/** 64 bits in two lanes, mixed like MurmurHash3. Not for secrets: members are authenticated before their gossip counts. */
export function hashText(text: string): Hash {
  let high = 0x9747b28c;
  let low = 0x3c6ef372;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul(high ^ unit, 0x85ebca6b);
    high ^= high >>> 13;
    low = Math.imul(low ^ unit, 0xc2b2ae35);
    low ^= low >>> 15;
  }
  return [finish(high ^ text.length), finish(low + text.length)];
}

/** The order of the parts does not matter. */
export function addHashes(a: Hash, b: Hash): Hash {
  return [(a[0] + b[0]) | 0, (a[1] + b[1]) | 0];
}

/** What `addHashes` of the result and `b` gives again. */
export function subtractHash(a: Hash, b: Hash): Hash {
  return [(a[0] - b[0]) | 0, (a[1] - b[1]) | 0];
}

export function hashDigits(hash: Hash): string {
  return (hash[0] >>> 0).toString(16).padStart(8, '0') + (hash[1] >>> 0).toString(16).padStart(8, '0');
}

function finish(lane: number): number {
  let h = lane | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
