/**
 * The last events of this node, numbered, for readers that come back. An id is `<uid>-<number>`: after a restart of the
 * node, or when a reader was away for too long, the id is not one it can continue from, and it is told so.
 */
import type { InspectionEvent } from './inspection.ts';

export interface NumberedEvent {
  readonly id: string;
  readonly number: number;
  readonly event: InspectionEvent;
}

export interface Resumption {
  readonly events: readonly NumberedEvent[];
  /** Events were missed: the reader must read the present state again. */
  readonly gap: boolean;
}

export class EventLog {
  readonly #uid: string;
  readonly #capacity: number;
  /** A ring: the event with number n is at n modulo capacity. */
  readonly #ring: NumberedEvent[] = [];
  #last = 0;

  constructor(uid: string, capacity: number) {
    this.#uid = uid;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#ring.length;
  }

  append(event: InspectionEvent): NumberedEvent {
    this.#last += 1;
    const numbered = { id: `${this.#uid}-${this.#last}`, number: this.#last, event };
    this.#ring[this.#last % this.#capacity] = numbered;
    return numbered;
  }

  /** The newest `count`, oldest first. */
  latest(count: number): readonly NumberedEvent[] {
    return this.#after(Math.max(this.#last - Math.min(count, this.#capacity), 0));
  }

  /** What came after `id`; everything that is kept, and a gap, when `id` cannot be continued. */
  resume(id: string): Resumption {
    const dash = id.lastIndexOf('-');
    const number = /^\d{1,15}$/.test(id.slice(dash + 1)) ? Number(id.slice(dash + 1)) : -1;
    const known = id.slice(0, dash) === this.#uid && number >= 0 && number <= this.#last;
    if (!known || number < this.#last - this.#capacity) return { events: this.latest(this.#capacity), gap: true };
    return { events: this.#after(number), gap: false };
  }

  #after(number: number): NumberedEvent[] {
    const events: NumberedEvent[] = [];
    for (let n = Math.max(number, this.#last - this.#capacity) + 1; n <= this.#last; n++) {
      const numbered = this.#ring[n % this.#capacity];
      if (numbered?.number === n) events.push(numbered);
    }
    return events;
  }
}
