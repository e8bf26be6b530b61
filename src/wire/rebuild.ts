/** Makes the copy of a value that the codec library can encode, for values in which the inspection found something special. */
import { Tag } from 'cbor-x/index-no-eval';
import { kinds } from './extension.ts';
import {
  EXACT_DATE_MS,
  type Inspection,
  isAwkwardKey,
  isAwkwardText,
  isNegativeZero,
  isWideBigint,
} from './inspect.ts';
import { EXTENSION_TAG } from './scan.ts';

function extension(...content: unknown[]): Tag {
  return new Tag(content, EXTENSION_TAG);
}

export class Rebuild {
  private readonly found: Inspection;
  private nextId = 0;

  constructor(found: Inspection) {
    this.found = found;
  }

  value(value: unknown): unknown {
    switch (typeof value) {
      case 'number':
        return isNegativeZero(value) ? extension(kinds.negativeZero) : value;
      case 'string':
        return isAwkwardText(value) ? extension(kinds.text, `x${value}`) : value;
      case 'bigint':
        return isWideBigint(value) ? extension(kinds.bigint, value.toString(16)) : value;
      case 'object':
        return value === null ? null : this.object(value);
      default:
        return value;
    }
  }

  /** The first occurrence is numbered once it is complete, so the decoder knows it before any repetition. */
  private object(value: object): unknown {
    const id = this.found.shared?.get(value);
    if (id === undefined) return this.content(value);
    if (id >= 0) return extension(kinds.repeat, id);
    const content = this.content(value);
    const fresh = this.nextId++;
    this.found.shared!.set(value, fresh);
    return extension(kinds.define, fresh, content);
  }

  private content(value: object): unknown {
    const replacement = this.found.replacements?.get(value);
    if (replacement !== undefined) {
      return replacement.hasData
        ? extension(...replacement.head, this.value(replacement.data))
        : extension(...replacement.head);
    }
    if (Array.isArray(value)) return Array.from(value, (item) => this.value(item));
    if (value instanceof Map) {
      return new Map(Array.from(value as Map<unknown, unknown>, ([key, item]) => [this.value(key), this.value(item)]));
    }
    if (value instanceof Set) return new Set(Array.from(value as Set<unknown>, (item) => this.value(item)));
    return this.leaf(value) ?? this.plain(value as Record<string, unknown>);
  }

  private leaf(value: object): unknown {
    if (value instanceof Date) {
      const time = value.getTime();
      return Math.abs(time) > EXACT_DATE_MS ? extension(kinds.date, time) : value;
    }
    if (value instanceof DataView) {
      return extension(kinds.dataView, new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    }
    if (ArrayBuffer.isView(value)) return value;
    if (value instanceof ArrayBuffer) return extension(kinds.arrayBuffer, new Uint8Array(value));
    if (value instanceof RegExp) return extension(kinds.regexp, value.source, value.flags);
    if (typeof URL === 'function' && value instanceof URL) return extension(kinds.url, value.href);
    return undefined;
  }

  private plain(value: Record<string, unknown>): unknown {
    const keys = Object.keys(value);
    if (keys.some(isAwkwardKey)) {
      const content: unknown[] = [kinds.object];
      for (const key of keys) content.push(this.value(key), this.value(value[key]));
      return new Tag(content, EXTENSION_TAG);
    }
    const copy: Record<string, unknown> = {};
    for (const key of keys) copy[key] = this.value(value[key]);
    return copy;
  }
}
