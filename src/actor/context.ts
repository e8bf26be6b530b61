/** What an actor can do, given to it as `this.context`. */
import type { ActorOrFactory } from './actor.ts';
import type { Cell } from './cell.ts';
import type { Behavior } from './cell_core.ts';
import type { Logger } from './environment.ts';
import { ActorStoppedError, ActorUsageError } from './errors.ts';
import { LocalActorRef } from './local_ref.ts';
import { prefixLogger } from './logger.ts';
import { checkOption, rules } from './options.ts';
import { ReceiveTimeout } from './receive_timeout.ts';
import { type ActorRef, fencedError, FencedRef } from './ref.ts';
import type { SpawnOptions } from './spawn_options.ts';
import type { ActorSystem } from './system.ts';
import { type ActorTimers, TimerTable } from './timers.ts';
import { Watches } from './watch.ts';

/** Behaviours that `become` may put on top of each other. */
const maxBehaviors = 100;

/** What an instance has acquired. */
class Belongings<T> {
  timers: TimerTable<T> | undefined = undefined;
  watches: Watches | undefined = undefined;
  log: Logger | undefined = undefined;
  fencedSender: FencedRef | undefined = undefined;
  behaviors: Behavior[] = [];
}

/**
 * One per instance: a restart gives the new instance a new one, and the old one refuses to act. Everything here that
 * changes something throws `ActorStoppedError` when its instance is no longer the actor's, and `FencedError` when the
 * actor was killed or fenced.
 */
export class ActorContext<T> {
  private readonly cell: Cell;
  /** Made when something of it is needed. */
  private own: Belongings<T> | undefined = undefined;
  private revoked = false;

  constructor(cell: Cell) {
    this.cell = cell;
  }

  get self(): ActorRef<T> {
    return this.cell.ref;
  }

  /**
   * Who sent the message being handled; stays right across `await`, since one message is handled at a time. Without a
   * sender it is `system.noSender`, and what that is told becomes a dead letter.
   */
  get sender(): ActorRef<unknown> {
    const { sender, fence } = this.cell;
    const shown: ActorRef<unknown> = sender ?? this.system.noSender;
    if (fence === undefined) return shown;
    const { has } = this;
    if (has.fencedSender?.underlying() !== shown) has.fencedSender = new FencedRef(shown, this.cell.path, fence);
    return has.fencedSender;
  }

  get hasSender(): boolean {
    return this.cell.sender !== undefined && this.cell.sender !== this.system.noSender;
  }

  /**
   * True while a message is handled that may have been handled before: a singleton with `delivery: 'at-least-once'` gets
   * again what its last instance had not acknowledged when it crashed. False for every other message.
   */
  get possibleRepeat(): boolean {
    return this.cell.possibleRepeat;
  }

  get parent(): ActorRef<unknown> {
    return this.cell.parent?.ref ?? this.system.noSender;
  }

  /** Those that are stopping are still among them. */
  get children(): readonly ActorRef<any>[] {
    return this.cell.childCells().map((child) => child.ref);
  }

  child(name: string): ActorRef<any> | undefined {
    return this.cell.childCell(name)?.ref;
  }

  get system(): ActorSystem {
    return this.cell.system;
  }

  get log(): Logger {
    return this.has.log ??= prefixLogger(this.system.log, this.cell.path);
  }

  /** The fencing token of this instance, which only grows from instance to instance; 0 for an ordinary actor. */
  get epoch(): number {
    return this.cell.options.epoch ?? 0;
  }

  /** The epoch, to be given to a store together with a write. Throws `FencedError` when this actor may not act any more. */
  fence(): number {
    this.check('act');
    return this.epoch;
  }

  /**
   * Starts a child. The name is free again when an earlier child of that name has terminated. Messages told at once wait
   * until the child has started; if it cannot start, supervision decides.
   * @throws ActorNameError, ActorAlreadyExistsError, OptionsError
   */
  spawn<M>(source: ActorOrFactory<M>, name: string, options?: SpawnOptions): ActorRef<M> {
    this.check('spawn');
    return this.cell.spawn(source, name, options).ref;
  }

  /** Starts a child with a generated name. */
  spawnAnonymous<M>(source: ActorOrFactory<M>, options?: SpawnOptions): ActorRef<M> {
    this.check('spawn');
    return this.cell.spawnAnonymous(source, options).ref;
  }

