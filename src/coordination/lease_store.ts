/** What a lease needs of a backend: three questions, answered at any time or never. */

/** What a lease asks of its backend. */
export interface StoreRequest {
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
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
