/** What a lease needs of a backend: three questions, answered at any time or never. */
import { limits } from '../limits.ts';

/** What a lease asks of its backend. */
export interface StoreRequest {
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
  /**
   * Of an acquire: a token that was in use before, though the backend may have forgotten it. One that chooses its tokens
   * itself grants one above this. Default 0.
   */
  readonly above?: number;
  /** Fires when the answer is no longer waited for. */
  readonly signal: AbortSignal;
}

/** What a backend says to an acquisition or a renewal. */
export type StoreAnswer =
  /** From some moment after the request was made, and for at least `ttlMs` from then. */
  | { readonly kind: 'granted'; readonly token: number; readonly previous?: number }
  /** Somebody else has it, or, to a renewal, this tenure is over. */
  | { readonly kind: 'held'; readonly expiresInMs?: number; readonly by?: string }
  /** It may have been granted or not. `retryInMs` is what the backend asks for. */
  | { readonly kind: 'error'; readonly why: string; readonly retryInMs?: number };

/** What a backend says to a release. */
export type ReleaseAnswer =
  /** This owner has it no longer, whether or not it had it before. */
  | { readonly kind: 'released' }
  | { readonly kind: 'error'; readonly why: string; readonly retryInMs?: number };

/**
 * A backend. Each call is made after the one before has settled or was given up through its signal. A rejected promise
 * counts as an error.
 */
export interface LeaseStore {
  /**
   * Grants when nobody has it, or when `owner` itself still does, in any case with a token above every earlier one of this
   * name, releases and deletions included.
   */
  acquire(request: StoreRequest): Promise<StoreAnswer>;
  /** Grants a new term to the tenure of `token`, and only to that; the answer names the same token. */
  renew(request: StoreRequest & { readonly token: number }): Promise<StoreAnswer>;
  /**
   * Ends the tenure of `owner`, if there is one; never somebody else's, and never one that begins later, however late this
   * request comes to effect.
   */
  release(request: StoreRequest): Promise<ReleaseAnswer>;
}

/** What a store has answered, which may be code of anybody's: its form is looked at, and what is of no use left out. */
export function checkedAnswer(answer: unknown): StoreAnswer | ReleaseAnswer {
  const given = (typeof answer === 'object' && answer !== null ? answer : {}) as Readonly<Record<string, unknown>>;
  const { kind, token, previous, expiresInMs, retryInMs, by, why } = given;
  switch (kind) {
    case 'granted':
      if (!isCount(token) || token === 0) break;
      return { kind, token, ...(isCount(previous) && previous < token ? { previous } : {}) };
    case 'held':
      return {
        kind,
        ...(isWait(expiresInMs) ? { expiresInMs } : {}),
        ...(typeof by === 'string' ? { by: by.slice(0, limits.leaseOwnerChars) } : {}),
      };
    case 'released':
      return { kind };
    case 'error':
      return { kind, why: String(why), ...(isWait(retryInMs) ? { retryInMs } : {}) };
    default:
      break;
  }
  return { kind: 'error', why: 'the backend gave an answer that cannot be used' };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isWait(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
