/** The contract of stores that keep the latest state only, with a revision that counts its writes. */
import type { Claim, Writer } from './writer.ts';

/** A stored state, as `DurableStateStore.load` gives it. */
export interface DurableState {
  readonly value: unknown;
  /** 1 for the first write. */
  readonly revision: number;
  /** Of the schema it was written with. */
  readonly version: number;
}

/** Every implementation passes the suite in `test/contract/durable_state_contract.ts`. */
export interface DurableStateStore {
  /** As `Journal.claim`; `highestSeq` is the revision. @throws FencedError, OptionsError */
  claim(persistenceId: string, writer: Writer): Promise<Claim>;
  /** The state as of the last write that was acknowledged, or undefined. */
  load(persistenceId: string): Promise<DurableState | undefined>;
  /**
   * Replaces the state if the store has `revision` (0: none yet), and gives the new revision. The value is encoded before
   * the promise is returned.
   * @throws FencedError when `writer` is not the claimant
   * @throws DurableStateConcurrencyError when the store has another revision
   * @throws OptionsError for a negative revision or a bad id; SerializationError
   */
  save(
    persistenceId: string,
    revision: number,
    state: { readonly value: unknown; readonly version?: number },
    writer: Writer,
  ): Promise<number>;
  close(): Promise<void>;
}
