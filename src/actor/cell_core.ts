/** The part of an actor's runtime that handles messages: mailbox, gate, handler, stash. */
import { limits } from '../limits.ts';
import type { Actor } from './actor.ts';
import { nothingSeldom, Seldom } from './cell_seldom.ts';
import type { DeadLetterReason } from './dead_letters.ts';
import { firstQuota, type Runnable } from './dispatcher.ts';
import { Inbox, noInbox } from './inbox.ts';
import { errorFields } from './logger.ts';
import { Mailbox, MailShare, SelfMessage } from './mailbox.ts';
import type { ReceiveTimeout } from './receive_timeout.ts';
import { type ActorRef, running } from './ref.ts';
import type { CellOptions, DeliveryReceipt } from './spawn_options.ts';
import type { ActorSystem } from './system.ts';
import { Terminated } from './watch.ts';

export type Behavior = (message: any) => void | Promise<void>;

/** Where an actor is in its life. User messages are handled in `running` only; the order of the numbers matters. */
export const phases = {
  created: 0,
  starting: 1,
  running: 2,
  /** Failed, and supervision has not been carried out yet. */
  suspended: 3,
  restarting: 4,
  stopping: 5,
  terminated: 6,
} as const;

/** Bits of what is to be done before the next user message. */
export const signal = { start: 1, stop: 2, restart: 4, childFailed: 8, childrenGone: 16, again: 32 } as const;

type Sender = ActorRef<any> | undefined;

export abstract class CellCore implements Runnable {
  readonly system: ActorSystem;
  readonly options: CellOptions;
  scheduled = false;
  quota = firstQuota;
  phase: number = phases.created;
  /** A handler or hook has returned a promise that has not settled. */
  busy = false;
  /** True once this actor may not act any more; undefined while that cannot be. */
  fence: (() => boolean) | undefined;
  protected signals = 0;
  protected actor: Actor<any> | undefined = undefined;
  behavior: Behavior | undefined = undefined;
  /** Its own while it has something to handle. */
  protected inbox = noInbox;
  protected seldom: Readonly<Seldom> = nothingSeldom;

  constructor(system: ActorSystem, options: CellOptions) {
    this.system = system;
    this.options = options;
    const { fenced } = options;
    this.fence = fenced === undefined ? undefined : () => this.seldom.killed || fenced();
  }

  abstract readonly path: string;
  /** Does one step of what `signals` ask for. */
  protected abstract handleSignals(): void;
  protected abstract failed(error: unknown, message: unknown): void;

  /** Messages that wait, stashed ones not counted. */
  get queued(): number {
    return this.inbox.length;
  }

  /** Who sent the message in hand. */
  get sender(): Sender {
    return this.inbox.heldSender;
  }

  /** To change something in it. */
  protected get own(): Seldom {
    if (this.seldom === nothingSeldom) this.seldom = new Seldom();
    return this.seldom;
  }

  enqueue(message: unknown, sender: Sender, receipt: unknown): void {
    if (this.phase >= phases.stopping) {
      return this.undeliverable(message, sender, receipt, this.phase === phases.stopping ? 'stopped' : 'terminated');
    }
    if (this.inbox.length >= this.inbox.roomy && !this.admit(message, sender, receipt)) return;
    this.openInbox().push(message, sender, receipt);
    if (!this.scheduled && !this.busy) this.system.dispatcher.schedule(this);
  }

  /** From this actor's own runtime: never refused for lack of room. */
  enqueueMark(message: unknown, mark: SelfMessage): void {
    if (this.phase >= phases.stopping) return;
    this.openInbox().push(message, undefined, mark);
    this.wake();
  }

  run(quota: number): boolean {
    for (let left = quota; left > 0 && !this.busy; left -= 1) {
      if (this.signals !== 0) this.handleSignals();
      else if (this.phase !== phases.running) return false;
      else if (this.inbox.length === 0) return this.rest();
      else if (this.options.gate !== undefined && !this.gateIsOpen()) return false;
      else this.handleNext();
    }
    if (this.busy) return false;
    if (this.signals !== 0) return true;
    return this.phase === phases.running && (this.inbox.length > 0 || this.rest());
  }

