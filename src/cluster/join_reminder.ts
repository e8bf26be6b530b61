/** Says in the log, after a while and then ever less often, why a node that looks for its cluster is still outside. */
import type { Cancel, Environment } from '../actor/environment.ts';

/** Milliseconds until the first line, and the longest time between two. */
const firstMs = 3_000;
const longestMs = 60_000;

export class JoinReminder {
  readonly #environment: Environment;
  readonly #missing: () => string;
  #cancel: Cancel | undefined;

  /** @param missing what `/ready` says, asked for each line */
  constructor(environment: Environment, missing: () => string) {
    this.#environment = environment;
    this.#missing = missing;
  }

  start(): void {
    this.#arm(firstMs, 0);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(delayMs: number, waitedMs: number): void {
    this.#cancel = this.#environment.timers.set(delayMs, () => {
      const forMs = waitedMs + delayMs;
      this.#environment.log.warn(`not in a cluster yet: ${this.#missing()}`, { forMs });
      this.#arm(Math.min(longestMs, delayMs * 2), forMs);
    });
  }
}
