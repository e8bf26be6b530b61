/** The writing half of `lean_codec.ts`. */
import { coreLimits as limits } from '../limits.ts';
import { MessageTooLargeError, SerializationError } from './errors.ts';
import { errorData, EXTENSION_TAG, kinds, type RefResolver } from './extension.ts';
import { arrayTags, MAP_TAG, SET_TAG } from './lean_tags.ts';

/** Further away, seconds as a double lose milliseconds. */
const exactDateMs = 1e15;
const wide = 1n << 64n;

export class LeanWriter {
  readonly #refs: RefResolver | undefined;
  readonly #maxBytes: number;
  readonly #text = new TextEncoder();
  readonly #open: object[] = [];
  readonly #path: (string | number)[] = [];
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  constructor(refs: RefResolver | undefined, maxBytes: number) {
    this.#refs = refs;
    this.#maxBytes = maxBytes;
  }

  encode(value: unknown): Uint8Array<ArrayBuffer> {
    this.#value(value);
    return this.#bytes.slice(0, this.#at);
  }

  #room(count: number): number {
    const at = this.#at;
    this.#at += count;
    if (this.#at > this.#maxBytes) throw new MessageTooLargeError(this.#at, this.#maxBytes);
    if (this.#at > this.#bytes.length) {
      const grown = new Uint8Array(this.#at * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }

  #head(major: number, count: number): void {
    const first = major << 5;
    if (count < 24) this.#byte(first | count);
    else if (count < 65_536) {
      this.#byte(first | 25);
      // Room first, here and below: it may replace the buffer.
      const at = this.#room(2);
      this.#view.setUint16(at, count);
    } else {
      this.#byte(first | 26);
      const at = this.#room(4);
      this.#view.setUint32(at, count);
    }
  }

  #byte(byte: number): void {
    const at = this.#room(1);
    this.#bytes[at] = byte;
  }

  #raw(major: number, bytes: Uint8Array): void {
    this.#head(major, bytes.length);
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
  }

  #value(value: unknown): void {
    switch (typeof value) {
      case 'undefined':
        return this.#byte(0xf7);
      case 'boolean':
        return this.#byte(value ? 0xf5 : 0xf4);
      case 'number':
        return this.#number(value);
      case 'bigint':
        return this.#bigint(value);
      case 'string':
        // A decoder would take the first character for a byte-order mark.
        if (value.charCodeAt(0) === 0xfeff) return this.#extension(kinds.text, `x${value}`);
        return this.#raw(3, this.#text.encode(value));
      case 'object':
        return value === null ? this.#byte(0xf6) : this.#object(value);
      default:
        return this.#refuse(`is a ${typeof value}; ${typeof value}s cannot be sent`);
    }
  }

  #number(value: number): void {
    if (Object.is(value, -0)) return this.#extension(kinds.negativeZero);
    if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) {
      return value < 0 ? this.#head(1, -1 - value) : this.#head(0, value);
    }
    this.#byte(0xfb);
    const at = this.#room(8);
    this.#view.setFloat64(at, value);
  }

  #bigint(value: bigint): void {
    if (value >= wide || value <= -wide) return this.#extension(kinds.bigint, value.toString(16));
    const negative = value < 0n;
    this.#byte(negative ? 0x3b : 0x1b);
    const at = this.#room(8);
    this.#view.setBigUint64(at, negative ? -1n - value : value);
  }

  #extension(...content: unknown[]): void {
    this.#head(6, EXTENSION_TAG);
    this.#head(4, content.length);
    for (const item of content) this.#value(item);
  }

  #object(value: object): void {
    if (this.#open.includes(value)) this.#refuse('refers back to a value that contains it; cycles cannot be sent');
    if (this.#open.length >= limits.depth) this.#refuse(`is nested deeper than ${limits.depth} levels`);
    this.#open.push(value);
    if (!this.#container(value) && !this.#leaf(value)) this.#instance(value);
    this.#open.pop();
  }

  #container(value: object): boolean {
    if (Array.isArray(value)) {
      this.#head(4, value.length);
      for (let at = 0; at < value.length; at += 1) this.#item(at, value[at]);
    } else if (value instanceof Map) {
      this.#head(6, MAP_TAG);
      this.#head(5, value.size);
      let at = 0;
      for (const [key, item] of value) {
        this.#item(at, key);
        this.#item(at++, item);
      }
    } else if (value instanceof Set) {
      this.#head(6, SET_TAG);
      this.#head(4, value.size);
      let at = 0;
      for (const item of value) this.#item(at++, item);
    } else {
      const prototype = Object.getPrototypeOf(value);
      if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return false;
      this.#plain(Object.entries(value));
    }
    return true;
  }

  #plain(entries: readonly [string, unknown][]): void {
    const awkward = entries.some(([key]) => key === '__proto__' || key === 'constructor' || key[0] === '\ufeff');
    if (awkward) {
      this.#head(6, EXTENSION_TAG);
      this.#head(4, entries.length * 2 + 1);
      this.#value(kinds.object);
    } else this.#head(5, entries.length);
    for (const [key, item] of entries) {
      this.#value(key);
      this.#item(key, item);
    }
  }

  #item(key: string | number, item: unknown): void {
    this.#path.push(key);
    this.#value(item);
    this.#path.pop();
  }

  #leaf(value: object): boolean {
    if (value instanceof Date) {
      const ms = value.getTime();
      if (Math.abs(ms) > exactDateMs) this.#extension(kinds.date, ms);
      else {
        this.#byte(0xc1);
        this.#number(ms / 1000);
      }
    } else if (value instanceof DataView) {
      this.#extension(kinds.dataView, new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    } else if (ArrayBuffer.isView(value)) {
      const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      const tag = value instanceof Uint8Array ? 64 : arrayTags.find(([, type]) => value instanceof type)?.[0];
      if (tag === undefined) return false;
      if (tag !== 64) this.#head(6, tag);
      this.#raw(2, bytes);
    } else if (value instanceof ArrayBuffer) this.#extension(kinds.arrayBuffer, new Uint8Array(value));
    else if (value instanceof RegExp) this.#extension(kinds.regexp, value.source, value.flags);
    else if (value instanceof URL) this.#extension(kinds.url, value.href);
    else return false;
    return true;
  }

  #instance(value: object): void {
    const ref = this.#refs?.toWire(value);
    if (ref !== undefined) return this.#extension(kinds.ref, ...ref);
    if (value instanceof Error) return this.#extension(kinds.error, errorData(value));
    this.#refuse(`is an instance of ${String(value.constructor?.name).slice(0, 60)}, which cannot be sent`);
  }

  #refuse(rule: string): never {
    const path = this.#path.map((key) => typeof key === 'number' ? `[${key}]` : `.${key}`).join('');
    throw new SerializationError(path.replace(/^\./, '').slice(0, 500), rule);
  }
}
