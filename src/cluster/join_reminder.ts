/** When a node that looks for its cluster says in its log why it is still outside: after a while, then ever less often. */

/** Milliseconds until the first line, and the longest time between two. */
const firstMs = 3_000;
const longestMs = 60_000;

/** Has no timer: it is asked after each step of the search, which takes one every two seconds at least. */
export class JoinReminder {
  readonly #startedAt: number;
  #dueAt: number;
  #pauseMs = firstMs;

  constructor(now: number) {
    this.#startedAt = now;
    this.#dueAt = now + firstMs;
  }

  /** Milliseconds since the start when a line is due, which counts as written then; otherwise undefined. */
  due(now: number): number | undefined {
    if (now < this.#dueAt) return undefined;
    this.#pauseMs = Math.min(longestMs, this.#pauseMs * 2);
    this.#dueAt = now + this.#pauseMs;
    return Math.round(now - this.#startedAt);
  }
}