  /** Runs the cell if there may be something to do. */
  protected wake(): void {
    if (!this.scheduled && !this.busy) this.system.dispatcher.schedule(this);
  }

  private openInbox(): Inbox {
    if (this.inbox !== noInbox) return this.inbox;
    this.inbox = Inbox.open(this, Math.min(this.options.mailbox?.capacity ?? Infinity, limits.mailboxWarning));
    return this.inbox;
  }

  /** Nothing is left to handle. */
  private rest(): false {
    if (this.inbox !== noInbox && Inbox.close(this.inbox)) this.inbox = noInbox;
    return false;
  }

  private handleNext(): void {
    const { inbox } = this;
    inbox.take();
    if (this.seldom.mailboxWarned && inbox.length <= inbox.roomy >> 1) this.own.mailboxWarned = false;
    const receipt = inbox.heldReceipt;
    if (receipt !== undefined && receipt instanceof SelfMessage && !receipt.live()) return inbox.letGo();
    const { fence } = this;
    if (fence !== undefined) {
      running.fence = fence;
      running.path = this.path;
    }
    let result: unknown;
    try {
      result = this.invoke(inbox);
    } catch (error) {
      running.fence = undefined;
      return this.finish(error, true);
    }
    running.fence = undefined;
    if (result === undefined || !isThenable(result)) this.finish(undefined, false);
    else this.suspend(result);
  }

  private invoke({ heldMessage: message, heldReceipt }: Inbox): unknown {
    const { actor } = this;
    if (actor === undefined) return undefined;
    if (heldReceipt !== undefined && message instanceof Terminated && heldReceipt instanceof SelfMessage) {
      return actor.onTerminated(message);
    }
    return this.behavior === undefined ? actor.onReceive(message) : this.behavior.call(actor, message);
  }

  /** Waits for an async handler. One that was killed does not come back. */
  private suspend(result: PromiseLike<unknown>): void {
    if (this.phase === phases.terminated) {
      Promise.resolve(result).then(undefined, () => {});
      return;
    }
    this.busy = true;
    this.inbox.await(result);
  }

  resume(error: unknown, failed: boolean): void {
    if (this.phase === phases.terminated) return;
    this.busy = false;
    this.finish(error, failed);
    if (this.signals !== 0 || this.inbox.length > 0) this.wake();
    else if (!this.scheduled) this.rest();
  }

  private finish(error: unknown, failed: boolean): void {
    if (this.phase === phases.terminated) return;
    const { inbox } = this;
    const { idle } = this.seldom;
    const { heldMessage, heldReceipt, stashed } = inbox;
    inbox.letGo();
    const mark = heldReceipt instanceof SelfMessage ? heldReceipt : undefined;
    if (heldReceipt !== mark && !stashed) {
      if (heldReceipt instanceof MailShare) heldReceipt.release();
      else this.callHook('settled', () => this.options.hooks?.settled?.(heldReceipt, failed));
    }
    if (idle !== undefined && mark !== idle) idle.touch();
    if (mark !== undefined) mark.handled();
    if (failed) this.failed(error, heldMessage);
  }

  private gateIsOpen(): boolean {
    const { gate } = this.options;
    if (gate === undefined || gate.open()) return true;
    if (this.seldom.gateWait !== undefined) return false;
    let opened = false;
    const cancel = gate.onOpen(() => {
      if (opened) return;
      opened = true;
      this.stopGateWait();
      // In a turn of its own, since the gate may call back at once, from within the loop that asked it.
      this.system.environment.turns.schedule(() => this.wake());
    });
    if (opened) cancel();
    else this.own.gateWait = cancel;
    return false;
  }

