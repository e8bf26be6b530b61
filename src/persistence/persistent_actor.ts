/** An actor whose state is the sum of its events. After Fowler's event sourcing and Akka's persistent actors. */
import { ActorUsageError } from '../actor/errors.ts';
import { limits } from '../limits.ts';
import { SerializationError } from '../wire/errors.ts';
import { mustStop } from './errors.ts';
import type { Journal } from './journal.ts';
import { PersistQueue } from './persist_queue.ts';
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
import { type Mark, recover } from './recovery.ts';
import { plainSchema, readWith, type Schema, writeWith } from './schema.ts';
import { neverSnapshot, type SnapshotPolicy } from './snapshot_policy.ts';
import { Snapshotting } from './snapshotting.ts';
import { checkNumber, checkTags } from './validation.ts';
import { packWarmState, unpackWarmState } from './warm_state.ts';
import type { Writer } from './writer.ts';

/**
 * Commands come in, events are written, and only events change the state.
 *
 * Recovery runs in `preStart`: the id is claimed, the newest snapshot is loaded, the events after it are replayed, and other
 * actors get their turns meanwhile. A command is handled to its end, writes and callbacks included, before the next one.
 * What arrives in the meantime waits in the mailbox, in order; `mailbox.capacity` among the spawn options bounds it, and
 * what is over the bound becomes a dead letter, which fails an `ask` at once.
 *
 * When a write fails, the command has failed, and supervision decides; a restart recovers. After `JournalConcurrencyError`
 * or `FencedError`, which mean that somebody else writes now, the actor stops whatever supervision says. A behaviour put on
 * by `context.become` gets messages that `onCommand` does not see, and cannot persist.
 */
