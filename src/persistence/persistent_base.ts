/** What actors with events and actors with a durable state have in common: their start, their lease, their failures. */
import { Actor } from '../actor/actor.ts';
import { ActorUsageError, FencedError } from '../actor/errors.ts';
import type { LocalActorRef } from '../actor/local_ref.ts';
import type { Lease } from '../coordination/lease.ts';
import { mustStop } from './errors.ts';
import { type PersistenceStores, storesOf, writerFor } from './stores.ts';
import { checkPersistenceId } from './validation.ts';
import type { Writer } from './writer.ts';

export type Phase = 'new' | 'recovering' | 'running' | 'broken';

/** What the library's own classes call each other by, so that no name is taken from the user's. */
export const recoverState: unique symbol = Symbol('recoverState');
export const handleToEnd: unique symbol = Symbol('handleToEnd');
export const phase: unique symbol = Symbol('phase');
export const breakOff: unique symbol = Symbol('breakOff');
export const hasState: unique symbol = Symbol('hasState');
export const notNow: unique symbol = Symbol('notNow');
export const checkMayWrite: unique symbol = Symbol('checkMayWrite');

const reasons: Readonly<Record<Phase, string>> = {
  new: 'it has not recovered: a preStart or postRestart of its own must call super',
  recovering: 'it is recovering',
  running: 'only a command that is being handled can persist',
  broken: 'a write or the recovery has failed, and only a restart can bring it back',
};

export abstract class PersistentBase<Command, State> extends Actor<Command> {
  /** The same for each incarnation of this actor, and nobody else's. */
  abstract readonly persistenceId: string;
  #phase: Phase = 'new';
  #lease: Lease | undefined = undefined;
  #released = false;

  /** Handles one command: looks, persists, replies. `state` is the state at its beginning; `this.state` the present one. */
  abstract onCommand(state: State, command: Command): void | Promise<void>;

  /** As of the last write that was acknowledged. */
  abstract get state(): State;

  /** The stores of this actor. Default: those of `usePersistence`. */
  stores(): PersistenceStores {
    return storesOf(this.context.system);
  }

  /**
   * A lease without which this actor does not write. It is asked for before recovery; an actor that does not get it recovers
   * all the same, to be read, and its `persist` throws `FencedError`. Given up when the actor ends. Default: none.
   */
  lease(): Lease | undefined {
    return undefined;
  }

  /** The lease is lost: nothing can be persisted any more. Default: stops. */
  onLeaseLost(reason: string): void {
    this.context.log.warn(`stops, since its lease is lost: ${reason}`, { persistenceId: this.persistenceId });
    this.context.stopSelf();
  }

  /** After recovery and before the first command; may persist. A throw fails the start. */
  onRecoveryCompleted(_state: State): void | Promise<void> {}

  /** Recovery has failed. Default: throws `error`, and supervision decides. If it returns, the actor stops. */
  onRecoveryFailure(error: unknown): void | Promise<void> {
    throw error;
  }

  /** Whether it may write, as far as its lease is concerned; true without one. */
  get isLeaseHolder(): boolean {
    return this.#lease === undefined || this.#lease.checkAlive();
  }

  get recovering(): boolean {
    return this.#phase === 'recovering';
  }

  override async preStart(): Promise<void> {
    this.#phase = 'recovering';
    try {
      checkPersistenceId(this.persistenceId);
      await this[recoverState](await this.#acquire());
      // It may have been suspended at the very end.
      this.context.fence();
    } catch (error) {
      this.#phase = 'broken';
      if (mustStop(error)) {
        this.context.stopSelf();
        throw error;
      }
      await this.onRecoveryFailure(error);
      this.context.log.error(`stopped, since it could not recover: ${String(error)}`, { error });
      return this.context.stopSelf();
    }
    this.#phase = 'running';
    await this[handleToEnd](() => this.onRecoveryCompleted(this.state));
  }

  override onReceive(command: Command): void | Promise<void> {
    if (this.#phase !== 'running') throw this[notNow]();
    return this[handleToEnd](() => this.onCommand(this.state, command));
  }

  override async postStop(): Promise<void> {
    await this.#release();
  }

  /** Makes the state. Without a `writer` it is only to be read. */
  protected abstract [recoverState](writer: Writer | undefined): Promise<void>;
  /** Runs a handler to its end, writes included. */
  protected abstract [handleToEnd](run: () => void | Promise<void>): void | Promise<void>;

  protected get [phase](): Phase {
    return this.#phase;
  }

  /** A write has failed, and what became of it is unknown. */
  protected [breakOff](): void {
    this.#phase = 'broken';
  }

  protected [hasState](): boolean {
    return this.#phase === 'running' || this.#phase === 'broken';
  }

  protected [notNow](): ActorUsageError {
    return new ActorUsageError(
      `${this.context.self.path} (${this.persistenceId}) cannot go on: ${reasons[this.#phase]}`,
    );
  }

  /** @throws FencedError when this actor may not act any more, or does not hold its lease */
  protected [checkMayWrite](): void {
    this.context.fence();
    if (!this.isLeaseHolder) {
      throw new FencedError(
        `${this.context.self.path} may not write '${this.persistenceId}': it does not hold its lease`,
      );
    }
  }

  /** As whom to write; undefined for one that has not got its lease. */
  async #acquire(): Promise<Writer | undefined> {
    const { context } = this;
    const lease = this.lease();
    if (lease === undefined) return writerFor(context.system, context.fence());
    this.#lease = lease;
    const unsubscribe = lease.onLost((reason) => {
      if (!this.#released) this.onLeaseLost(reason);
    });
    // Also after a kill, when postStop does not run.
    (context.self.underlying() as LocalActorRef<Command>).onTermination(() => {
      unsubscribe();
      void this.#release();
    });
    const grant = await lease.acquireWithToken();
    // Killed meanwhile: whatever the lease makes of a release before the grant.
    if (this.#released && grant !== false) await lease.release().catch(() => {});
    context.fence();
    if (grant === false) {
      context.log.warn(`'${this.persistenceId}' can only be read: somebody else has the lease '${lease.name}'`);
      return undefined;
    }
    if (context.epoch > 0) return writerFor(context.system, context.epoch);
    return { epoch: grant.token, uid: lease.owner.slice(-255), clusterId: 'lease' };
  }

  async #release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    // If it cannot be told, others wait for the end of the term.
    await this.#lease?.release().catch(() => {});
  }
}
