/** One timer for many deadlines: it rings at the earliest time asked for. Owners re-arm from their state when it rings. */
import type { Cancel, Environment } from '../actor/environment.ts';

export class Alarm {
  #environment: Environment;
  #ring: () => void;
  #due = Infinity;
  #cancel: Cancel | undefined;
  #stopped = false;

  constructor(environment: Environment, ring: () => void) {
    this.#environment = environment;
    this.#ring = ring;
  }

  /** `time` is monotonic. A later time than the one already set changes nothing. */
  at(time: number): void {
    if (time >= this.#due || this.#stopped) return;
    this.#cancel?.();
    this.#due = time;
    this.#cancel = this.#environment.timers.set(Math.max(0, time - this.#environment.clock.now()), () => {
      this.#due = Infinity;
      this.#cancel = undefined;
      this.#ring();
    });
  }

  /** For good: whoever still asks afterwards is not heard. */
  stop(): void {
    this.#stopped = true;
    this.cancel();
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#due = Infinity;
  }
}
