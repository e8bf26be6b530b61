/** How much a caller may send: a token bucket (the leaky bucket as a meter of ITU-T I.371), the same on both sides. */
import { coreLimits as limits } from '../limits.ts';

/** Each begun 4 KiB of a message counts as one more message. */
export function costOf(bytes: number): number {
  return 1 + Math.floor(bytes / limits.callerRateBytes);
}

export class RateBucket {
  readonly perSecond: number;
  readonly #burst: number;
  #level: number;
  #at: number;

  /** Full at first. */
  constructor(perSecond: number, burst: number, now: number) {
    this.perSecond = perSecond;
    this.#burst = burst;
    this.#level = burst;
    this.#at = now;
  }

  /** True when there was enough for `cost`; otherwise nothing is taken. What costs more than a burst takes a full one. */
  take(cost: number, now: number): boolean {
    this.#refill(now);
    const due = Math.min(cost, this.#burst);
    if (this.#level < due) return false;
    this.#level -= due;
    return true;
  }

  /** Milliseconds until `cost` can be taken. */
  waitMs(cost: number, now: number): number {
    this.#refill(now);
    const missing = Math.min(cost, this.#burst) - this.#level;
    return missing <= 0 ? 0 : Math.ceil((missing / this.perSecond) * 1000);
  }

  #refill(now: number): void {
    this.#level = Math.min(this.#burst, this.#level + (Math.max(0, now - this.#at) / 1000) * this.perSecond);
    this.#at = now;
  }
}
