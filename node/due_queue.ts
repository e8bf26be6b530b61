/** A binary heap of due times, older schedules first among equal ones. Entries are never searched for: one that is no longer true is skipped when it surfaces. */

export interface Due {
  readonly at: number;
  readonly id: string;
  /** Which life of the job this belongs to. */
  readonly incarnation: number;
}

export class DueQueue {
  readonly #heap: Due[] = [];

  get size(): number {
    return this.#heap.length;
  }

  peek(): Due | undefined {
    return this.#heap[0];
  }

  push(due: Due): void {
    const heap = this.#heap;
    heap.push(due);
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (before(heap[parent]!, due)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = due;
  }

  pop(): Due | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) this.#sink(last);
    return first;
  }

  clear(): void {
    this.#heap.length = 0;
  }

  #sink(due: Due): void {
    const heap = this.#heap;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (before(due, heap[child]!)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = due;
  }
}

function before(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.incarnation < b.incarnation);
}
