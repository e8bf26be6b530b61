/** The reading half of `lean_codec.ts`. */
import { coreLimits as limits } from '../limits.ts';
import { DecodeError, FrameError } from './errors.ts';
import { EXTENSION_TAG, type RefResolver, revive, type ReviveContext } from './extension.ts';
import { arrayTags, MAP_TAG, SET_TAG } from './lean_tags.ts';

export class LeanReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #text = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #context: ReviveContext;
  #at = 0;
  #depth = 0;

  constructor(bytes: Uint8Array, refs: RefResolver | undefined) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#context = { refs, defined: new Map() };
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** One value of a sequence. */
  next(): unknown {
    this.#context.defined.clear();
    return this.#value();
  }

  /** The position of the next `count` bytes. */
  #take(count: number): number {
    const at = this.#at;
    this.#at += count;
    if (this.#at > this.#bytes.length) throw new FrameError('truncated', 'the bytes end inside a value');
    return at;
  }

  #value(): unknown {
    const head = this.#bytes[this.#take(1)]!;
    const major = head >> 5;
    const info = head & 31;
    if (major === 7) return this.#simple(info);
    if (major < 2 && info === 27) {
      const big = this.#view.getBigUint64(this.#take(8));
      return major === 0 ? big : -1n - big;
    }
    const count = this.#argument(info);
    if (major < 2) return major === 0 ? count : -1 - count;
    if (major < 4) {
      const at = this.#take(count);
      const bytes = this.#bytes.slice(at, this.#at);
      return major === 2 ? bytes : this.#text.decode(bytes);
    }
    this.#depth += 1;
    if (this.#depth > limits.depth) throw new FrameError('too-deep', `a message is nested deeper than ${limits.depth}`);
    const value = major === 6 ? this.#tagged(count) : major === 4 ? this.#items(count) : this.#object(count);
    this.#depth -= 1;
    return value;
  }

  #argument(info: number): number {
    if (info < 24) return info;
    if (info === 24) return this.#view.getUint8(this.#take(1));
    if (info === 25) return this.#view.getUint16(this.#take(2));
    if (info === 26) return this.#view.getUint32(this.#take(4));
    throw new FrameError('encoding', `head ${info} is refused`);
  }

  #simple(info: number): unknown {
    switch (info) {
      case 20:
      case 21:
        return info === 21;
      case 22:
        return null;
      case 23:
        return undefined;
      case 26:
        return this.#view.getFloat32(this.#take(4));
      case 27:
        return this.#view.getFloat64(this.#take(8));
      default:
        throw new FrameError('simple-value', `simple value ${info} is refused`);
    }
  }

  #items(count: number): unknown[] {
    const items: unknown[] = [];
    for (let at = 0; at < count; at += 1) items.push(this.#value());
    return items;
  }

  #entries(count: number): [unknown, unknown][] {
    const entries: [unknown, unknown][] = [];
    for (let at = 0; at < count; at += 1) entries.push([this.#value(), this.#value()]);
    return entries;
  }

  /** Defines, and never assigns: `__proto__` is a key like any other. */
  #object(count: number): unknown {
    return Object.fromEntries(this.#entries(count) as [string, unknown][]);
  }

  #tagged(tag: number): unknown {
    if (tag === MAP_TAG) {
      const head = this.#bytes[this.#take(1)]!;
      if (head >> 5 !== 5) throw new FrameError('tag', 'a map without entries');
      return new Map(this.#entries(this.#argument(head & 31)));
    }
    const content = this.#value();
    if (tag === EXTENSION_TAG) return revive(content, this.#context);
    if (tag === 1 && typeof content === 'number') return new Date(Math.round(content * 1000));
    if (tag === SET_TAG && Array.isArray(content)) return new Set(content);
    const type = arrayTags.find(([own]) => own === tag)?.[1];
    if (type === undefined || !(content instanceof Uint8Array)) throw new FrameError('tag', `tag ${tag} is refused`);
    if (content.length % type.BYTES_PER_ELEMENT !== 0) throw new DecodeError('an array of a wrong length');
    return new type(content.buffer);
  }
}
