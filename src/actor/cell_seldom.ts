/** What few actors need: kept apart, so that an actor that needs none of it pays one reference for all. */
import type { Cancel } from './environment.ts';
import type { Mailbox } from './mailbox.ts';
import type { ReceiveTimeout } from './receive_timeout.ts';
import { noRestarts, type RestartRecord } from './supervision.ts';
import type { TerminationCause } from './watch.ts';

export interface Failure {
  readonly error: unknown;
  readonly message: unknown;
}

const noFailure: Failure = { error: undefined, message: undefined };

export class Seldom {
  killed = false;
  stopCause: TerminationCause = 'stop';
  stopError: unknown = undefined;
  awaitsChildren = false;
  /** Names of anonymous children. */
  generated = 0;
  /** Grows when a hook that has not settled is given up, so that its late answer finds nobody. */
  hookGeneration = 0;
  lifeTimer: Cancel | undefined = undefined;
  endListeners: Set<(cause: TerminationCause) => void> | undefined = undefined;
  /** What the next instance is started for. */
  failure = noFailure;
  restartDelayMs = 0;
  childError: unknown = undefined;
  record: RestartRecord = noRestarts;
  idle: ReceiveTimeout | undefined = undefined;
  gateWait: Cancel | undefined = undefined;
  stashed: Mailbox | undefined = undefined;
  mailboxWarned = false;
  stashWarned = false;
}

/**
 * What most actors have of it: nothing. Shared, so that it must not be changed; not frozen, since engines would then tell it
 * apart from the others.
 */
export const nothingSeldom: Readonly<Seldom> = new Seldom();