export abstract class PersistentActor<Command = unknown, Event = unknown, State = unknown>
  extends PersistentBase<Command, State> {
  #state: State | undefined = undefined;
  #seq = 0;
  /** A command, or `onRecoveryCompleted`, is being handled. */
  #handling = false;
  #writer: Writer | undefined = undefined;
  #journal: Journal | undefined = undefined;
  #snapshots: Snapshotting | undefined = undefined;
  #warm: Mark<State> | undefined = undefined;
  readonly #queue: PersistQueue<State> = new PersistQueue<State>({
    append: (entries) => this.#append(entries as readonly Event[]),
    written: (count, state) => {
      this.#state = state;
      this.#seq += count;
    },
  }, limits.eventsPerAppend);

  /** The state before the first event. */
  abstract initialState(): State;
  /** The state after `event`. Pure: it depends on nothing else, changes nothing, and gives the same each time. */
  abstract onEvent(state: State, event: Event): State;

  /** Default: never. */
  snapshotPolicy(): SnapshotPolicy {
    return neverSnapshot;
  }

  /** Under which tags an event can be found by `Journal.readByTag`. Default: none. */
  tagsOf(_event: Event): readonly string[] {
    return [];
  }

  /** Default: events are stored as they are. */
  eventSchema(): Schema<Event> {
    return plainSchema;
  }

  /** For snapshots and hand-over. Default: states are stored as they are. */
  stateSchema(): Schema<State> {
    return plainSchema;
  }

  override get state(): State {
    if (!this[hasState]()) throw this[notNow]();
    return this.#state as State;
  }

  /** Number of the last event that is part of the state; 0 before the first. */
  get lastSequenceNr(): number {
    return this.#seq;
  }

  /**
   * Writes one event. `after` is called with the new state once it is durable; that is the place for replies. The promise
   * resolves after that and may be ignored: the command ends when everything it persisted has ended.
   * @throws FencedError when this actor may not act any more; whatever `onEvent` throws, and nothing is written then
   */
  persist(event: Event, after?: (state: State, event: Event) => void | Promise<void>): Promise<void> {
    return this.persistAll([event], after && ((state) => after(state, event)));
  }

  /** Writes all events or none. @throws as `persist` */
  persistAll(
    events: readonly Event[],
    after?: (state: State, events: readonly Event[]) => void | Promise<void>,
  ): Promise<void> {
    this[checkMayWrite]();
    if (!this.#handling || this[phase] !== 'running') throw this[notNow]();
    const last = this.#queue.last;
    let next = last === undefined ? this.#state as State : last.state;
    for (const event of events) {
      checkTags(this.tagsOf(event));
      next = this.onEvent(next, event);
    }
    return this.#queue.add(events, next, after && ((state) => after(state, events)));
  }

  /** Saves the present state now, whatever the policy. @throws ActorUsageError without a snapshot store */
  async saveSnapshot(): Promise<void> {
    this[checkMayWrite]();
    const snapshots = this.#needSnapshots();
    await snapshots.save(this.#snapshot(), this.snapshotPolicy());
  }

  /**
   * Deletes the events up to and including `toSeq`. Refused unless a readable snapshot holds them, since the actor could not
   * recover otherwise.
   */
  async deleteHistory(toSeq: number): Promise<void> {
    this[checkMayWrite]();
    checkNumber('PersistentActor', 'toSeq', toSeq);
    if (toSeq > this.#seq || !(await this.#needSnapshots().covers(toSeq))) {
      throw new ActorUsageError(
        `the history of '${this.persistenceId}' up to ${toSeq} cannot be deleted: no snapshot holds it`,
      );
    }
    await this.#journal?.delete(this.persistenceId, toSeq);
  }

  /** Events of this actor in order, both ends included, read as fast as they are consumed. */
  async *readEvents(fromSeq = 1, toSeq = Infinity): AsyncGenerator<Event, void, void> {
    const schema = this.eventSchema();
    for await (const stored of this.#needJournal().read(this.persistenceId, fromSeq, toSeq)) {
      yield readWith(schema, stored.payload, stored.version);
    }
  }

  /** For the host of a singleton: the state and its number, for the next host. */
  serializeForHandOver(): Uint8Array | null {
    if (this[phase] !== 'running' || !this.#queue.idle) return null;
    const mark = { sequenceNr: this.#seq, state: this.#state as State };
    try {
      return packWarmState(this.persistenceId, mark, this.stateSchema());
    } catch (error) {
      if (!(error instanceof SerializationError)) throw error;
      return null;
    }
  }

  /** For the host of a singleton. The state counts only as far as the journal agrees. */
  restoreFromHandOver(state: Uint8Array): void {
    this.#warm = unpackWarmState(this.persistenceId, state, this.stateSchema());
  }

  protected override [handleToEnd](run: () => void | Promise<void>): void | Promise<void> {
    this.#handling = true;
    let result: void | Promise<void>;
    try {
      result = run();
    } catch (error) {
      this.#queue.discard(error);
      if (this.#queue.idle) return this.#ended(error);
      return this.#finish(Promise.reject(error));
    }
    if (result === undefined && this.#queue.idle) {
      this.#handling = false;
      return;
    }
    return this.#finish(result);
  }

  async #finish(result: void | Promise<void>): Promise<void> {
    const before = this.#seq;
    let failure: { readonly error: unknown } | undefined;
    try {
      await result;
    } catch (error) {
      failure = { error };
    }
    try {
      await this.#queue.settle();
    } catch (error) {
      failure = { error };
    }
    if (failure !== undefined) return this.#ended(failure.error);
    this.#handling = false;
    if (this.#seq !== before) this.#snapshotIfDue();
  }

  #ended(error: unknown): never {
    this.#handling = false;
    if (mustStop(error)) this.context.stopSelf();
    throw error;
  }

  async #append(events: readonly Event[]): Promise<void> {
    this[checkMayWrite]();
    const schema = this.eventSchema();
    try {
      const entries = events.map((event) => ({
        payload: writeWith(schema, event),
        tags: this.tagsOf(event),
        version: schema.version,
      }));
      await this.#needJournal().append(this.persistenceId, entries, this.#seq, this.#writer as Writer);
    } catch (error) {
      // Of these it is known that nothing was written, and the next command may be fine.
      if (!(error instanceof SerializationError)) this[breakOff]();
      throw error;
    }
  }

  protected override async [recoverState](writer: Writer | undefined): Promise<void> {
    const { context, persistenceId } = this;
    const { journal, snapshots } = this.stores();
    if (journal === undefined) throw new ActorUsageError(`'${persistenceId}' has no journal among its stores`);
    this.#journal = journal;
    const claim = writer === undefined ? undefined : await journal.claim(persistenceId, writer);
    context.fence();
    this.#writer = claim?.writer;
    // Who only reads is not told what was deleted; the gap would show.
    const extent = claim ?? { highestSeq: await journal.highestSeq(persistenceId), deletedTo: 0 };
    const recovered = await recover<Event, State>({
      persistenceId,
      journal,
      snapshots,
      environment: context.system.environment,
      log: context.log,
      events: this.eventSchema(),
      states: this.stateSchema(),
      warm: this.#warm,
      initialState: () => this.initialState(),
      onEvent: (state, event) => this.onEvent(state, event),
      check: () => context.fence(),
    }, extent);
    this.#warm = undefined;
    this.#state = recovered.state;
    this.#seq = recovered.sequenceNr;
    if (snapshots === undefined) return;
    this.#snapshots = new Snapshotting(persistenceId, snapshots, journal, context.log);
    this.#snapshots.lastSeq = recovered.snapshotSeq;
  }

  #snapshotIfDue(): void {
    const snapshots = this.#snapshots;
    const policy = this.snapshotPolicy();
    if (snapshots === undefined || snapshots.busy || !policy.due(this.#seq, snapshots.lastSeq)) return;
    try {
      snapshots.start(this.#snapshot(), policy);
    } catch (error) {
      this.context.log.warn(`no snapshot was taken: ${String(error)}`, { persistenceId: this.persistenceId, error });
    }
  }

  #snapshot(): { sequenceNr: number; state: unknown; version: number } {
    const schema = this.stateSchema();
    return { sequenceNr: this.#seq, state: writeWith(schema, this.state), version: schema.version };
  }

  #needJournal(): Journal {
    if (this.#journal === undefined) throw this[notNow]();
    return this.#journal;
  }

  #needSnapshots(): Snapshotting {
    if (this.#snapshots === undefined) {
      throw new ActorUsageError(`'${this.persistenceId}' has no snapshot store, or has not recovered`);
    }
    return this.#snapshots;
  }
}
