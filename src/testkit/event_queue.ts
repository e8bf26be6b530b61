/** A binary heap of timed events: by virtual time, then by order of insertion. */

export class QueuedEvent<Owner> {
  /** Changed only while the event is outside the queue (held back for a suspended owner). */
  time: number;
  order: number;
  readonly owner: Owner | undefined;
  readonly kind: EventKind;
  /** Undefined once cancelled or run. */
  run: (() => void) | undefined;
  /** Asked when the event is due, before anything about its owner is: false means that the network swallowed it. */
  admit: (() => boolean) | undefined;

  constructor(time: number, order: number, owner: Owner | undefined, kind: EventKind, run: () => void) {
    this.time = time;
    this.order = order;
    this.owner = owner;
    this.kind = kind;
    this.run = run;
    this.admit = undefined;
  }
}

/** `io` is what a socket would deliver; `world` belongs to no process. */
export type EventKind = 'timer' | 'turn' | 'io' | 'world';

export class EventQueue<Owner> {
  #heap: QueuedEvent<Owner>[] = [];

  get size(): number {
    return this.#heap.length;
  }

  peek(): QueuedEvent<Owner> | undefined {
    return this.#heap[0];
  }

  push(event: QueuedEvent<Owner>): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above] as QueuedEvent<Owner>;
      if (!before(event, parent)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = event;
  }

  pop(): QueuedEvent<Owner> | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    const size = heap.length;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && before(heap[right] as QueuedEvent<Owner>, heap[child] as QueuedEvent<Owner>)) child = right;
      const candidate = heap[child] as QueuedEvent<Owner>;
      if (!before(candidate, last)) break;
      heap[index] = candidate;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function before<Owner>(a: QueuedEvent<Owner>, b: QueuedEvent<Owner>): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order);
}
