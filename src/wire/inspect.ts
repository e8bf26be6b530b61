/**
 * The one walk over a value before it is encoded: refuses what cannot be sent, by name of the field, and finds out
 * whether anything in it needs more than the codec library does by itself. Nothing is copied here.
 */
import { limits } from '../limits.ts';
import { SerializationError } from './errors.ts';
import { type ClassCodec, errorData, kinds, MAX_BIGINT_DIGITS, type RefResolver } from './extension.ts';

/** A class instance as the data that stands for it: `[kind, …fixed, data]`. */
export interface Replacement {
  readonly head: readonly unknown[];
  /** Visited and rebuilt like any other value; left out when undefined. */
  readonly data: unknown;
  readonly hasData: boolean;
}

const TWO_64 = 1n << 64n;
/** Further away, seconds as a double lose milliseconds. */
export const EXACT_DATE_MS = 1e15;
const SMALL = 16;

const typedArrayClasses: ReadonlySet<unknown> = new Set([
  Uint8Array,
  Uint8ClampedArray,
  Uint16Array,
  Uint32Array,
  BigUint64Array,
  Int8Array,
  Int16Array,
  Int32Array,
  BigInt64Array,
  Float32Array,
  Float64Array,
]);

/** Keys that assignment on the other side, or the library on this one, would treat as more than data. */
export function isAwkwardKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || isAwkwardText(key);
}

/** The decoder drops a leading byte-order mark of longer strings. */
export function isAwkwardText(text: string): boolean {
  return text.length > 20 && text.charCodeAt(0) === 0xfeff;
}

export function isNegativeZero(value: number): boolean {
  return value === 0 && 1 / value < 0;
}

export function isWideBigint(value: bigint): boolean {
  return value >= TWO_64 || value <= -TWO_64;
}

export class Inspection {
  /** True once something was found that must be rebuilt before it is encoded. */
  special = false;
  depth = 0;
  /** No encoding of the value is smaller than this. */
  bytes = 0;
  /** Elements, keys and values in all its containers. */
  items = 0;
  /** Objects that occur more than once; the number is assigned when they are rebuilt. */
  shared: Map<object, number> | undefined = undefined;
  replacements: Map<object, Replacement> | undefined = undefined;

  private readonly refs: RefResolver | undefined;
  private readonly classes: ReadonlyMap<unknown, ClassCodec>;
  private readonly open: object[] = [];
  private readonly keys: (string | number)[] = [];
  /** The objects seen so far, as long as they are few: `fewCount` of them. */
  private readonly few: (object | undefined)[] = [];
  private fewCount = 0;
  private many: Set<object> | undefined = undefined;

  constructor(refs: RefResolver | undefined, classes: ReadonlyMap<unknown, ClassCodec>) {
    this.refs = refs;
    this.classes = classes;
  }

  /** Ready for another value, with nothing kept of the last one: making an inspection anew costs more than using it. */
  reset(): void {
    this.special = false;
    this.depth = 0;
    this.bytes = 0;
    this.items = 0;
    this.shared = undefined;
    this.replacements = undefined;
    this.many = undefined;
    for (let i = 0; i < this.fewCount; i++) this.few[i] = undefined;
    this.fewCount = 0;
    if (this.open.length > 0) this.open.length = 0;
    if (this.keys.length > SMALL) this.keys.length = 0;
  }

