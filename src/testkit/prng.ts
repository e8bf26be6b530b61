/**
 * The simulator's randomness: small generators (sfc32 by Chris Doty-Humphrey, public domain design) seeded by text, so
 * that every consumer has a stream of its own and taking a fault out of a plan leaves the other draws as they were.
 * Only 32-bit integer arithmetic: the same numbers on every runtime.
 */
import type { Random } from '../actor/environment.ts';

/** Seeded randomness, the same on every runtime. */
export class Prng implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** `seed` is any text; streams with different seeds are independent for our purposes. */
  constructor(seed: string) {
    let h1 = 0x9e3779b9;
    let h2 = 0x243f6a88;
    let h3 = 0xb7e15162;
    for (let i = 0; i < seed.length; i++) {
      const unit = seed.charCodeAt(i);
      h1 = Math.imul(h1 ^ unit, 0x85ebca6b);
      h1 ^= h1 >>> 13;
      h2 = Math.imul(h2 ^ unit, 0xc2b2ae35);
      h2 ^= h2 >>> 16;
      h3 = Math.imul(h3 ^ unit, 0x27d4eb2f);
      h3 ^= h3 >>> 15;
    }
    this.#a = h1 | 0;
    this.#b = h2 | 0;
    this.#c = h3 | 0;
    for (let i = 0; i < 15; i++) this.uint32();
  }

  /** An integer in 0 … 2^32 − 1. */
  uint32(): number {
    const result = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + result | 0;
    return result >>> 0;
  }

  /** In [0, 1), with 32 bits. */
  next(): number {
    return this.uint32() / 4294967296;
  }

  /** In [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** An integer in low … high, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.integer(0, items.length - 1)];
    if (items.length === 0) throw new RangeError('Prng.pick: the list is empty');
    return item as T;
  }

  /** A new list with the same items in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const result = items.slice();
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.integer(0, i);
      const kept = result[i] as T;
      result[i] = result[j] as T;
      result[j] = kept;
    }
    return result;
  }
}
