/** What an actor needs only while it has something to handle: a mailbox, and the message in hand. */
import { fastPaths } from '../fast_paths.ts';
import { Mailbox, SelfMessage } from './mailbox.ts';
import type { ActorRef } from './ref.ts';

type Sender = ActorRef<any> | undefined;

/** Whose message is in hand. */
export interface InboxOwner {
  /** Its async handler has settled. */
  resume(error: unknown, failed: boolean): void;
}

export class Inbox extends Mailbox {
  /** The length from which `push` is not all there is to do: a bound, or the warning. */
  roomy = 1;
  /** A handler is running or has not settled; it got the three that follow. */
  handling = false;
  heldMessage: unknown = undefined;
  heldSender: Sender = undefined;
  /** What rides with it: of the layer that owns the actor, or a `SelfMessage`. */
  heldReceipt: unknown = undefined;
  /** The message in hand has been stashed. */
  stashed = false;
  private owner: InboxOwner | undefined = undefined;
  private resolved: (() => void) | undefined = undefined;
  private rejected: ((error: unknown) => void) | undefined = undefined;

  /** Messages that it has memory for. */
  get room(): number {
    return this.first.mask + 1 + (this.spare === undefined ? 0 : this.spare.mask + 1);
  }

  /** Takes the oldest message in hand; must not be called when empty. */
  take(): void {
    this.heldMessage = this.message();
    this.heldSender = this.sender();
    this.heldReceipt = this.receipt();
    this.handling = true;
    this.drop();
  }

  /** Nothing is in hand any more. */
  letGo(): void {
    this.handling = false;
    this.heldMessage = undefined;
    this.heldSender = undefined;
    this.heldReceipt = undefined;
    this.stashed = false;
  }

  /** Gives up the oldest message that came from outside; what is the actor's own goes to the end of the queue. */
  dropOldest(giveUp: (message: unknown, sender: Sender, receipt: unknown) => void): boolean {
    for (let left = this.length; left > 0; left -= 1) {
      const message = this.message();
      const sender = this.sender();
      const receipt = this.receipt();
      this.drop();
      if (!(receipt instanceof SelfMessage)) {
        giveUp(message, sender, receipt);
        return true;
      }
      this.push(message, sender, receipt);
    }
    return false;
  }

  /** Resumes the owner when the handler has settled. The callbacks are made once and used again. */
  await(result: PromiseLike<unknown>): void {
    this.resolved ??= () => this.owner?.resume(undefined, false);
    this.rejected ??= (error: unknown) => this.owner?.resume(error, true);
    const promise = result instanceof Promise ? result : Promise.resolve(result);
    promise.then(this.resolved, this.rejected);
  }

  /** An empty one, for `owner`, who gives it back when it has handled everything. */
  static open(owner: InboxOwner, roomy: number): Inbox {
    const inbox = pool.pop() ?? new Inbox();
    pooledRoom -= inbox.room;
    inbox.owner = owner;
    inbox.roomy = roomy;
    return inbox;
  }

  /** Gives `inbox` up, which is empty and has nothing in hand. False when its owner is to keep it. */
  static close(inbox: Inbox): boolean {
    if (!fastPaths.sharedInboxes) return false;
    inbox.owner = undefined;
    if (pool.length < maxPooled && pooledRoom + inbox.room <= maxPooledRoom) {
      pool.push(inbox);
      pooledRoom += inbox.room;
    }
    return true;
  }
}

/** The inbox of all that have nothing to handle: always empty. */
export const noInbox = new Inbox();

/** Inboxes that nobody needs at present; bounded in number, and in the messages that they have room for. */
const pool: Inbox[] = [];
const maxPooled = 2_048;
const maxPooledRoom = 65_536;
let pooledRoom = 0;
