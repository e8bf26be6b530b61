/** A message to oneself when nothing else came for a while. */
import type { Cancel, Environment } from './environment.ts';
import { SelfMessage } from './mailbox.ts';

/** What a receive timeout needs of its actor. */
export interface IdleOwner {
  readonly environment: Environment;
  deliver(message: unknown, notice: SelfMessage): void;
}

/**
 * Keeps one timer and looks at the time of the latest message only when it fires, so that a message costs one reading of
 * the clock and no timer. Repeats while the actor stays idle.
 */
export class ReceiveTimeout extends SelfMessage {
  private readonly owner: IdleOwner;
  private readonly timeoutMs: number;
  private readonly message: unknown;
  private touchedAt: number;
  private queued = false;
  private cancelled = false;
  private timer: Cancel | undefined;

  constructor(owner: IdleOwner, timeoutMs: number, message: unknown) {
    super();
    this.owner = owner;
    this.timeoutMs = timeoutMs;
    this.message = message;
    this.touchedAt = owner.environment.clock.now();
    this.arm(timeoutMs);
  }

  /** A message other than the timeout itself has been handled. */
  touch(): void {
    this.touchedAt = this.owner.environment.clock.now();
  }

  cancel(): void {
    this.cancelled = true;
    this.timer?.();
    this.timer = undefined;
  }

  live(): boolean {
    this.queued = false;
    if (this.cancelled) return false;
    // Messages that were ahead of it in the mailbox have been handled since it fired: it was not idle after all.
    if (this.remainingMs() <= 0) return true;
    this.arm(this.remainingMs());
    return false;
  }

  handled(): void {
    if (this.cancelled) return;
    this.touch();
    this.arm(this.timeoutMs);
  }

  private remainingMs(): number {
    return this.touchedAt + this.timeoutMs - this.owner.environment.clock.now();
  }

  private arm(delayMs: number): void {
    this.timer?.();
    this.timer = this.owner.environment.timers.set(delayMs, () => this.fire());
  }

  private fire(): void {
    this.timer = undefined;
    if (this.cancelled || this.queued) return;
    const remainingMs = this.remainingMs();
    if (remainingMs > 0) return this.arm(remainingMs);
    this.queued = true;
    this.owner.deliver(this.message, this);
  }
}
