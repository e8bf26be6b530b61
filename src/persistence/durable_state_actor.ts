/** An actor that keeps its latest state in a store. */
import { ActorUsageError } from '../actor/errors.ts';
import type { DurableState, DurableStateStore } from './durable_state_store.ts';
import { mustStop, RecoveryError } from './errors.ts';
import {
  breakOff,
  checkMayWrite,
  handleToEnd,
  hasState,
  notNow,
  PersistentBase,
  phase,
  recoverState,
} from './persistent_base.ts';
import { plainSchema, readWith, type Schema, writeWith } from './schema.ts';
import type { Writer } from './writer.ts';

/**
 * Loads its state in `preStart` and replaces it as a whole. Each write names the revision it replaces, so that no two
 * writers overwrite each other. Commands wait while the state is loaded and while a handler awaits `persist`.
 */
export abstract class DurableStateActor<Command = unknown, State = unknown> extends PersistentBase<Command, State> {
  #state: State | undefined = undefined;
  #revision = 0;
  #writer: Writer | undefined = undefined;
  #store: DurableStateStore | undefined = undefined;
  #writing: Promise<void> | undefined = undefined;
  #failure: { readonly error: unknown } | undefined = undefined;

  /** The state before the first write. */
  abstract emptyState(): State;

  /** Default: states are stored as they are. */
  stateSchema(): Schema<State> {
    return plainSchema;
  }

  override get state(): State {
    if (!this[hasState]()) throw this[notNow]();
    return this.#state as State;
  }

  /** How often the state has been written; 0 before the first time. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Replaces the state. Resolves when it is durable; one call at a time. A failure fails the command too, awaited or not.
   * @throws FencedError, DurableStateConcurrencyError: the actor stops. Others: supervision decides.
   */
  persist(next: State): Promise<void> {
    this[checkMayWrite]();
    if (this[phase] !== 'running') throw this[notNow]();
    if (this.#writing !== undefined) {
      throw new ActorUsageError(`'${this.persistenceId}' is being written: await each persist before the next`);
    }
    const written = this.#write(next);
    const settled = written.catch((error) => {
      this.#failure ??= { error };
    }).then(() => {
      this.#writing = undefined;
    });
    this.#writing = settled;
    const result = settled.then(() => written);
    result.catch(() => {});
    return result;
  }

  protected override [handleToEnd](run: () => void | Promise<void>): void | Promise<void> {
    let result: void | Promise<void>;
    try {
      result = run();
    } catch (error) {
      result = Promise.reject(error);
    }
    if (result === undefined && this.#writing === undefined && this.#failure === undefined) return;
    return this.#finish(result);
  }

  async #finish(result: void | Promise<void>): Promise<void> {
    let failure: { readonly error: unknown } | undefined;
    try {
      await result;
    } catch (error) {
      failure = { error };
    }
    await this.#writing;
    failure = this.#failure ?? failure;
    this.#failure = undefined;
    if (failure === undefined) return;
    if (mustStop(failure.error)) this.context.stopSelf();
    throw failure.error;
  }

  async #write(next: State): Promise<void> {
    const schema = this.stateSchema();
    try {
      const state = { value: writeWith(schema, next), version: schema.version };
      const store = this.#store as DurableStateStore;
      this.#revision = await store.save(this.persistenceId, this.#revision, state, this.#writer as Writer);
      this.#state = next;
    } catch (error) {
      if ((error as { name?: string } | undefined)?.name !== 'SerializationError') this[breakOff]();
      throw error;
    }
  }

  #read({ value, version, revision }: DurableState): State {
    try {
      return readWith(this.stateSchema(), value, version);
    } catch (error) {
      const detail = `its state of revision ${revision} (schema version ${version}) is not understood: ${
        String(error)
      }`;
      throw new RecoveryError(this.persistenceId, detail, undefined, error);
    }
  }

  protected override async [recoverState](writer: Writer | undefined): Promise<void> {
    const { context, persistenceId } = this;
    const store = this.stores().durableState;
    if (store === undefined) {
      throw new ActorUsageError(`'${persistenceId}' has no durable-state store among its stores`);
    }
    this.#store = store;
    const claim = writer === undefined ? undefined : await store.claim(persistenceId, writer);
    this.#writer = claim?.writer;
    const stored = await store.load(persistenceId);
    context.fence();
    const revision = stored?.revision ?? 0;
    if (claim !== undefined && revision !== claim.highestSeq) {
      throw new RecoveryError(persistenceId, `the store has revision ${revision} and should have ${claim.highestSeq}`);
    }
    this.#revision = revision;
    this.#state = stored === undefined ? this.emptyState() : this.#read(stored);
  }
}
