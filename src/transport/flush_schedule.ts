/**
 * When what a node sends leaves: at the end of the callback that sent the first of it, so that an answer does not wait for the
 * turn of the event loop; but where frames would follow each other at once, as those of many small steps do, at the end of the
 * turn, together.
 */
import type { SoonTurns } from '../actor/dispatcher.ts';
import type { Clock } from '../actor/environment.ts';
import { fastPaths } from '../fast_paths.ts';

/** Milliseconds after one flush in which the next one waits for the turn. Less than a message takes there and back. */
const restMs = 0.02;

export class FlushSchedule {
  readonly #clock: Clock;
  readonly #turns: SoonTurns;
  readonly #flush: () => void;
  readonly #guarded: (run: () => void) => void;
  #late: (() => void)[] = [];
  #booked = false;
  #flushedAt = -Infinity;

  /** `guarded` runs what was given to `before`, and never throws. */
  constructor(clock: Clock, turns: SoonTurns, flush: () => void, guarded: (run: () => void) => void) {
    this.#clock = clock;
    this.#turns = turns;
    this.#flush = flush;
    this.#guarded = guarded;
  }

  /** Something waits to be sent. */
  book(): void {
    if (this.#booked) return;
    this.#booked = true;
    const { soon } = this.#turns;
    if (soon === undefined || !fastPaths.soonFrames) this.#turns.schedule(this.#run);
    else if (this.#clock.now() - this.#flushedAt < restMs) this.#turns.schedule(this.#runAndRest);
    else soon(this.#runAndRest);
  }

  /** Runs `run` once before something is next sent: what it sends leaves with that. */
  before(run: () => void): void {
    this.#late.push(run);
    this.book();
  }

  readonly #runAndRest = (): void => {
    this.#run();
    this.#flushedAt = this.#clock.now();
  };

  readonly #run = (): void => {
    const late = this.#late;
    this.#late = [];
    for (const run of late) this.#guarded(run);
    // From here on what is sent needs a flush of its own: sending may end a link, and somebody may hear of it.
    this.#booked = false;
    if (this.#late.length > 0) this.book();
    this.#flush();
  };
}
