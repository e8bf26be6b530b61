/** Messages of one sender that are not settled, by number: those sent, by sequence number, and the line of those that wait. */
import type { ActorRef } from '../actor/ref.ts';

export type Sender = ActorRef<any> | undefined;

/** A ring indexed by sequence number: `base` is the lowest unsettled one, `next` the one after the last. */
export class InFlight {
  base = 1;
  next = 1;
  /** Unsettled ones; those settled out of order above `base` are not among them. */
  unsettled = 0;
  /** Of the unsettled ones together. */
  bytes = 0;
  #messages: unknown[] = [];
  #senders: Sender[] = [];
  #sizes: number[] = [];
  #settled: boolean[] = [];
  #mask = -1;

  get span(): number {
    return this.next - this.base;
  }

  /** Numbers that it has memory for. */
  get capacity(): number {
    return this.#mask + 1;
  }

  /** Appends under the sequence number `next`. */
  push(message: unknown, sender: Sender, size: number): void {
    if (this.span === this.capacity) this.#grow();
    const at = this.next & this.#mask;
    this.#messages[at] = message;
    this.#senders[at] = sender;
    this.#sizes[at] = size;
    this.#settled[at] = false;
    this.bytes += size;
    this.next += 1;
    this.unsettled += 1;
  }

  isSettled(seq: number): boolean {
    return seq < this.base || this.#settled[seq & this.#mask] === true;
  }

  message(seq: number): unknown {
    return this.#messages[seq & this.#mask];
  }

  sender(seq: number): Sender {
    return this.#senders[seq & this.#mask];
  }

  size(seq: number): number {
    return this.#sizes[seq & this.#mask]!;
  }

  /** Lets go of one message; false when it was settled before. */
  settle(seq: number): boolean {
    if (seq < this.base || seq >= this.next) return false;
    const at = seq & this.#mask;
    if (this.#settled[at]) return false;
    this.#settled[at] = true;
    this.#messages[at] = undefined;
    this.#senders[at] = undefined;
    this.unsettled -= 1;
    this.bytes -= this.#sizes[at]!;
    while (this.base < this.next && this.#settled[this.base & this.#mask]) this.base += 1;
    return true;
  }

  #grow(): void {
    const capacity = Math.max(16, this.capacity * 2);
    const messages = new Array<unknown>(capacity);
    const senders = new Array<Sender>(capacity);
    const sizes = new Array<number>(capacity);
    const settled = new Array<boolean>(capacity);
    for (let seq = this.base; seq < this.next; seq += 1) {
      messages[seq & (capacity - 1)] = this.#messages[seq & this.#mask];
      senders[seq & (capacity - 1)] = this.#senders[seq & this.#mask];
      sizes[seq & (capacity - 1)] = this.#sizes[seq & this.#mask]!;
      settled[seq & (capacity - 1)] = this.#settled[seq & this.#mask]!;
    }
    this.#messages = messages;
    this.#senders = senders;
    this.#sizes = sizes;
    this.#settled = settled;
    this.#mask = capacity - 1;
  }
}
