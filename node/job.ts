/** One job of the table, and how it is shown. */
import type { JobDefinition } from './job_definition.ts';

/**
 * Jobs share a bounded number of calls in flight. A job is `new` until its first call has ended, then `good` or `slow` by
 * how long the last one took (see `CallSlots`).
 */
export type Lane = 'good' | 'new' | 'slow';

/** How a call ended. `status` is undefined when no answer came; `error` says why then. */
export interface CallOutcome {
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly tookMs: number;
}

export interface Job {
  readonly id: string;
  /** Number of this job's creation: a result of a deleted job is not counted for a later one of the same name. */
  readonly life: number;
  definition: JobDefinition;
  /** Number of its present schedule: due times of a replaced one are void. */
  schedule: number;
  /** Wall-clock milliseconds; the grid is fixed when the schedule is posted and goes on over moves. */
  nextDueAt: number | undefined;
  /** Runs begun; also the number of the last one. */
  runs: number;
  failures: number;
  skipped: number;
  lastStatus: number | undefined;
  lastError: string | undefined;
  lastDueAt: number | undefined;
  lane: Lane;
  running: boolean;
  /** Due, and waiting for a free call. */
  waitingDueAt: number | undefined;
  /** A crashed predecessor began run `runs` for this due time, and nobody knows its end: it is made again, with its number. */
  repeatDueAt: number | undefined;
}

/** What outlives an instance of the scheduler. */
export type KeptJob = Omit<Job, 'life' | 'schedule' | 'running'>;

/** One call to make. */
export interface JobCall {
  readonly id: string;
  readonly life: number;
  readonly url: string;
  readonly run: number;
  readonly dueAt: number;
  readonly lane: Lane;
}

/** A job as `GET /jobs` shows it; times are ISO 8601 texts. */
export interface JobView {
  readonly id: string;
  readonly url: string;
  readonly everyMs?: number;
  readonly at?: string;
  readonly runs: number;
  readonly failures: number;
  readonly skipped: number;
  readonly running: boolean;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly lastDue: string | null;
  readonly nextDue: string | null;
}

export function newJob(definition: JobDefinition, life: number): Job {
  return {
    id: definition.id,
    life,
    definition,
    schedule: life,
    nextDueAt: undefined,
    runs: 0,
    failures: 0,
    skipped: 0,
    lastStatus: undefined,
    lastError: undefined,
    lastDueAt: undefined,
    lane: 'new',
    running: false,
    waitingDueAt: undefined,
    repeatDueAt: undefined,
  };
}

export function viewOf(job: Job): JobView {
  const { definition } = job;
  return {
    id: job.id,
    url: definition.url,
    ...('at' in definition ? { at: isoTime(definition.at) } : { everyMs: definition.everyMs }),
    runs: job.runs,
    failures: job.failures,
    skipped: job.skipped,
    running: job.running,
    lastStatus: job.lastStatus ?? null,
    lastError: job.lastError ?? null,
    lastDue: job.lastDueAt === undefined ? null : isoTime(job.lastDueAt),
    nextDue: nextDueOf(job),
  };
}

function nextDueOf(job: Job): string | null {
  const due = job.repeatDueAt ?? job.waitingDueAt ?? job.nextDueAt;
  return due === undefined ? null : isoTime(due);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
