/** Logs refused peers, but never more than a stranger who keeps connecting should be able to write. */
import type { Environment } from '../actor/environment.ts';
import type { DialFailure } from './contract.ts';

const windowMs = 60_000;
const linesPerWindow = 20;

export class RefusalLog {
  readonly #environment: Environment;
  #windowEnds = -Infinity;
  #lines = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** The last line of a window says that the rest of it is silent; `total` counts on all the same. */
  refused(failure: DialFailure & { readonly from?: string }, total: number): void {
    const now = this.#environment.clock.now();
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + windowMs;
      this.#lines = 0;
    }
    if (++this.#lines > linesPerWindow) return;
    const more = this.#lines === linesPerWindow ? { silentForMs: Math.ceil(this.#windowEnds - now) } : {};
    this.#environment.log.warn('peer refused', { ...failure, total, ...more });
  }
}
