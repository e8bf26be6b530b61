/** Refs of actors in this process. */
import type { Cell } from './cell.ts';
import type { Cancel } from './environment.ts';
import { ActorRef, admitSender } from './ref.ts';
import type { TerminationCause } from './watch.ts';

export class LocalActorRef<T = unknown> extends ActorRef<T> {
  private readonly serial: number;
  private readonly cell: Cell;

  constructor(serial: number, cell: Cell) {
    super();
    this.serial = serial;
    this.cell = cell;
  }

  /** Counted from a start that is kept once: large numbers cost an actor more than small ones. */
  get incarnation(): number {
    return this.cell.system.firstIncarnation + this.serial;
  }

  get path(): string {
    return this.cell.path;
  }

  tell(message: T, sender?: ActorRef<any>): void {
    this.cell.enqueue(message, admitSender(sender), undefined);
  }

  /** Like `tell`, with a receipt that comes back through `CellHooks.settled` or `returned`. */
  deliver(message: T, sender: ActorRef<any> | undefined, receipt: unknown): void {
    this.cell.enqueue(message, sender, receipt);
  }

  ask<R = unknown>(message: T, timeoutMs?: number): Promise<R> {
    return this.cell.system.asks.ask<R>(this, message, timeoutMs);
  }

  stop(): void {
    if (this.mayEnd()) this.cell.stop('stop');
  }

  /**
   * Ends the actor now, its children included: a handler that is still running is abandoned, no more user code runs, and
   * what it may still try through its context is refused with `FencedError`. `postStop` does not run.
   */
  kill(): void {
    if (this.mayEnd()) this.cell.kill();
  }

  get isTerminated(): boolean {
    return this.cell.isTerminated;
  }

  /** Calls `run` once when the actor has ended; at once if it has. For layers that pass the news on. */
  onTermination(run: (cause: TerminationCause) => void): Cancel {
    return this.cell.onTermination(run);
  }

  private mayEnd(): boolean {
    if (!this.cell.guardian) return true;
    this.cell.system.log.warn(
      `${this.path} belongs to the actor system and cannot be stopped; terminate the system instead`,
    );
    return false;
  }
}

/** The sender of messages that have none: whatever it is told becomes a dead letter. */
export class NoSender extends ActorRef<unknown> {
  readonly path = '/deadLetters';
  readonly incarnation = 0;
  private readonly publish: (message: unknown, sender: ActorRef<any> | undefined) => void;

  constructor(publish: (message: unknown, sender: ActorRef<any> | undefined) => void) {
    super();
    this.publish = publish;
  }

  tell(message: unknown, sender?: ActorRef<any>): void {
    this.publish(message, admitSender(sender));
  }

  ask<R = unknown>(): Promise<R> {
    return Promise.reject(new TypeError('the message had no sender that could be asked'));
  }

  stop(): void {}
}
