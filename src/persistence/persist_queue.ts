/** The writes of one command: what is persisted in one go becomes one append. */

interface Group<State> {
  readonly entries: readonly unknown[];
  /** The state once these events are written. */
  readonly next: State;
  readonly after: ((state: State) => unknown) | undefined;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface PersistPort<State> {
  /** Writes all or nothing. */
  append(entries: readonly unknown[]): Promise<void>;
  /** They are written: the state moves on. */
  written(count: number, state: State): void;
}

/**
 * Groups are written in order. All that were added in one turn of the event loop, or while a write was under way, go into
 * one append, up to `maxBatch` entries. A failed append fails everything that waits, since it was made of a state that
 * never came to be.
 */
export class PersistQueue<State> {
  readonly #port: PersistPort<State>;
  readonly #maxBatch: number;
  #groups: Group<State>[] = [];
  /** The last group of the append that is under way. */
  #writing: Group<State> | undefined = undefined;
  #pump: Promise<void> | undefined = undefined;
  /** Callbacks that returned a promise. */
  readonly #callbacks = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined = undefined;

  constructor(port: PersistPort<State>, maxBatch: number) {
    this.#port = port;
    this.#maxBatch = maxBatch;
  }

  /** Nothing is written, waits, or has failed since `settle`. */
  get idle(): boolean {
    return this.#pump === undefined && this.#groups.length === 0 && this.#callbacks.size === 0 &&
      this.#failure === undefined;
  }

  /** The state after everything that waits; undefined when nothing does. */
  get last(): { readonly state: State } | undefined {
    const group = this.#groups.at(-1) ?? this.#writing;
    return group && { state: group.next };
  }

  /** Resolves when the events are written and `after`, called with the new state, has settled. */
  add(entries: readonly unknown[], next: State, after: ((state: State) => unknown) | undefined): Promise<void> {
    const promise = new Promise<void>((resolve, reject) => {
      this.#groups.push({ entries, next, after, resolve, reject });
    });
    // Nobody need look at it: a failure is the command's as well.
    promise.catch(() => {});
    this.#pump ??= this.#drain();
    return promise;
  }

  /** Gives up what has not been begun. */
  discard(error: unknown): void {
    for (const group of this.#groups.splice(0)) group.reject(error);
  }

  /** Waits until there is nothing left to do, and throws the first failure since the last call. */
  async settle(): Promise<void> {
    while (this.#pump !== undefined || this.#callbacks.size > 0) {
      await this.#pump;
      await Promise.all(this.#callbacks);
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
  }

  async #drain(): Promise<void> {
    // Lets the handler add the rest.
    await Promise.resolve();
    while (this.#groups.length > 0) {
      const batch = this.#take();
      this.#writing = batch.at(-1);
      try {
        await this.#port.append(batch.flatMap((group) => group.entries));
      } catch (error) {
        this.#writing = undefined;
        this.#failure ??= { error };
        for (const group of batch) group.reject(error);
        this.discard(error);
        break;
      }
      for (const group of batch) this.#finish(group);
      this.#writing = undefined;
    }
    this.#pump = undefined;
  }

  #take(): Group<State>[] {
    let entries = 0;
    let count = 0;
    for (const group of this.#groups) {
      entries += group.entries.length;
      if (count > 0 && entries > this.#maxBatch) break;
      count += 1;
    }
    return this.#groups.splice(0, count);
  }

  #finish(group: Group<State>): void {
    this.#port.written(group.entries.length, group.next);
    const fail = (error: unknown): void => {
      this.#failure ??= { error };
      group.reject(error);
    };
    let result: unknown;
    try {
      result = group.after?.(group.next);
    } catch (error) {
      return fail(error);
    }
    if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') return group.resolve();
    const callback: Promise<void> = Promise.resolve(result).then(() => group.resolve(), fail).then(() => {
      this.#callbacks.delete(callback);
    });
    this.#callbacks.add(callback);
  }
}
