/**
 * Group commit: one write and one sync are under way at a time, and everything that arrives meanwhile goes into the next
 * (Gawlick and Kinkade, "Varieties of Concurrency Control in IMS/VS Fast Path", 1985).
 */
import { fastPaths } from '../../fast_paths.ts';

export interface Task {
  /** Bytes it will take, about. */
  readonly size: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What became of one task of a group. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown };

export class GroupCommit<T extends Task> {
  readonly #commit: (group: readonly T[]) => Promise<readonly Outcome[]>;
  readonly #maxTasks: number;
  readonly #maxBytes: number;
  #queue: T[] = [];
  #running: Promise<void> | undefined = undefined;

  /** `commit` makes a group durable; what it throws fails every task of the group. */
  constructor(
    commit: (group: readonly T[]) => Promise<readonly Outcome[]>,
    bounds: { readonly maxTasks: number; readonly maxBytes: number },
  ) {
    this.#commit = commit;
    this.#maxTasks = bounds.maxTasks;
    this.#maxBytes = bounds.maxBytes;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  add(task: T): void {
    this.#queue.push(task);
    this.#running ??= this.#run();
  }

  /** Resolves when nothing is under way or waits. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    // What is added in the same turn joins the first group.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#take();
      let outcomes: readonly Outcome[];
      try {
        outcomes = await this.#commit(group);
      } catch (error) {
        outcomes = group.map(() => ({ error }));
      }
      for (const [index, task] of group.entries()) {
        const outcome = outcomes[index] as Outcome;
        if ('error' in outcome) task.reject(outcome.error);
        else task.resolve(outcome.value);
      }
    }
    this.#running = undefined;
  }

  #take(): T[] {
    if (!fastPaths.groupCommit) return this.#queue.splice(0, 1);
    let bytes = 0;
    let count = 0;
    for (const task of this.#queue) {
      bytes += task.size;
      if (count > 0 && (bytes > this.#maxBytes || count >= this.#maxTasks)) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }
}
