/** Where fuzzed inputs come from: one stream of choices per input, so that an input is found again by its number alone. */
import { Prng } from '../../src/testkit/prng.ts';

const edgeNumbers: readonly number[] = [
  0,
  -0,
  1,
  -1,
  2,
  255,
  256,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 45,
  2 ** 53 - 1,
  2 ** 53,
  -(2 ** 53),
  0.5,
  1e308,
  NaN,
  Infinity,
  -Infinity,
]; // deno-fmt-ignore

const evilTexts: readonly string[] = [
  '', ' ', '__proto__', 'constructor', 'prototype', 'toString', 'a\nb', '\u0000', '\ud800', '\ufeff', '🂡', '%00', '../..',
  '//', '/', '.', '..', '$', '{{x}}', '<script>', "' or 1=1", '-1', '1e9', '0x10', 'null', 'undefined', 'NaN', 'true',
  '127.0.0.1:0', '[::1]:80', 'h:65536', 'h:1', 'a'.repeat(300), 'é'.repeat(200),
]; // deno-fmt-ignore

export class Source {
  readonly #random: Prng;

  constructor(seed: string) {
    this.#random = new Prng(seed);
  }

  /** From 0 to below `below`. */
  int(below: number): number {
    return this.#random.uint32() % below;
  }

  chance(oneIn: number): boolean {
    return this.int(oneIn) === 0;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(from.length)] as T;
  }

  list<T>(max: number, make: () => T): T[] {
    return Array.from({ length: this.int(max + 1) }, make);
  }

  number(): number {
    return this.chance(3) ? this.int(100) : this.pick(edgeNumbers);
  }

  text(): string {
    switch (this.int(4)) {
      case 0:
        return this.pick(evilTexts);
      case 1:
        return this.pick(evilTexts) + this.pick(evilTexts);
      case 2:
        return String.fromCharCode(...this.list(12, () => this.int(this.chance(4) ? 65_536 : 128)));
      default:
        return this.pick(['a', 'counter', 'u1', '127.0.0.1:101', '/user/a', 'up', 'node']);
    }
  }

  bytes(max: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: this.int(max + 1) }, () => this.chance(3) ? this.pick([0, 1, 255, 127, 128]) : this.int(256));
  }

  /** Anything a message can hold. */
  value(depth = 3): unknown {
    switch (this.int(depth > 0 ? 16 : 9)) {
      case 0:
        return null;
      case 1:
        return undefined;
      case 2:
        return this.chance(2);
      case 3:
      case 4:
        return this.number();
      case 5:
      case 6:
        return this.text();
      case 7:
        return this.bytes(20);
      case 8:
        return this.pick([0n, -1n, 2n ** 70n, new Date(NaN), new Date(0), /x/g, new Error('e')]);
      case 9:
        return new Map(this.list(3, () => [this.value(0), this.value(depth - 1)]));
      case 10:
        return new Set(this.list(3, () => this.value(depth - 1)));
      case 11:
      case 12:
        return this.object(depth);
      default:
        return this.list(5, () => this.value(depth - 1));
    }
  }

  object(depth = 2): object {
    return JSON.parse(`{${this.list(4, () => `${JSON.stringify(this.text())}:${JSON.stringify(this.text())}`).join(',')}}`,
      (key, inner) => key !== '' && this.chance(3) ? this.value(depth - 1) : inner) as object;
  }

  /** What a grammar gives, or something else in its place once in a while. */
  mostly<T>(value: T, oneIn = 12): unknown {
    return this.chance(oneIn) ? this.value(2) : value;
  }

  /** Bytes with a few changes: flipped, cut, repeated, spliced. */
  damaged(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    let copy = Uint8Array.from(bytes);
    for (let changes = this.int(4); changes > 0 && copy.length > 0; changes--) {
      switch (this.int(4)) {
        case 0:
          copy[this.int(copy.length)] = this.int(256);
          break;
        case 1:
          copy[this.int(copy.length)]! ^= 1 << this.int(8);
          break;
        case 2:
          copy = copy.slice(0, this.int(copy.length + 1));
          break;
        default: {
          const at = this.int(copy.length + 1);
          copy = Uint8Array.from([...copy.slice(0, at), ...this.bytes(6), ...copy.slice(at)]);
        }
      }
    }
    return copy;
  }
}
