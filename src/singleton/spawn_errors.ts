/** Why a spawn did not succeed: a closed union, the same whether it was decided here or on another node. */
import { flagOf, proseOf, textOf } from '../cluster/wire_checks.ts';

/** Why a singleton could not be spawned, as it travels between nodes. */
export type SpawnErrorCode =
  | 'cluster-disabled'
  | 'singleton-already-exists'
  | 'actor-already-exists'
  | 'no-eligible-member'
  | 'kind-not-registered'
  | 'registry-full'
  | 'no-quorum'
  | 'leader-unavailable'
  | 'timeout'
  | 'aborted';

const retryable: ReadonlySet<SpawnErrorCode> = new Set(['no-eligible-member', 'no-quorum', 'leader-unavailable']);

/** Base of all spawn errors. `retryable`: the same call may succeed later without anybody changing anything. */
export class SpawnError extends Error {
  override readonly name: string = 'SpawnError';
  readonly code: SpawnErrorCode;
  readonly retryable: boolean;
  constructor(code: SpawnErrorCode, message: string) {
    super(message);
    this.code = code;
    this.retryable = retryable.has(code);
  }
}

/** This node has left its cluster. */
export class ClusterDisabledError extends SpawnError {
  override readonly name = 'ClusterDisabledError';
}
/** Another name has been given to a singleton of this kind and role. */
export class SingletonAlreadyExistsError extends SpawnError {
  override readonly name = 'SingletonAlreadyExistsError';
}
/** The name belongs to something else: a started singleton, or a top-level actor on the host. */
export class SpawnNameTakenError extends SpawnError {
  override readonly name = 'ActorAlreadyExistsError';
}
/** No `up` member carries the role. */
export class NoEligibleMemberError extends SpawnError {
  override readonly name = 'NoEligibleMemberError';
}
/** No member that may host it has registered the kind. */
export class KindNotRegisteredError extends SpawnError {
  override readonly name = 'KindNotRegisteredError';
}
/** Not done within the time or the attempts given. */
export class SpawnTimeoutError extends SpawnError {
  override readonly name = 'SpawnTimeoutError';
}

/** The error for `code`, of the class that belongs to it. */
export function spawnError(code: SpawnErrorCode, message: string): SpawnError {
  switch (code) {
    case 'cluster-disabled':
      return new ClusterDisabledError(code, message);
    case 'singleton-already-exists':
      return new SingletonAlreadyExistsError(code, message);
    case 'actor-already-exists':
      return new SpawnNameTakenError(code, message);
    case 'no-eligible-member':
      return new NoEligibleMemberError(code, message);
    case 'kind-not-registered':
      return new KindNotRegisteredError(code, message);
    case 'timeout':
      return new SpawnTimeoutError(code, message);
    case 'registry-full':
    case 'no-quorum':
    case 'leader-unavailable':
    case 'aborted':
      return new SpawnError(code, message);
    default:
      return code satisfies never;
  }
}

const codes: ReadonlySet<string> = new Set<SpawnErrorCode>([
  'cluster-disabled',
  'singleton-already-exists',
  'actor-already-exists',
  'no-eligible-member',
  'kind-not-registered',
  'registry-full',
  'no-quorum',
  'leader-unavailable',
  'timeout',
  'aborted',
]);

/** An error as it travels. */
export function errorFields(error: SpawnError): readonly unknown[] {
  return [error.code, error.message, error.retryable];
}

/**
 * The error that another node sent.
 * @throws WireError
 */
export function readError(fields: readonly unknown[]): SpawnError {
  const code = textOf(fields[0], 64, 'error code');
  const message = proseOf(fields[1], 1_024, 'error message');
  flagOf(fields[2], 'retryable');
  return spawnError(codes.has(code) ? code as SpawnErrorCode : 'leader-unavailable', message);
}