  /** Makes room for a message or gives it up; true when it may be queued. */
  private admit(message: unknown, sender: Sender, receipt: unknown): boolean {
    const { length } = this.inbox;
    if (!this.seldom.mailboxWarned) {
      this.own.mailboxWarned = true;
      this.system.log.warn(`the mailbox of ${this.path} has ${length} messages`, { actor: this.path, length });
    }
    const capacity = this.options.mailbox?.capacity ?? Infinity;
    if (length < capacity) return true;
    const oldest = this.options.mailbox?.overflow === 'drop-oldest' &&
      this.inbox.dropOldest((...entry) => this.undeliverable(...entry, 'mailbox-overflow'));
    if (!oldest) this.undeliverable(message, sender, receipt, 'mailbox-overflow');
    return oldest;
  }

  /** Sets the message that is being handled aside. False when there is no room: it has become a dead letter. */
  stashCurrent(): boolean {
    const { inbox } = this;
    if (!this.canStash) return false;
    inbox.stashed = true;
    const { heldMessage, heldSender, heldReceipt } = inbox;
    // What came from the actor's own runtime comes back as an ordinary message.
    const receipt = heldReceipt instanceof SelfMessage ? undefined : heldReceipt;
    const stash = this.own.stashed ??= new Mailbox();
    if (stash.length < (this.options.stashCapacity ?? limits.stash)) {
      stash.push(heldMessage, heldSender, receipt);
      return true;
    }
    if (!this.seldom.stashWarned) {
      this.own.stashWarned = true;
      this.system.log.warn(`the stash of ${this.path} is full`, { actor: this.path, length: stash.length });
    }
    this.undeliverable(heldMessage, heldSender, receipt, 'stash-overflow');
    return false;
  }

  /** The message being handled may have been handled before. */
  get possibleRepeat(): boolean {
    return (this.inbox.heldReceipt as DeliveryReceipt | undefined)?.possibleRepeat === true;
  }

  /** A message is being handled, and it has not been stashed. */
  get canStash(): boolean {
    return this.inbox.handling && !this.inbox.stashed;
  }

  unstashAll(): void {
    const { stashed } = this.seldom;
    if (stashed === undefined || stashed.length === 0) return;
    this.own.stashWarned = false;
    this.openInbox().prepend(stashed);
    this.wake();
  }

  /** Gives up everything that waits, in order. */
  protected discardMail(): void {
    // Of a killed handler: what it has in its hands waits no more, and nobody knows what became of it.
    const { heldReceipt, stashed } = this.inbox;
    if (heldReceipt instanceof MailShare && !stashed) heldReceipt.release();
    this.unstashAll();
    const mailbox = this.inbox;
    while (mailbox.length > 0) {
      const message = mailbox.message();
      const sender = mailbox.sender();
      const receipt = mailbox.receipt();
      mailbox.drop();
      if (!(receipt instanceof SelfMessage)) this.undeliverable(message, sender, receipt, 'stopped');
    }
  }

  protected stopWaiting(): void {
    if (this.seldom.gateWait !== undefined) this.stopGateWait();
    this.setIdle(undefined);
  }

  private stopGateWait(): void {
    this.seldom.gateWait?.();
    this.own.gateWait = undefined;
  }

  setIdle(idle: ReceiveTimeout | undefined): void {
    if (this.seldom.idle === idle) return;
    this.seldom.idle?.cancel();
    this.own.idle = idle;
  }

  protected undeliverable(message: unknown, sender: Sender, receipt: unknown, reason: DeadLetterReason): void {
    const { hooks } = this.options;
    const share = receipt instanceof MailShare;
    if (share) receipt.release();
    if (receipt !== undefined && !share && hooks?.returned !== undefined) {
      this.callHook('returned', () => hooks.returned?.(message, sender, receipt));
    } else {
      this.system.deadLetters.publish({ message, sender, recipient: this.path, reason });
    }
  }

  protected callHook(name: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.system.log.error(`the '${name}' hook of ${this.path} threw`, { actor: this.path, ...errorFields(error) });
    }
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value !== null && (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function';
}