  /**
   * Asks for one notice when `ref` has ended, at once if it has already: `message` if one is given, else a call of
   * `onTerminated`. Ends with this instance.
   */
  watch(ref: ActorRef<any>, ...message: [message?: T]): void {
    this.check('watch');
    const watches = this.has.watches ??= new Watches({
      observe: (target, ended) =>
        target instanceof LocalActorRef
          ? target.onTermination(ended)
          : this.system.refProvider.watch(target, this.cell.ref, ended),
      deliver: (notice, mark) => this.cell.enqueueMark(notice, mark),
    });
    watches.watch(ref.underlying(), message.length === 0 ? undefined : { value: message[0] });
  }

  /** A notice that already waits in the mailbox is not handled any more. */
  unwatch(ref: ActorRef<any>): void {
    this.own?.watches?.unwatch(ref.underlying());
  }

  /** Stops an actor, a child as a rule, after the message it is handling. */
  stop(ref: ActorRef<any>): void {
    this.check('stop others');
    if (ref.underlying() === this.cell.ref) this.stopSelf();
    else ref.stop();
  }

  /** Stops this actor after the present message; queued messages become dead letters. */
  stopSelf(): void {
    if (!this.revoked) this.cell.stop('self');
  }

  /** Handles the following messages with `behavior` instead. `stacked`: until `unbecome`, else for good. */
  become(behavior: (message: T) => void | Promise<void>, options?: { readonly stacked?: boolean }): void {
    this.check('change its behaviour');
    const { behaviors } = this.has;
    if (options?.stacked !== true) behaviors.pop();
    else if (behaviors.length >= maxBehaviors) {
      throw new ActorUsageError(`${this.cell.path} has ${maxBehaviors} behaviours on top of each other`);
    }
    behaviors.push(behavior);
    this.cell.behavior = behavior;
  }

  /** Goes back to the behaviour below, at last to `onReceive`. */
  unbecome(): void {
    this.check('change its behaviour');
    const behaviors = this.own?.behaviors;
    behaviors?.pop();
    this.cell.behavior = behaviors?.at(-1);
  }

  /**
   * Sets the message being handled aside until `unstashAll`. False when the stash is full: the message has become a dead
   * letter then. Throws `ActorUsageError` outside of a handler and for a message that is stashed already.
   */
  stash(): boolean {
    this.check('stash');
    if (!this.cell.canStash) throw new ActorUsageError(`${this.cell.path} has no message that could be stashed`);
    return this.cell.stashCurrent();
  }

  /** Puts the stashed messages in front of the mailbox, in their order. */
  unstashAll(): void {
    this.check('unstash');
    this.cell.unstashAll();
  }

  get timers(): ActorTimers<T> {
    return this.has.timers ??= new TimerTable<T>({
      environment: this.system.environment,
      check: (operation) => this.check(operation),
      deliver: (message, tick) => this.cell.enqueueMark(message, tick),
    });
  }

  /** Sends `message` to this actor whenever nothing came for `timeoutMs` (at least 1), until it is cancelled. */
  setReceiveTimeout(timeoutMs: number, message: T): void {
    this.check('set a receive timeout');
    checkOption('setReceiveTimeout', 'timeoutMs', timeoutMs ?? null, rules.durationMs(1));
    this.cell.setIdle(
      new ReceiveTimeout(
        { environment: this.system.environment, deliver: (sent, mark) => this.cell.enqueueMark(sent, mark) },
        timeoutMs,
        message,
      ),
    );
  }

  cancelReceiveTimeout(): void {
    if (!this.revoked) this.cell.setIdle(undefined);
  }

  /** For the cell: timers and watches end, while the hooks of the old instance may still use the rest. */
  quiesce(): void {
    if (this.own === undefined) return;
    this.own.timers?.cancelAll();
    this.own.watches?.clear();
    this.own.behaviors = [];
  }

  /** For the cell: this instance is the actor's no longer. */
  revoke(): void {
    this.quiesce();
    this.revoked = true;
  }

  private get has(): Belongings<T> {
    return this.own ??= new Belongings();
  }

  private check(operation: string): void {
    if (this.cell.fence?.()) throw fencedError(this.cell.path, operation);
    if (this.revoked) throw new ActorStoppedError(this.cell.path, operation);
  }
}
