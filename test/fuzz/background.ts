/**
 * The platform's HMAC with its waiting in the fuzzer's hands: signatures and checks are done when the input says so, in any
 * order. So an input is the same each time it runs, and none waits for other threads. What is computed is HMAC-SHA-256.
 */
import { createHmac } from 'node:crypto';
import { setImmediate } from 'node:timers';
import type { Source } from './source.ts';

/** In the place of a `CryptoKey`. */
interface Key {
  readonly raw: Uint8Array;
}

/** Turns of the event loop after which nothing more can come. */
const patience = 10_000;

export class Background {
  readonly #source: Source;
  readonly #waiting: (() => void)[] = [];

  private constructor(source: Source) {
    this.#source = source;
  }

  /** Runs it with this HMAC in the place of the platform's. */
  static async during(source: Source, run: (background: Background) => Promise<void>): Promise<void> {
    const background = new Background(source);
    const { subtle } = crypto;
    const methods: Record<string, unknown> = {
      importKey: (_format: string, raw: Uint8Array | ArrayBuffer) => Promise.resolve({ raw: new Uint8Array(raw) }),
      sign: (_name: string, key: Key, message: Uint8Array) => background.#later(() => mac(key, message).buffer),
      verify: (_name: string, key: Key, given: Uint8Array, message: Uint8Array) =>
        background.#later(() => {
          const right = mac(key, message);
          return given.length === right.length && given.every((byte, index) => byte === right[index]);
        }),
    };
    for (const [name, value] of Object.entries(methods)) {
      Object.defineProperty(subtle, name, { value, configurable: true, writable: true });
    }
    try {
      await run(background);
    } finally {
      for (const name of Object.keys(methods)) delete (subtle as unknown as Record<string, unknown>)[name];
    }
  }

  /** Lets work be done until the condition holds; what waits for something that never comes hangs. */
  async settled(what: string, condition: () => boolean): Promise<void> {
    for (let idle = 0; !condition();) {
      if (this.#step()) await undefined;
      else if (++idle > patience) throw new Error(`this never came: ${what}`);
      else await turn();
    }
  }

  /** Everything that is under way. */
  async drained(): Promise<void> {
    for (let idle = 0; idle < 2; idle++) {
      while (this.#step()) idle = 0;
      await turn();
    }
  }

  #later<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => this.#waiting.push(() => resolve(work())));
  }

  #step(): boolean {
    const { length } = this.#waiting;
    if (length === 0) return false;
    const at = this.#source.int(length);
    const done = this.#waiting[at]!;
    this.#waiting[at] = this.#waiting.at(-1)!;
    this.#waiting.pop();
    done();
    return true;
  }
}

function mac(key: Key, message: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHmac('sha256', key.raw).update(message).digest());
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
