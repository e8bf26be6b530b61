/** The errors of persistence. Each has a fixed `name`. `FencedError` is the actor runtime's own. */
import { FencedError } from '../actor/errors.ts';

/** An append did not continue where the journal ends: somebody else wrote, or this writer has lost count. */
export class JournalConcurrencyError extends Error {
  override readonly name = 'JournalConcurrencyError';
  readonly persistenceId: string;
  /** The highest sequence number as the writer believed. */
  readonly expected: number;
  /** The highest sequence number in the journal. */
  readonly actual: number;
  constructor(persistenceId: string, expected: number, actual: number) {
    super(`append to '${persistenceId}' after number ${expected} was refused: the journal ends with ${actual}`);
    this.persistenceId = persistenceId;
    this.expected = expected;
    this.actual = actual;
  }
}

/** A durable state was written by somebody else since it was read. */
export class DurableStateConcurrencyError extends Error {
  override readonly name = 'DurableStateConcurrencyError';
  readonly persistenceId: string;
  readonly expected: number;
  readonly actual: number;
  constructor(persistenceId: string, expected: number, actual: number) {
    super(`write to '${persistenceId}' on revision ${expected} was refused: the store has revision ${actual}`);
    this.persistenceId = persistenceId;
    this.expected = expected;
    this.actual = actual;
  }
}

/** What the stores hold cannot be turned into the state of this actor. */
export class RecoveryError extends Error {
  override readonly name = 'RecoveryError';
  readonly persistenceId: string;
  /** Where it went wrong; undefined when no single event is to blame. */
  readonly sequenceNr: number | undefined;
  constructor(persistenceId: string, detail: string, sequenceNr?: number, cause?: unknown) {
    super(`'${persistenceId}' cannot recover: ${detail}`, cause === undefined ? undefined : { cause });
    this.persistenceId = persistenceId;
    this.sequenceNr = sequenceNr;
  }
}

/**
 * The store could not do it: disk full, no permission, no connection. What was acknowledged before is not lost, and the
 * same call may work later.
 */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  /** The code of the system or the database, such as `ENOSPC`. */
  readonly code: string | undefined;
  constructor(message: string, code?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** Stored bytes are not what was written. Nothing is read from there until somebody has decided what to do. */
export class StoreDamagedError extends Error {
  override readonly name = 'StoreDamagedError';
  /** The file or the table. */
  readonly path: string;
  /** Bytes from its start. */
  readonly position: number;
  constructor(path: string, position: number, detail: string) {
    super(`${path} is damaged at byte ${position}: ${detail}`);
    this.path = path;
    this.position = position;
  }
}

/** Another process, or another part of this one, has the directory open. */
export class StoreLockedError extends Error {
  override readonly name = 'StoreLockedError';
  readonly path: string;
  constructor(path: string, owner: string) {
    super(`${path} is in use by ${owner}; a directory has one writer`);
    this.path = path;
  }
}

/** Somebody else writes under this id now: a writer that restarted would only fight with it. */
export function mustStop(error: unknown): boolean {
  return error instanceof JournalConcurrencyError || error instanceof DurableStateConcurrencyError ||
    error instanceof FencedError;
}
