/**
 * Turns the job table's decisions into calls. It knows nothing of actors: whoever owns it feeds it commands, calls `run`
 * when it asks to be woken, and stops it. Everything happens in the owner's turns; only answers of targets arrive between.
 */
import { limits } from '../src/limits.ts';
import { type CallOutcome, isoTime, type JobCall } from './job.ts';
import { type CallingWorld, callTarget, type RunningCall } from './job_call.ts';
import { isRefusal } from './job_definition.ts';
import { checkCommand, type JobReply } from './job_messages.ts';
import { JobTable } from './job_table.ts';
import { decodeTable, encodeTable } from './job_table_state.ts';

/** Wakes at least this often while there are jobs, so that a wall clock that jumped ahead is noticed. */
const longestSleepMs = 30_000;

export interface JobRunnerOptions {
  readonly world: CallingWorld;
  /** Address of this node. */
  readonly host: string;
  /** Epoch of the scheduler instance this runner belongs to; read at each call. */
  readonly epoch: () => number;
  /** A call has ended: `run` should be called soon. */
  readonly wake: () => void;
  /** Default: an empty one that tells nobody of its changes. */
  readonly table?: JobTable;
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #table: JobTable;
  readonly #running = new Map<JobCall, RunningCall>();
  #ended: (readonly [JobCall, CallOutcome])[] = [];

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#table = options.table ?? new JobTable();
  }

  get jobs(): number {
    return this.#table.size;
  }

  /** Answers a command. `run` must be called after it, since it may have changed what is due. */
  handle(message: unknown): JobReply {
    const command = checkCommand(message);
    if (isRefusal(command)) return { kind: 'refused', refusal: command };
    switch (command.kind) {
      case 'put': {
        const put = this.#table.put(command.job, this.#options.world.clock.wall());
        return 'refusal' in put ? put : { kind: 'job', change: put.kind, job: put.job };
      }
      case 'get': {
        const job = this.#table.get(command.id);
        return job === undefined ? { kind: 'unknown', id: command.id } : { kind: 'job', change: 'none', job };
      }
      case 'list': {
        const { jobs, total, next } = this.#table.page(command.after);
        return { kind: 'page', jobs, total, next: next ?? null };
      }
      case 'delete':
        return { kind: this.#table.remove(command.id) ? 'deleted' : 'unknown', id: command.id };
      default:
        return command satisfies never;
    }
  }

  /** Counts what has ended and starts what is due. Returns after how many milliseconds to call again, if at all. */
  run(): number | undefined {
    this.start(this.due());
    return this.sleepMs();
  }

  /** Counts what has ended. Returns the calls that begin now; each must be given to `start`. */
  due(): readonly JobCall[] {
    return [...this.#count(), ...this.#table.due(this.#options.world.clock.wall())];
  }

  start(calls: readonly JobCall[]): void {
    for (const call of calls) this.#start(call);
  }

  /** After how many milliseconds something is to be done, if at all. */
  sleepMs(): number | undefined {
    if (this.#ended.length > 0) return 0;
    const wakeAt = this.#table.nextWakeAt();
    return wakeAt === undefined
      ? undefined
      : Math.min(Math.max(wakeAt - this.#options.world.clock.wall(), 0), longestSleepMs);
  }

  /**
   * Starts nothing more and waits for the calls in flight, so that the table says how each of them ended; what has not
   * ended after `limits.jobDrainMs` is cut off and counted as failed. No run is repeated by a successor.
   */
  async stop(): Promise<void> {
    const { timers } = this.#options.world;
    this.#table.close();
    const calls = [...this.#running.values()];
    if (calls.length > 0) {
      const bound = Promise.withResolvers<void>();
      const cancel = timers.set(limits.jobDrainMs, bound.resolve);
      await Promise.race([Promise.all(calls.map((call) => call.ended)), bound.promise]);
      cancel();
      this.abort('cut off: the scheduler moved before the target had answered');
      await Promise.all(calls.map((call) => call.ended));
    }
    this.#count();
  }

  /** Cuts off every call in flight. */
  abort(why: string): void {
    for (const call of this.#running.values()) call.abort(why);
  }

  /** The table for a successor; null when it is empty. */
  state(): Uint8Array | null {
    return encodeTable(this.#table);
  }

  /** Takes over a predecessor's table. Throws when it is none. */
  restore(state: Uint8Array): void {
    decodeTable(state, this.#table, this.#options.world.clock.wall());
  }

  #start(call: JobCall): void {
    const { world, host, epoch, wake } = this.#options;
    const body = { id: call.id, run: call.run, epoch: epoch(), host, dueAt: isoTime(call.dueAt) };
    const running = callTarget(call.url, body, world);
    this.#running.set(call, running);
    running.ended.then((outcome) => {
      this.#running.delete(call);
      this.#ended.push([call, outcome]);
      if (this.#ended.length === 1) wake();
    });
  }

  /** Returns the calls that may start because others have ended. */
  #count(): readonly JobCall[] {
    const ended = this.#ended;
    this.#ended = [];
    return ended.flatMap(([call, outcome]) => this.#table.ended(call, outcome));
  }
}
