/** How many lines a log may get from something that can happen any number of times: so many in a window, and what is left out is counted. */
import type { Environment } from './environment.ts';

const windowMs = 60_000;
const linesPerWindow = 20;

export class LineBudget {
  readonly #environment: Pick<Environment, 'clock'>;
  #windowEnds = -Infinity;
  #lines = 0;

  constructor(environment: Pick<Environment, 'clock'>) {
    this.#environment = environment;
  }

  /**
   * Undefined: no line. Otherwise fields to add to it: the last line of a window says how long there will be none, and the
   * first one after that how many were left out.
   */
  take(): { readonly silentForMs?: number; readonly leftOut?: number } | undefined {
    const now = this.#environment.clock.now();
    let leftOut = 0;
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + windowMs;
      leftOut = Math.max(0, this.#lines - linesPerWindow);
      this.#lines = 0;
    }
    if (++this.#lines > linesPerWindow) return undefined;
    if (this.#lines === linesPerWindow) return { silentForMs: Math.ceil(this.#windowEnds - now) };
    return leftOut > 0 ? { leftOut } : {};
  }
}