  /** @throws SerializationError */
  visit(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.bytes += value.length;
        if (isAwkwardText(value)) this.special = true;
        return;
      case 'number':
        if (isNegativeZero(value)) this.special = true;
        return;
      case 'boolean':
      case 'undefined':
        return;
      case 'object':
        if (value !== null) this.visitObject(value);
        return;
      case 'bigint':
        this.visitBigint(value);
        return;
      case 'function':
        return this.refuse(
          `is a function${value.name === '' ? '' : ` (${value.name.slice(0, 60)})`}; functions cannot be sent`,
        );
      case 'symbol':
        return this.refuse('is a symbol; symbols cannot be sent');
    }
  }

  private visitBigint(value: bigint): void {
    if (!isWideBigint(value)) return;
    this.special = true;
    if (value.toString(16).length > MAX_BIGINT_DIGITS) {
      this.refuse(`is a bigint of more than ${MAX_BIGINT_DIGITS} hex digits`);
    }
  }

  private visitObject(value: object): void {
    if (this.seenBefore(value)) {
      if (this.open.includes(value)) this.refuse('refers back to a value that contains it; cycles cannot be sent');
      this.special = true;
      (this.shared ??= new Map()).set(value, -1);
      return;
    }
    if (Array.isArray(value)) return this.visitArray(value);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null || isForeignPlain(prototype)) {
      if (prototype !== Object.prototype) this.special = true;
      return this.visitPlain(value as Record<string, unknown>);
    }
    if (prototype === Map.prototype) return this.visitMap(value as Map<unknown, unknown>);
    if (prototype === Set.prototype) return this.visitSet(value as Set<unknown>);
    if (!this.visitLeaf(value)) this.visitInstance(value);
  }

  private visitArray(value: readonly unknown[]): void {
    if ((value as object).constructor !== Array) this.refuseInstance(value);
    this.count(value.length);
    this.enter(value);
    const at = this.open.length - 1;
    for (let i = 0; i < value.length; i++) {
      this.keys[at] = i;
      this.visit(value[i]);
    }
    this.open.pop();
  }

  private visitPlain(value: Record<string, unknown>): void {
    const keys = Object.keys(value);
    this.count(keys.length * 2);
    this.enter(value);
    const at = this.open.length - 1;
    for (const key of keys) {
      this.keys[at] = key;
      if (isAwkwardKey(key)) this.special = true;
      this.visit(value[key]);
    }
    this.open.pop();
  }

  private visitMap(value: ReadonlyMap<unknown, unknown>): void {
    this.count(value.size * 2);
    this.enter(value);
    const at = this.open.length - 1;
    let i = 0;
    for (const [key, item] of value) {
      this.keys[at] = i++;
      this.visit(key);
      this.visit(item);
    }
    this.open.pop();
  }

  private visitSet(value: ReadonlySet<unknown>): void {
    this.count(value.size);
    this.enter(value);
    const at = this.open.length - 1;
    let i = 0;
    for (const item of value) {
      this.keys[at] = i++;
      this.visit(item);
    }
    this.open.pop();
  }

  /** Built-ins without members. False when `value` is not one. */
  private visitLeaf(value: object): boolean {
    if (value instanceof Date) {
      if (Object.getPrototypeOf(value) !== Date.prototype) return false;
      if (Math.abs(value.getTime()) > EXACT_DATE_MS) this.special = true;
      return true;
    }
    if (ArrayBuffer.isView(value)) {
      this.bytes += value.byteLength;
      if (Object.getPrototypeOf(value) === DataView.prototype) this.special = true;
      // Node's Buffer is a Uint8Array in all but name, and arrives as one.
      else return value instanceof Uint8Array || typedArrayClasses.has(value.constructor);
      return true;
    }
    if (value instanceof ArrayBuffer) this.bytes += value.byteLength;
    if (
      value instanceof ArrayBuffer || value instanceof RegExp || (typeof URL === 'function' && value instanceof URL)
    ) {
      this.special = true;
      return true;
    }
    return false;
  }

  private visitInstance(value: object): void {
    this.special = true;
    const replacement = this.replacementFor(value);
    if (replacement === undefined) return this.refuseInstance(value);
    (this.replacements ??= new Map()).set(value, replacement);
    if (!replacement.hasData) return;
    this.enter(value);
    this.keys[this.open.length - 1] = '';
    this.visit(replacement.data);
    this.open.pop();
  }

  private replacementFor(value: object): Replacement | undefined {
    const codec = this.classes.get(value.constructor);
    if (codec !== undefined) {
      return { head: [kinds.instance, codec.name], data: this.toWire(codec, value), hasData: true };
    }
    const ref = this.refs?.toWire(value);
    if (ref !== undefined) return { head: [kinds.ref, ...ref], data: undefined, hasData: false };
    if (value instanceof Error) return { head: [kinds.error], data: errorData(value), hasData: true };
    return undefined;
  }

  private toWire(codec: ClassCodec, value: object): unknown {
    try {
      return codec.toWire(value);
    } catch (error) {
      return this.refuse(`was refused by the codec of class '${codec.name}': ${String(error)}`, error);
    }
  }

  private enter(value: object): void {
    if (this.open.length >= limits.depth) this.refuse(`is nested deeper than ${limits.depth} levels`);
    this.open.push(value);
    if (this.open.length > this.depth) this.depth = this.open.length;
  }

  private count(items: number): void {
    this.items += items;
    if (this.items > limits.itemsPerFrame) this.refuse(`takes the message over ${limits.itemsPerFrame} items`);
  }

  private seenBefore(value: object): boolean {
    if (this.many === undefined) {
      const { few, fewCount } = this;
      for (let i = 0; i < fewCount; i++) if (few[i] === value) return true;
      few[fewCount] = value;
      this.fewCount = fewCount + 1;
      if (this.fewCount > SMALL) this.many = new Set(few as object[]);
      return false;
    }
    if (this.many.has(value)) return true;
    this.many.add(value);
    return false;
  }

  private refuseInstance(value: object): never {
    const name = String((value.constructor as { name?: unknown } | undefined)?.name ?? 'unknown class').slice(0, 60);
    if (typeof (value as { then?: unknown }).then === 'function') {
      return this.refuse(`is a promise (${name}); await it before sending`);
    }
    return this.refuse(`is an instance of ${name}, and no codec is registered for that class`);
  }

  private refuse(rule: string, cause?: unknown): never {
    throw new SerializationError(this.path(), rule, cause);
  }

  /** `a.items[3].fn`; the nth entry of a Map or Set is `entry(n)`. */
  private path(): string {
    let path = '';
    this.open.forEach((container, depth) => {
      const key = this.keys[depth];
      if (key === undefined || key === '') return;
      if (typeof key === 'string') path += path === '' ? key : `.${key}`;
      else if (Array.isArray(container)) path += `[${key}]`;
      else path += `${path === '' ? '' : '.'}entry(${key})`;
    });
    return path.length > 500 ? `${path.slice(0, 500)}…` : path;
  }
}

/** `Object.prototype` of another realm. */
function isForeignPlain(prototype: unknown): boolean {
  return typeof prototype === 'object' && prototype !== null && Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'hasOwnProperty') && Object.hasOwn(prototype, 'isPrototypeOf');
}
