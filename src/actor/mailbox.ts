/** The queue of one actor, and what its own runtime puts there. */
import type { ActorRef } from './ref.ts';

type Sender = ActorRef<any> | undefined;

const stride = 3;
const firstCapacity = 2;
/** A block that is this full is followed by another one instead of being copied into a larger. */
const blockCapacity = 1_024;

/**
 * A ring of (message, sender, receipt) triples, side by side in one array that is reused, so that neither sending nor
 * taking a message allocates anything.
 */
class Block {
  readonly slots: unknown[];
  mask: number;
  head = 0;
  length = 0;
  next: Block | undefined = undefined;

  constructor(capacity: number) {
    this.mask = capacity - 1;
    // Of exactly this size: an array that grows by itself keeps room for sixteen more.
    this.slots = new Array<unknown>(capacity * stride).fill(undefined);
  }

  /** A block of twice the size with the same entries. */
  grown(): Block {
    const larger = new Block((this.mask + 1) * 2);
    for (let i = 0; i < this.length; i += 1) {
      const from = ((this.head + i) & this.mask) * stride;
      larger.slots[i * stride] = this.slots[from];
      larger.slots[i * stride + 1] = this.slots[from + 1];
      larger.slots[i * stride + 2] = this.slots[from + 2];
    }
    larger.length = this.length;
    return larger;
  }
}

/** Stands for "no block yet": always full, never written. */
const none = new Block(0);

/**
 * A queue of (message, sender, receipt): one small ring that doubles, and beyond `blockCapacity` a chain of blocks, since
 * copying a long queue into ever larger arrays costs more than handling it. A drained chain keeps one block. Bounds are
 * the owner's business.
 */
export class Mailbox {
  length = 0;
  protected first: Block = none;
  private last: Block = none;
  protected spare: Block | undefined = undefined;

  push(message: unknown, sender: Sender, receipt: unknown): void {
    let block = this.last;
    if (block.length > block.mask) block = this.#append();
    const at = ((block.head + block.length) & block.mask) * stride;
    block.length += 1;
    this.length += 1;
    const { slots } = block;
    slots[at] = message;
    slots[at + 1] = sender;
    slots[at + 2] = receipt;
  }

  /** Puts an entry in front of all others. */
  unshift(message: unknown, sender: Sender, receipt: unknown): void {
    let block = this.first;
    if (block.length > block.mask) block = this.#insert();
    block.head = (block.head - 1) & block.mask;
    block.length += 1;
    this.length += 1;
    const at = block.head * stride;
    block.slots[at] = message;
    block.slots[at + 1] = sender;
    block.slots[at + 2] = receipt;
  }

  /** The oldest message; undefined when empty. */
  message(): unknown {
    return this.first.slots[this.first.head * stride];
  }

  sender(): Sender {
    return this.first.slots[this.first.head * stride + 1] as Sender;
  }

  receipt(): unknown {
    return this.first.slots[this.first.head * stride + 2];
  }

  /** Removes the oldest entry; must not be called when empty. */
  drop(): void {
    const block = this.first;
    const at = block.head * stride;
    const { slots } = block;
    slots[at] = undefined;
    slots[at + 1] = undefined;
    slots[at + 2] = undefined;
    block.head = (block.head + 1) & block.mask;
    block.length -= 1;
    this.length -= 1;
    if (block.length === 0 && block.next !== undefined) this.#dropBlock(block, block.next);
  }

  /** Moves everything in `other` in front of what is here, in the order it has there. */
  prepend(other: Mailbox): void {
    const entries: [unknown, Sender, unknown][] = [];
    while (other.length > 0) {
      entries.push([other.message(), other.sender(), other.receipt()]);
      other.drop();
    }
    for (const [message, sender, receipt] of entries.reverse()) this.unshift(message, sender, receipt);
    other.first = other.last = none;
    other.spare = undefined;
  }

  #dropBlock(block: Block, next: Block): void {
    this.first = next;
    block.next = undefined;
    block.head = 0;
    // The chain has come to its end: what is left fits one block.
    this.spare = next.next === undefined ? undefined : block;
  }

  /** Room at the end. */
  #append(): Block {
    const { last } = this;
    if (last.mask + 1 < blockCapacity) return this.first = this.last = this.#roomier(last);
    const block = this.#takeSpare();
    last.next = block;
    return this.last = block;
  }

  /** Room at the front. */
  #insert(): Block {
    const { first } = this;
    if (first.mask + 1 < blockCapacity) return this.first = this.last = this.#roomier(first);
    const block = this.#takeSpare();
    block.next = first;
    return this.first = block;
  }

  #roomier(block: Block): Block {
    return block === none ? new Block(firstCapacity) : block.grown();
  }

  #takeSpare(): Block {
    const block = this.spare ?? new Block(blockCapacity);
    this.spare = undefined;
    return block;
  }
}

/**
 * What an actor's own runtime puts into its mailbox: timer ticks, notices of termination, receive timeouts. Rides in the
 * receipt slot of an envelope, so that ordinary messages pay one comparison for it. It is asked whether it still
 * counts at the moment it would be handled; one that was cancelled meanwhile is skipped without a trace.
 */
export abstract class SelfMessage {
  abstract live(): boolean;
  /** After the handler has settled, also when it failed. */
  abstract handled(): void;
}

/** An account of room: rides in the receipt slot of a message, and is settled once, when the message waits no more. */
export abstract class MailShare {
  abstract release(): void;
}
