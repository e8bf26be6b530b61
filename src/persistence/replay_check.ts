/** Whether what the stores give is a whole history. Pure. */
import { RecoveryError } from './errors.ts';

export interface History {
  readonly persistenceId: string;
  readonly highestSeq: number;
  readonly deletedTo: number;
  /** The number of the snapshot to start from; undefined without one. */
  readonly snapshotSeq: number | undefined;
  /** Numbers of snapshots that are there and cannot be read. */
  readonly damaged: readonly number[];
}

export interface ReplayPlan {
  /** The last number that the starting state has. */
  readonly from: number;
  readonly to: number;
  /** Everything was deleted, snapshots too: the actor starts anew, and its numbers go on. */
  readonly erased: boolean;
}

/** @throws RecoveryError when the events that are left cannot follow on the snapshot */
export function planReplay(history: History): ReplayPlan {
  const { persistenceId, highestSeq, deletedTo, snapshotSeq, damaged } = history;
  if (snapshotSeq !== undefined && (!Number.isSafeInteger(snapshotSeq) || snapshotSeq < 0)) {
    throw new RecoveryError(persistenceId, `its snapshot has ${snapshotSeq} for a sequence number`);
  }
  const start = snapshotSeq ?? 0;
  if (start > highestSeq) {
    throw new RecoveryError(
      persistenceId,
      `its snapshot is of number ${start}, ahead of the journal, which ends with ${highestSeq}`,
      start,
    );
  }
  if (deletedTo <= start) return { from: start, to: highestSeq, erased: false };
  if (deletedTo === highestSeq && snapshotSeq === undefined && damaged.length === 0) {
    return { from: highestSeq, to: highestSeq, erased: true };
  }
  const unreadable = damaged.length === 0 ? '' : ` (the snapshots of ${damaged.join(', ')} cannot be read)`;
  throw new RecoveryError(
    persistenceId,
    `events ${start + 1} to ${deletedTo} have been deleted, and no snapshot holds them${unreadable}`,
    start + 1,
  );
}

/** Sees that a replay is gapless, ordered, free of duplicates and within its window. */
export class SequenceCheck {
  readonly #persistenceId: string;
  readonly #to: number;
  #next: number;

  constructor(persistenceId: string, from: number, to: number) {
    this.#persistenceId = persistenceId;
    this.#next = from + 1;
    this.#to = to;
  }

  /** @throws RecoveryError */
  see(sequenceNr: number): void {
    if (sequenceNr === this.#next && sequenceNr <= this.#to) this.#next += 1;
    else throw new RecoveryError(this.#persistenceId, this.#complain(sequenceNr), sequenceNr);
  }

  /** @throws RecoveryError unless everything has come */
  end(): void {
    if (this.#next > this.#to) return;
    throw new RecoveryError(this.#persistenceId, missing(this.#next, this.#to), this.#next);
  }

  #complain(got: number): string {
    if (!Number.isSafeInteger(got) || got > this.#to) {
      return `the journal gave event ${got}, outside of what was asked for (up to ${this.#to})`;
    }
    if (got > this.#next) return missing(this.#next, got - 1);
    return `the journal gave event ${got} where ${this.#next} was due: out of order, or twice`;
  }
}

function missing(from: number, to: number): string {
  return from === to ? `event ${from} is missing` : `events ${from} to ${to} are missing`;
}
