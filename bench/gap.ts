/** How long a sender of 1 000 messages a second gets no replies while one host follows another. */
import { now } from './measure.ts';

/** Milliseconds that the sender goes on after the change, so that it is known to have lasted. */
const afterwardsMs = 500;

export interface GapResult {
  readonly ms: number;
  readonly told: number;
  /** Messages that were answered, and answers beyond the first of any. */
  readonly answered: number;
  readonly twice: number;
}

export class GapSender {
  readonly #answered = new Set<number>();
  #told = 0;
  #twice = 0;
  #last = now();
  #host = '';
  #gap: number | undefined;

  /** Called for each reply, with who gave it. */
  onReply(n: number, host: string): void {
    const at = now();
    if (this.#answered.has(n)) this.#twice += 1;
    this.#answered.add(n);
    if (this.#host !== '' && host !== this.#host) this.#gap ??= at - this.#last;
    this.#last = at;
    this.#host = host;
  }

  /** Tells until the host has changed and a moment longer. `started`: the first reply has come. */
  run(tell: (n: number) => void, started: () => void): Promise<void> {
    return new Promise((resolve) => {
      let due = now();
      let ends = Infinity;
      let running = false;
      const timer = setInterval(() => {
        for (; due < now(); due += 1) tell(this.#told++);
        if (!running && this.#host !== '') started();
        running = this.#host !== '';
        if (this.#gap !== undefined) ends = Math.min(ends, now() + afterwardsMs);
        if (now() < ends) return;
        clearInterval(timer);
        resolve();
      }, 1);
    });
  }

  get result(): GapResult {
    return { ms: this.#gap ?? NaN, told: this.#told, answered: this.#answered.size, twice: this.#twice };
  }
}
