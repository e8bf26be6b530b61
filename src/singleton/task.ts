/** "Run this once in the cluster", in one call. */
import { Actor } from '../actor/actor.ts';
import type { ActorRef } from '../actor/ref.ts';
import { SingletonKey } from './key.ts';
import type { SingletonRegistry } from './registry.ts';
import { parseSchedule, type Schedule, type TaskSchedule } from './schedule.ts';
import type { StartSingletonSettings } from './start_options.ts';
import type { WarmHandOver } from './warm_hand_over.ts';

/** What one run of a `singletonTask` is told. */
export interface TaskRun {
  /** When it was due, wall clock, milliseconds: the same on every node, so that it can name the run. */
  readonly dueAt: number;
  /** Of the instance that runs it: lets a store refuse a run of an earlier host. */
  readonly epoch: number;
}

/** Due times that passed this recently, during a planned move, are run late; older ones are skipped. */
const graceMs = 5_000;

class TaskActor extends Actor<'due'> implements WarmHandOver {
  readonly #schedule: Schedule;
  readonly #run: (run: TaskRun) => void | Promise<void>;
  /** The last due time that was run or skipped. */
  #last: number | undefined;

  constructor(schedule: Schedule, run: (run: TaskRun) => void | Promise<void>) {
    super();
    this.#schedule = schedule;
    this.#run = run;
  }

  get #wall(): number {
    return this.context.system.environment.clock.wall();
  }

  override preStart(): void {
    const now = this.#wall;
    // Handed over: the run that fell into the gap is caught up with. Otherwise the past is nobody's.
    this.#last = this.#last === undefined ? now : Math.max(this.#last, now - graceMs);
    this.#arm();
  }

  #arm(): void {
    const due = this.#schedule.next(this.#last ?? this.#wall);
    if (due !== undefined) {
      this.context.timers.startSingle('due', 'due', Math.max(0, Math.min(due - this.#wall, 60_000)));
    }
  }

  override async onReceive(): Promise<void> {
    const now = this.#wall;
    let due = this.#schedule.next(this.#last ?? now);
    if (due === undefined || due > now) return this.#arm();
    for (let later = this.#schedule.next(due); later !== undefined && later <= now; later = this.#schedule.next(due)) {
      due = later;
    }
    this.#last = due;
    try {
      await this.#run({ dueAt: due, epoch: this.context.epoch });
    } catch (error) {
      this.log.error('a run failed', { dueAt: due, error });
    }
    // What became due meanwhile was missed.
    this.#last = Math.max(due, this.#wall);
    this.#arm();
  }

  serializeForHandOver(): Uint8Array {
    return new TextEncoder().encode(String(this.#last ?? 0));
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#last = Number(new TextDecoder().decode(state));
  }
}

/**
 * Runs `run` at each due time on exactly one node of the cluster: call it with the same name and schedule on every node.
 *
 * A run that is still going on when the next is due makes that one be missed; missed ones are skipped, never caught up in a
 * burst. Over a planned move every due time is run once (a run in progress is waited for); after a crash of the host the run
 * that was in progress may be missing or half done, and is not repeated: what must happen at least once checks `dueAt` itself.
 * A `run` that throws is logged and has run.
 * @throws OptionsError for a bad name or schedule
 */
export function singletonTask(
  cluster: { readonly singleton: SingletonRegistry },
  name: string,
  schedule: TaskSchedule,
  run: (run: TaskRun) => void | Promise<void>,
  settings: Pick<StartSingletonSettings<never>, 'role' | 'stopTimeoutMs' | 'lease'> = {},
): ActorRef<never> {
  const parsed = parseSchedule(schedule);
  const key = SingletonKey.of<'due'>(name);
  const ref = cluster.singleton.start<'due'>(
    key,
    () => new TaskActor(parsed, run),
    settings as StartSingletonSettings<'due'>,
  );
  return ref as ActorRef<never>;
}
