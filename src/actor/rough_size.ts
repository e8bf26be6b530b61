/** About how much memory a message keeps: for bounds on what is kept, not for the wire. Runs no code of the message's own. */

import { ActorRef } from './ref.ts';

const itemBytes = 16;
/** More parts than these are not looked at. */
const mostParts = 2_000;

/** `Infinity` where it has too many parts to be looked at, or resists. */
export function roughSize(value: unknown): number {
  try {
    return new Walk().sizeOf(value);
  } catch {
    return Infinity;
  }
}

class Walk {
  readonly #open: unknown[] = [];
  readonly #seen = new Set<object>();
  #parts = 0;

  sizeOf(value: unknown): number {
    this.#add(value);
    let bytes = 0;
    while (this.#open.length > 0 && this.#parts <= mostParts) bytes += this.#visit(this.#open.pop());
    return this.#parts > mostParts ? Infinity : bytes;
  }

  #add(value: unknown): void {
    this.#parts += 1;
    if (this.#parts <= mostParts) this.#open.push(value);
  }

  #visit(value: unknown): number {
    if (typeof value === 'string') return itemBytes + value.length * 2;
    if (typeof value !== 'object' || value === null || this.#isLeaf(value)) return itemBytes;
    this.#seen.add(value);
    if (ArrayBuffer.isView(value)) return itemBytes + value.buffer.byteLength;
    if (value instanceof ArrayBuffer) return itemBytes + value.byteLength;
    this.#addParts(value);
    return itemBytes;
  }

  /** A ref holds on to nothing that its actor does not. */
  #isLeaf(value: object): boolean {
    return this.#seen.has(value) || value instanceof ActorRef;
  }

  #addParts(value: object): void {
    if ((Array.isArray(value) && value.length > mostParts) || (value instanceof Map && value.size > mostParts)) {
      this.#parts = Infinity;
      return;
    }
    if (value instanceof Map) { for (const pair of value) pair.forEach((part) => this.#add(part)); }
    if (value instanceof Set) { for (const part of value) this.#add(part); }
    for (const key of Object.keys(value)) {
      this.#add(key);
      this.#add(Object.getOwnPropertyDescriptor(value, key)?.value);
    }
  }
}
