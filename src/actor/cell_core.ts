/** The part of an actor's runtime that handles messages: mailbox, gate, handler, stash. */
import { limits } from '../limits.ts';
import type { Actor } from './actor.ts';
import type { DeadLetterReason } from './dead_letters.ts';
import { firstQuota, type Runnable } from './dispatcher.ts';
import type { Cancel } from './environment.ts';
import { errorFields } from './logger.ts';
import { Mailbox, SelfMessage } from './mailbox.ts';
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
  protected killed = false;
  protected signals = 0;
  protected actor: Actor<any> | undefined = undefined;
  behavior: Behavior | undefined = undefined;
  protected idle: ReceiveTimeout | undefined = undefined;
  /** What the handler that is running got. */
  protected message: unknown = undefined;
  sender: Sender = undefined;
  private receipt: unknown = undefined;
  private mark: SelfMessage | undefined = undefined;
  private handling = false;
  private stashedCurrent = false;
  private readonly mailbox = new Mailbox();
  private stashed: Mailbox | undefined = undefined;
  /** The length from which `push` is not all there is to do: a bound, or the warning. */
  private roomy: number;
  private warned = false;
  private stashWarned = false;
  private gateWait: Cancel | undefined = undefined;
  private resolved: (() => void) | undefined = undefined;
  private rejected: ((error: unknown) => void) | undefined = undefined;

  constructor(system: ActorSystem, options: CellOptions) {
    this.system = system;
    this.options = options;
    const { fenced } = options;
    this.fence = fenced === undefined ? undefined : () => this.killed || fenced();
    this.roomy = Math.min(options.mailbox?.capacity ?? Infinity, limits.mailboxWarning);
  }

  abstract readonly path: string;
  /** Does one step of what `signals` ask for. */
  protected abstract handleSignals(): void;
  protected abstract failed(error: unknown, message: unknown): void;

  /** Messages that wait, stashed ones not counted. */
  get queued(): number {
    return this.mailbox.length;
  }

  enqueue(message: unknown, sender: Sender, receipt: unknown): void {
    if (this.phase >= phases.stopping) {
      return this.undeliverable(message, sender, receipt, this.phase === phases.stopping ? 'stopped' : 'terminated');
    }
    if (this.mailbox.length >= this.roomy && !this.admit(message, sender, receipt)) return;
    this.mailbox.push(message, sender, receipt);
    if (!this.scheduled && !this.busy) this.system.dispatcher.schedule(this);
  }

  /** From this actor's own runtime: never refused for lack of room. */
  enqueueMark(message: unknown, mark: SelfMessage): void {
    if (this.phase >= phases.stopping) return;
    this.mailbox.push(message, undefined, mark);
    this.wake();
  }

  run(quota: number): boolean {
    for (let left = quota; left > 0 && !this.busy; left -= 1) {
      if (this.signals !== 0) this.handleSignals();
      else if (this.phase !== phases.running || this.mailbox.length === 0) return false;
      else if (this.options.gate !== undefined && !this.gateIsOpen()) return false;
      else this.handleNext();
    }
    return !this.busy && (this.signals !== 0 || (this.phase === phases.running && this.mailbox.length > 0));
  }

  /** Runs the cell if there may be something to do. */
  protected wake(): void {
    if (!this.scheduled && !this.busy) this.system.dispatcher.schedule(this);
  }

  private handleNext(): void {
    const { mailbox } = this;
    const receipt = mailbox.receipt();
    this.message = mailbox.message();
    this.sender = mailbox.sender();
    mailbox.drop();
    if (mailbox.length <= this.roomy >> 1) this.warned = false;
    if (receipt instanceof SelfMessage) {
      if (!receipt.live()) return;
      this.mark = receipt;
    } else {
      this.receipt = receipt;
    }
    this.handling = true;
    const { fence } = this;
    if (fence !== undefined) {
      running.fence = fence;
      running.path = this.path;
    }
    let result: unknown;
    try {
      result = this.invoke();
    } catch (error) {
      running.fence = undefined;
      return this.finish(error, true);
    }
    running.fence = undefined;
    if (result === undefined || !isThenable(result)) this.finish(undefined, false);
    else this.suspend(result);
  }

  private invoke(): unknown {
    const { message, actor } = this;
    if (actor === undefined) return undefined;
    if (this.mark !== undefined && message instanceof Terminated) return actor.onTerminated(message);
    return this.behavior === undefined ? actor.onReceive(message) : this.behavior.call(actor, message);
  }

  /** Waits for an async handler. The callbacks are made once per actor; a killed one never comes back to them. */
  private suspend(result: PromiseLike<unknown>): void {
    if (this.phase === phases.terminated) {
      Promise.resolve(result).then(undefined, () => {});
      return;
    }
    this.busy = true;
    this.resolved ??= () => this.resume(undefined, false);
    this.rejected ??= (error: unknown) => this.resume(error, true);
    const promise = result instanceof Promise ? result : Promise.resolve(result);
    promise.then(this.resolved, this.rejected);
  }

  private resume(error: unknown, failed: boolean): void {
    if (this.phase === phases.terminated) return;
    this.busy = false;
    this.finish(error, failed);
    if (this.signals !== 0 || this.mailbox.length > 0) this.wake();
  }

  private finish(error: unknown, failed: boolean): void {
    if (this.phase === phases.terminated) return;
    const { message, receipt, mark, stashedCurrent } = this;
    this.handling = false;
    this.message = undefined;
    this.sender = undefined;
    this.receipt = undefined;
    this.mark = undefined;
    this.stashedCurrent = false;
    if (receipt !== undefined && !stashedCurrent) {
      this.callHook('settled', () => this.options.hooks?.settled?.(receipt, failed));
    }
    if (this.idle !== undefined && mark !== this.idle) this.idle.touch();
    if (mark !== undefined) mark.handled();
    if (failed) this.failed(error, message);
  }

  private gateIsOpen(): boolean {
    const { gate } = this.options;
    if (gate === undefined || gate.open()) return true;
    if (this.gateWait !== undefined) return false;
    let opened = false;
    const cancel = gate.onOpen(() => {
      if (opened) return;
      opened = true;
      this.gateWait?.();
      this.gateWait = undefined;
      // In a turn of its own, since the gate may call back at once, from within the loop that asked it.
      this.system.environment.turns.schedule(() => this.wake());
    });
    if (opened) cancel();
    else this.gateWait = cancel;
    return false;
  }

  /** Makes room for a message or gives it up; true when it may be queued. */
  private admit(message: unknown, sender: Sender, receipt: unknown): boolean {
    const { length } = this.mailbox;
    if (!this.warned) {
      this.warned = true;
      this.system.log.warn(`the mailbox of ${this.path} has ${length} messages`, { actor: this.path, length });
    }
    const capacity = this.options.mailbox?.capacity ?? Infinity;
    if (length < capacity) return true;
    const oldest = this.options.mailbox?.overflow === 'drop-oldest' && this.dropOldest();
    if (!oldest) this.undeliverable(message, sender, receipt, 'mailbox-overflow');
    return oldest;
  }

  /** Gives up the oldest message that came from outside; what is the actor's own goes to the end of the queue. */
  private dropOldest(): boolean {
    const { mailbox } = this;
    for (let left = mailbox.length; left > 0; left -= 1) {
      const message = mailbox.message();
      const sender = mailbox.sender();
      const receipt = mailbox.receipt();
      mailbox.drop();
      if (!(receipt instanceof SelfMessage)) {
        this.undeliverable(message, sender, receipt, 'mailbox-overflow');
        return true;
      }
      mailbox.push(message, sender, receipt);
    }
    return false;
  }

  /** Sets the message that is being handled aside. False when there is no room: it has become a dead letter. */
  stashCurrent(): boolean {
    if (!this.handling || this.stashedCurrent) return false;
    this.stashed ??= new Mailbox();
    this.stashedCurrent = true;
    if (this.stashed.length < (this.options.stashCapacity ?? limits.stash)) {
      this.stashed.push(this.message, this.sender, this.receipt);
      return true;
    }
    if (!this.stashWarned) {
      this.stashWarned = true;
      this.system.log.warn(`the stash of ${this.path} is full`, { actor: this.path, length: this.stashed.length });
    }
    this.undeliverable(this.message, this.sender, this.receipt, 'stash-overflow');
    return false;
  }

  /** The message being handled may have been handled before. */
  get possibleRepeat(): boolean {
    return (this.receipt as DeliveryReceipt | undefined)?.possibleRepeat === true;
  }

  /** A message is being handled, and it has not been stashed. */
  get canStash(): boolean {
    return this.handling && !this.stashedCurrent;
  }

  unstashAll(): void {
    if (this.stashed === undefined || this.stashed.length === 0) return;
    this.stashWarned = false;
    this.mailbox.prepend(this.stashed);
    this.wake();
  }

  /** Gives up everything that waits, in order. */
  protected discardMail(): void {
    this.unstashAll();
    const { mailbox } = this;
    while (mailbox.length > 0) {
      const message = mailbox.message();
      const sender = mailbox.sender();
      const receipt = mailbox.receipt();
      mailbox.drop();
      if (!(receipt instanceof SelfMessage)) this.undeliverable(message, sender, receipt, 'stopped');
    }
  }

  protected stopWaiting(): void {
    this.gateWait?.();
    this.gateWait = undefined;
    this.idle?.cancel();
    this.idle = undefined;
  }

  protected undeliverable(message: unknown, sender: Sender, receipt: unknown, reason: DeadLetterReason): void {
    const { hooks } = this.options;
    if (receipt !== undefined && hooks?.returned !== undefined) {
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
