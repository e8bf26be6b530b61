/** How many lines a log may get from something that strangers can cause: so many in a window, and the last says so. */
import type { Environment } from './environment.ts';

const windowMs = 60_000;
const linesPerWindow = 20;

export class LineBudget {
  private readonly environment: Pick<Environment, 'clock'>;
  private windowEnds = -Infinity;
  private lines = 0;

  constructor(environment: Pick<Environment, 'clock'>) {
    this.environment = environment;
  }

  /** Undefined: no line. Otherwise fields to add to it: the last line of a window says how long there will be none. */
  take(): { readonly silentForMs?: number } | undefined {
    const now = this.environment.clock.now();
    if (now >= this.windowEnds) {
      this.windowEnds = now + windowMs;
      this.lines = 0;
    }
    if (++this.lines > linesPerWindow) return undefined;
    return this.lines === linesPerWindow ? { silentForMs: Math.ceil(this.windowEnds - now) } : {};
  }
}
