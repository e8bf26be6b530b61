/** The queue of one actor, and what its own runtime puts there. */
import type { ActorRef } from './ref.ts';

type Sender = ActorRef<any> | undefined;

const stride = 3;
const firstCapacity = 8;
/** Above this many entries an emptied queue gives its memory back. */
const keptCapacity = 4_096;

/**
 * A growing ring of (message, sender, receipt) triples. The three are kept side by side in one array that is reused, so
 * that neither sending nor taking a message allocates anything. Bounds are the owner's business.
 */
export class Mailbox {
  length = 0;
  private slots: unknown[] = [];
  private mask = -1;
  private head = 0;

  push(message: unknown, sender: Sender, receipt: unknown): void {
    if (this.length > this.mask) this.grow();
    const at = ((this.head + this.length) & this.mask) * stride;
    this.length += 1;
    this.slots[at] = message;
    this.slots[at + 1] = sender;
    this.slots[at + 2] = receipt;
  }

  /** Puts an entry in front of all others. */
  unshift(message: unknown, sender: Sender, receipt: unknown): void {
    if (this.length > this.mask) this.grow();
    this.head = (this.head - 1) & this.mask;
    this.length += 1;
    const at = this.head * stride;
    this.slots[at] = message;
    this.slots[at + 1] = sender;
    this.slots[at + 2] = receipt;
  }

  /** The oldest message; undefined when empty. */
  message(): unknown {
    return this.slots[this.head * stride];
  }

  sender(): Sender {
    return this.slots[this.head * stride + 1] as Sender;
  }

  receipt(): unknown {
    return this.slots[this.head * stride + 2];
  }

  /** Removes the oldest entry; must not be called when empty. */
  drop(): void {
    const at = this.head * stride;
    this.slots[at] = undefined;
    this.slots[at + 1] = undefined;
    this.slots[at + 2] = undefined;
    this.head = (this.head + 1) & this.mask;
    this.length -= 1;
    if (this.length === 0 && this.mask >= keptCapacity) this.release();
  }

  /** Moves everything in `other` in front of what is here, in the order it has there. */
  prepend(other: Mailbox): void {
    for (let left = other.length; left > 0; left -= 1) {
      const at = ((other.head + left - 1) & other.mask) * stride;
      this.unshift(other.slots[at], other.slots[at + 1] as Sender, other.slots[at + 2]);
    }
    other.release();
  }

  private release(): void {
    this.slots = [];
    this.mask = -1;
    this.head = 0;
    this.length = 0;
  }

  private grow(): void {
    const capacity = this.mask + 1;
    const next: unknown[] = [];
    for (let i = 0; i < this.length; i += 1) {
      const at = ((this.head + i) & this.mask) * stride;
      next.push(this.slots[at], this.slots[at + 1], this.slots[at + 2]);
    }
    const wanted = capacity === 0 ? firstCapacity : capacity * 2;
    while (next.length < wanted * stride) next.push(undefined);
    this.slots = next;
    this.mask = wanted - 1;
    this.head = 0;
  }
}

/**
 * What an actor's own runtime puts into its mailbox: timer ticks, notices of termination, receive timeouts. Rides in the receipt slot of an envelope, so that ordinary messages pay one comparison for it. It is asked whether it
 * still counts at the moment it would be handled; one that was cancelled meanwhile is skipped without a trace.
 */
export abstract class SelfMessage {
  abstract live(): boolean;
  /** After the handler has settled, also when it failed. */
  abstract handled(): void;
}
