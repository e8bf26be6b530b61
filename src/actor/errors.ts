/** The errors of the actor runtime. Each has a fixed `name`, so that it can be told apart without `instanceof`. */

/** An actor name that breaks the naming rules. */
export class ActorNameError extends Error {
  override readonly name = 'ActorNameError';
  readonly actorName: string;
  constructor(actorName: string, rule: string) {
    super(`actor name ${JSON.stringify(actorName)} ${rule}`);
    this.actorName = actorName;
  }
}

/** Something of this name exists at this path (it may still be stopping). */
export class ActorAlreadyExistsError extends Error {
  override readonly name = 'ActorAlreadyExistsError';
  readonly path: string;
  constructor(path: string, detail = '') {
    super(`an actor already exists at ${path}${detail}`);
    this.path = path;
  }
}

/** A context was used by an instance that has been stopped or replaced, or a child was spawned while stopping. */
export class ActorStoppedError extends Error {
  override readonly name = 'ActorStoppedError';
  readonly path: string;
  constructor(path: string, operation: string) {
    super(`${path} cannot ${operation}: this instance is stopping, stopped or was replaced by a restart`);
    this.path = path;
  }
}

/** The caller may no longer act: its lease was lost, its epoch is too old, or it was killed. */
export class FencedError extends Error {
  override readonly name: string = 'FencedError';
}

/** No reply within the time given to `ask`. */
export class AskTimeoutError extends Error {
  override readonly name = 'AskTimeoutError';
  readonly path: string;
  readonly timeoutMs: number;
  /** What is known about the reason, in a sentence. */
  readonly why: string | undefined;
  constructor(path: string, timeoutMs: number, why?: string) {
    super(`no reply from ${path} within ${timeoutMs} ms${why === undefined ? '' : `: ${why}`}`);
    this.path = path;
    this.timeoutMs = timeoutMs;
    this.why = why;
  }
}

/** The question became a dead letter, so no reply can come. `reason` is the dead letter's. */
export class UndeliveredError extends Error {
  override readonly name = 'UndeliveredError';
  readonly path: string;
  readonly reason: string;
  constructor(path: string, reason: string, detail?: string) {
    super(`the question to ${path} was not delivered: ${reason}${detail === undefined ? '' : ` (${detail})`}`);
    this.path = path;
    this.reason = reason;
  }
}

/** `limits.asks` questions are waiting for their replies. */
export class TooManyAsksError extends Error {
  override readonly name = 'TooManyAsksError';
  constructor(path: string, limit: number) {
    super(`cannot ask ${path}: ${limit} asks are in flight already`);
  }
}

/** `preStart` or `postRestart` did not settle within `startTimeoutMs`. */
export class StartTimeoutError extends Error {
  override readonly name = 'StartTimeoutError';
  constructor(path: string, timeoutMs: number) {
    super(`${path} did not start within ${timeoutMs} ms`);
  }
}

/** `stash` or `unbecome` was called where it cannot work. */
export class ActorUsageError extends Error {
  override readonly name = 'ActorUsageError';
}

/** The actor system is terminating or has terminated. */
export class SystemTerminatedError extends Error {
  override readonly name = 'SystemTerminatedError';
  constructor(systemName: string, operation: string) {
    super(`cannot ${operation}: actor system '${systemName}' is terminating or has terminated`);
  }
}

/** `this.cluster` was read in a system that is not part of a cluster. */
export class NoClusterError extends Error {
  override readonly name = 'NoClusterError';
  constructor(systemName: string) {
    super(`actor system '${systemName}' has no cluster: join one first with Cluster.join(system, options)`);
  }
}

/** A cluster is needed, and this system has not joined one, or has left it. */
export class ClusterDisabledError extends Error {
  override readonly name = 'ClusterDisabledError';
  readonly code = 'cluster-disabled';
  readonly retryable = false;
  constructor(systemName: string) {
    super(`actor system ${systemName} is in no cluster: join one with Cluster.join`);
  }
}
