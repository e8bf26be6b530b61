/** A first-in-first-out queue in a growing ring that is reused. */
export class RingQueue<T> {
  length = 0;
  private slots: (T | undefined)[] = [];
  private mask = -1;
  private head = 0;

  push(item: T): void {
    if (this.length > this.mask) this.grow();
    this.slots[(this.head + this.length) & this.mask] = item;
    this.length += 1;
  }

  /** Undefined when empty. */
  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.slots[this.head];
    this.slots[this.head] = undefined;
    this.head = (this.head + 1) & this.mask;
    this.length -= 1;
    return item;
  }

  private grow(): void {
    const next: (T | undefined)[] = [];
    for (let i = 0; i < this.length; i += 1) next.push(this.slots[(this.head + i) & this.mask]);
    const wanted = Math.max(16, next.length * 2);
    while (next.length < wanted) next.push(undefined);
    this.slots = next;
    this.mask = wanted - 1;
    this.head = 0;
  }
}
