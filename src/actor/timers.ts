/** Timers of one actor. They end with the instance that started them: a restart or a stop cancels all. */
import type { Cancel, Environment } from './environment.ts';
import { checkOption, rules } from './options.ts';
import { SelfMessage } from './mailbox.ts';

/** Names a timer within its actor; starting another one under the same key cancels the first. */
export type TimerKey = string | number | symbol;

/** `context.timers`. All delays are in milliseconds from 0 to 2^31 − 1; others throw `OptionsError`. */
export interface ActorTimers<T> {
  /** Sends `message` to this actor once. */
  startSingle(key: TimerKey, message: T, delayMs: number): void;
  /** Sends `message` again `delayMs` after the previous one *has been handled*: at most one is ever queued. */
  startFixedDelay(key: TimerKey, message: T, delayMs: number, initialDelayMs?: number): void;
  /**
   * Sends `message` on a fixed grid of `intervalMs` (at least 1). A beat that comes while the previous one still waits in
   * the mailbox is skipped, as are all beats missed while the process was suspended: they never pile up.
   */
  startFixedRate(key: TimerKey, message: T, intervalMs: number, initialDelayMs?: number): void;
  /** A tick that already waits in the mailbox is not handled any more. */
  cancel(key: TimerKey): void;
  cancelAll(): void;
  isActive(key: TimerKey): boolean;
}

/** What timers need of their actor. */
export interface TimerOwner {
  readonly environment: Environment;
  /** Throws when the instance may not act any more. */
  check(operation: string): void;
  deliver(message: unknown, tick: SelfMessage): void;
}

type Mode = 'single' | 'fixed-delay' | 'fixed-rate';

class Tick extends SelfMessage {
  readonly table: TimerTable<any>;
  readonly key: TimerKey;
  readonly message: unknown;
  readonly mode: Mode;
  readonly periodMs: number;
  /** On the grid of a fixed rate: when the next beat is due. */
  due: number;
  queued = false;
  cancel: Cancel | undefined = undefined;

  constructor(table: TimerTable<any>, key: TimerKey, message: unknown, mode: Mode, periodMs: number, due: number) {
    super();
    this.table = table;
    this.key = key;
    this.message = message;
    this.mode = mode;
    this.periodMs = periodMs;
    this.due = due;
  }

  live(): boolean {
    this.queued = false;
    if (!this.table.holds(this)) return false;
    if (this.mode === 'single') this.table.forget(this);
    return true;
  }

  handled(): void {
    if (this.mode === 'fixed-delay' && this.table.holds(this)) this.table.arm(this, this.periodMs);
  }
}

export class TimerTable<T> implements ActorTimers<T> {
  private readonly owner: TimerOwner;
  private readonly ticks = new Map<TimerKey, Tick>();

  constructor(owner: TimerOwner) {
    this.owner = owner;
  }

  startSingle(key: TimerKey, message: T, delayMs: number): void {
    this.start('single', key, message, delayMs, delayMs);
  }

  startFixedDelay(key: TimerKey, message: T, delayMs: number, initialDelayMs: number = delayMs): void {
    this.start('fixed-delay', key, message, delayMs, initialDelayMs);
  }

  startFixedRate(key: TimerKey, message: T, intervalMs: number, initialDelayMs: number = intervalMs): void {
    this.start('fixed-rate', key, message, intervalMs, initialDelayMs);
  }

  cancel(key: TimerKey): void {
    const tick = this.ticks.get(key);
    if (tick === undefined) return;
    tick.cancel?.();
    this.ticks.delete(key);
  }

  cancelAll(): void {
    for (const tick of this.ticks.values()) tick.cancel?.();
    this.ticks.clear();
  }

  isActive(key: TimerKey): boolean {
    return this.ticks.has(key);
  }

  /** Whether this very tick is still wanted: not cancelled, and not replaced by another one under its key. */
  holds(tick: Tick): boolean {
    return this.ticks.get(tick.key) === tick;
  }

  forget(tick: Tick): void {
    this.ticks.delete(tick.key);
  }

  arm(tick: Tick, delayMs: number): void {
    tick.cancel = this.owner.environment.timers.set(delayMs, () => this.fire(tick));
  }

  private start(mode: Mode, key: TimerKey, message: T, periodMs: number, initialDelayMs: number): void {
    this.owner.check('start a timer');
    checkOption('timers', 'delayMs', periodMs ?? null, rules.durationMs(mode === 'fixed-rate' ? 1 : 0));
    checkOption('timers', 'initialDelayMs', initialDelayMs ?? null, rules.durationMs(0));
    this.cancel(key);
    const due = this.owner.environment.clock.now() + initialDelayMs;
    const tick = new Tick(this, key, message, mode, periodMs, due);
    this.ticks.set(key, tick);
    this.arm(tick, initialDelayMs);
  }

  private fire(tick: Tick): void {
    tick.cancel = undefined;
    if (!this.holds(tick)) return;
    if (!tick.queued) {
      tick.queued = true;
      this.owner.deliver(tick.message, tick);
    }
    if (tick.mode === 'fixed-rate' && this.holds(tick)) {
      const now = this.owner.environment.clock.now();
      // The next point of the grid that lies ahead; those passed by in a suspend are skipped.
      const beats = Math.max(1, Math.floor((now - tick.due) / tick.periodMs) + 1);
      tick.due += beats * tick.periodMs;
      this.arm(tick, Math.max(0, tick.due - now));
    }
  }
}
