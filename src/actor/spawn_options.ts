/** Options of a single actor: the public ones, and those for layers that own actors, such as the host of a singleton. */
import type { Actor } from './actor.ts';
import type { Cancel } from './environment.ts';
import { checkOptions, OptionsError, type Rules, rules } from './options.ts';
import type { ActorRef } from './ref.ts';
import { SupervisorStrategy } from './supervision.ts';
import type { TerminationCause } from './watch.ts';

/** A bound on the mailbox. */
export interface MailboxOptions {
  /** Messages that may wait. Default: no bound, with a warning at `limits.mailboxWarning`. */
  readonly capacity?: number;
  /** Which message becomes a dead letter when it is full. Default `drop-newest`. The sender is never failed. */
  readonly overflow?: 'drop-newest' | 'drop-oldest';
}

/** How one actor is run. All fields are optional. */
export interface SpawnOptions {
  /** How failures of this actor are answered. Default: what the parent's `supervisor()` gives, else the system's. */
  readonly supervisor?: SupervisorStrategy;
  readonly mailbox?: MailboxOptions;
  /** Messages that may be stashed; beyond it they become dead letters. Default `limits.stash`. */
  readonly stashCapacity?: number;
  /** `preStart` that takes longer counts as failed, and that instance is fenced. Default: no bound. */
  readonly startTimeoutMs?: number;
}

/** Checked in the dispatcher before each user-level message: timers, receive timeouts and stashed ones included. */
export interface Gate {
  open(): boolean;
  /** Calls `run` when the gate may have opened after it was found closed. */
  onOpen(run: () => void): Cancel;
}

/** What rides with a message from the layer that owns the actor. */
export interface DeliveryReceipt {
  /** Shown as `context.possibleRepeat`. */
  readonly possibleRepeat: boolean;
}

/**
 * Callbacks for the layer that owns an actor. They run inside the actor's turn and must not throw, except `constructed`.
 * A message that a kill interrupted is neither settled nor returned: nobody can know what became of it.
 */
export interface CellHooks {
  /** After the constructor and before `preStart` or `postRestart`; a throw counts as a failed start. */
  constructed?(actor: Actor<any>, restart: boolean): void;
  /** The first `preStart` has settled well. */
  started?(): void;
  /** `postStop` has settled (also if it threw). Not called when there is no instance. After a kill `postStop` has not run. */
  stopped?(actor: Actor<any>, cause: TerminationCause): void;
  /** Children are gone and the name is free. */
  terminated?(cause: TerminationCause, error?: unknown): void;
  /** The handler of an envelope with a receipt has settled or thrown. A stashed one settles when it is handled at last. */
  settled?(receipt: unknown, failed: boolean): void;
  /** An envelope with a receipt will never be handled here. Takes the place of a dead letter. */
  returned?(message: unknown, sender: ActorRef<any> | undefined, receipt: unknown): void;
}

export interface CellOptions extends SpawnOptions {
  readonly hooks?: CellHooks;
  readonly gate?: Gate;
  /** Shown as `context.epoch`; default 0. */
  readonly epoch?: number;
  /** Once it answers true, this actor may send, reply, ask and spawn no more: `FencedError`. */
  readonly fenced?: () => boolean;
}

const mailboxRules: Rules<MailboxOptions> = {
  capacity: rules.integer(1),
  overflow: rules.oneOf('drop-newest', 'drop-oldest'),
};

const spawnRules: Rules<CellOptions> = {
  supervisor: rules.instance(SupervisorStrategy as unknown as abstract new () => unknown),
  mailbox: rules.object,
  stashCapacity: rules.integer(0),
  startTimeoutMs: rules.durationMs(1),
  hooks: rules.object,
  gate: rules.object,
  epoch: rules.integer(0),
  fenced: rules.function,
};

const noOptions: CellOptions = {};

/** @throws OptionsError */
export function checkSpawnOptions(options: CellOptions | undefined): CellOptions {
  if (options === undefined) return noOptions;
  checkOptions('SpawnOptions', options, spawnRules);
  if (options.mailbox !== undefined) {
    checkOptions('MailboxOptions', options.mailbox, mailboxRules);
    if (options.mailbox.capacity === undefined && options.mailbox.overflow !== undefined) {
      throw new OptionsError('MailboxOptions', 'capacity', undefined, 'must be given together with overflow');
    }
  }
  return options;
}
