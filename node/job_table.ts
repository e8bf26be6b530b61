/**
 * The job scheduler's decisions: which run is due, which tick is skipped, which call may start. Pure: no clock, no timer,
 * no network; `now` is wall-clock milliseconds and every call to make is returned.
 *
 * A schedule is a grid of due times, `start + k · everyMs`, fixed when it is posted. A run is due at a point of the grid; a
 * late scheduler runs the latest point that has passed and counts the earlier ones as skipped. So a planned move whose gap
 * is shorter than the period loses no run, and none is ever caught up in a burst.
 */
import { limits } from '../src/limits.ts';
import { DueQueue } from './due_queue.ts';
import { CallSlots } from './call_slots.ts';
import { type CallOutcome, type Job, type JobCall, type JobView, type KeptJob, newJob, viewOf } from './job.ts';
import { checkDue, type JobDefinition, type Refusal } from './job_definition.ts';

export type PutResult =
  | { readonly kind: 'created' | 'replaced' | 'unchanged'; readonly job: JobView }
  | { readonly kind: 'refused' | 'full'; readonly refusal: Refusal };

export interface Page {
  readonly jobs: readonly JobView[];
  readonly total: number;
  /** The id to ask `after` for the next page; undefined on the last one. */
  readonly next: string | undefined;
}

/**
 * Told of each job whose state must be kept before anybody acts on it: added, replaced, removed (`definition`), or a run
 * begun or ended (`run`). Skipped ticks and passing due times are none: they follow from the schedule and the clock.
 */
export type OnChange = (id: string, what: 'definition' | 'run') => void;

/** A wall clock that is behind the one that made the schedule by more than this gets the next due time moved to itself. */
const clockToleranceMs = 5_000;

export class JobTable {
  readonly #jobs = new Map<string, Job>();
  readonly #dues = new DueQueue();
  readonly #slots = new CallSlots();
  readonly #onChange: OnChange;
  #counter = 0;
  #latest = -Infinity;
  #closed = false;

  constructor(onChange: OnChange = () => {}) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#jobs.size;
  }

  get callsInFlight(): number {
    return this.#slots.inFlight;
  }

  /** Adds a job, or replaces the schedule of the one with that id (its counts go on). The same definition changes nothing. */
  put(definition: JobDefinition, now: number): PutResult {
    const present = this.#jobs.get(definition.id);
    if (present !== undefined && sameSchedule(present.definition, definition)) {
      return { kind: 'unchanged', job: viewOf(present) };
    }
    const refusal = checkDue(definition, now);
    if (refusal !== undefined) return { kind: 'refused', refusal };
    if (present === undefined && this.#jobs.size >= limits.jobs && !this.#evictFinished()) {
      return { kind: 'full', refusal: { field: 'id', rule: `cannot be added: ${limits.jobs} jobs are the limit` } };
    }
    const job = present ?? newJob(definition, ++this.#counter);
    this.#stopWaiting(job);
    if (job.definition.url !== definition.url) job.lane = 'new';
    job.definition = definition;
    job.schedule = ++this.#counter;
    this.#jobs.set(job.id, job);
    if (job.repeatDueAt !== undefined) this.#slots.wait(job);
    this.#onChange(job.id, 'definition');
    this.#schedule(job, 'at' in definition ? definition.at : now + definition.everyMs);
    return { kind: present === undefined ? 'created' : 'replaced', job: viewOf(job) };
  }

  get(id: string): JobView | undefined {
    const job = this.#jobs.get(id);
    return job && viewOf(job);
  }

  remove(id: string): boolean {
    const job = this.#jobs.get(id);
    if (job === undefined) return false;
    this.#stopWaiting(job);
    this.#jobs.delete(id);
    this.#onChange(id, 'definition');
    this.#compact();
    return true;
  }

  /** Jobs in the order of their ids, at most `limits.jobsPerPage`, from the first id greater than `after`. */
  page(after: string | undefined, size: number = limits.jobsPerPage): Page {
    const ids = [...this.#jobs.keys()].filter((id) => after === undefined || id > after).sort();
    const shown = ids.slice(0, size);
    return {
      jobs: shown.map((id) => viewOf(this.#jobs.get(id)!)),
      total: this.#jobs.size,
      next: ids.length > shown.length ? shown.at(-1) : undefined,
    };
  }

  /** When `due` has to be called next; undefined when nothing is scheduled. */
  nextWakeAt(): number | undefined {
    for (let first = this.#dues.peek(); first !== undefined; first = this.#dues.peek()) {
      if (this.#jobs.get(first.id)?.schedule === first.incarnation) return first.at;
      this.#dues.pop();
    }
    return undefined;
  }

  /** Every run that is due at `now` and may start. */
  due(now: number): readonly JobCall[] {
    if (this.#closed) return [];
    if (now < this.#latest - clockToleranceMs) this.#clockWentBack(now);
    this.#latest = now;
    for (let at = this.nextWakeAt(); at !== undefined && at <= now; at = this.nextWakeAt()) {
      this.#tick(this.#jobs.get(this.#dues.pop()!.id)!, now);
    }
    return this.#startWaiting();
  }

  /** A call has ended. Returns what may start now. */
  ended(call: JobCall, outcome: CallOutcome): readonly JobCall[] {
    this.#slots.release(call.lane, call.url);
    const job = this.#jobs.get(call.id);
    if (job?.life === call.life) {
      const ok = outcome.status !== undefined && outcome.status >= 200 && outcome.status < 300;
      if (!ok) job.failures++;
      job.lastStatus = outcome.status;
      job.lastError = outcome.error;
      job.lane = outcome.tookMs > limits.jobSlowMs ? 'slow' : 'good';
      job.running = false;
      this.#onChange(job.id, 'run');
      if (job.waitingDueAt !== undefined) this.#slots.wait(job);
    }
    return this.#startWaiting();
  }

  /** From now on nothing starts: what is due or waiting stays so, for a successor. */
  close(): void {
    this.#closed = true;
  }

  /** A job as it is, for a journal. */
  job(id: string): Readonly<Job> | undefined {
    return this.#jobs.get(id);
  }

  /** The jobs as they are, for a hand-over. */
  jobs(): Iterable<Readonly<Job>> {
    return this.#jobs.values();
  }

  /** Takes over the jobs of a predecessor: nothing runs, due times go on. */
  adopt(jobs: Iterable<KeptJob>, now: number): void {
    for (const taken of jobs) {
      const life = ++this.#counter;
      const job: Job = { ...taken, life, schedule: life, running: false };
      this.#jobs.set(job.id, job);
      if (job.waitingDueAt !== undefined || job.repeatDueAt !== undefined) this.#slots.wait(job);
    }
    this.#clockWentBack(now);
  }

  #schedule(job: Job, at: number | undefined): void {
    job.nextDueAt = at;
    if (at !== undefined) this.#dues.push({ at, id: job.id, incarnation: job.schedule });
    this.#compact();
  }

  #tick(job: Job, now: number): void {
    const { definition } = job;
    if ('at' in definition) {
      this.#schedule(job, undefined);
      this.#wait(job, definition.at);
      return;
    }
    const missed = Math.floor((now - job.nextDueAt!) / definition.everyMs);
    const dueAt = job.nextDueAt! + missed * definition.everyMs;
    job.skipped += missed;
    this.#schedule(job, dueAt + definition.everyMs);
    if (job.running || job.waitingDueAt !== undefined || job.repeatDueAt !== undefined) job.skipped++;
    else this.#wait(job, dueAt);
  }

  #wait(job: Job, dueAt: number): void {
    job.waitingDueAt = dueAt;
    if (!job.running) this.#slots.wait(job);
  }

  #stopWaiting(job: Job): void {
    job.waitingDueAt = undefined;
    this.#slots.stopWaiting(job);
  }

  #startWaiting(): readonly JobCall[] {
    if (this.#closed) return [];
    const calls: JobCall[] = [];
    for (let job = this.#slots.take(); job !== undefined; job = this.#slots.take()) {
      calls.push(begin(job));
      this.#onChange(job.id, 'run');
    }
    return calls;
  }

  /** Puts every due time on the queue again, none further ahead than its period. */
  #clockWentBack(now: number): void {
    this.#dues.clear();
    for (const job of this.#jobs.values()) {
      const { definition } = job;
      if (job.nextDueAt === undefined) continue;
      const ahead = job.nextDueAt - now;
      if ('everyMs' in definition && ahead > definition.everyMs + clockToleranceMs) {
        job.nextDueAt -= Math.floor(ahead / definition.everyMs) * definition.everyMs;
      }
      this.#dues.push({ at: job.nextDueAt, id: job.id, incarnation: job.schedule });
    }
  }

  /** Drops void due times once they are the greater part of the queue. */
  #compact(): void {
    if (this.#dues.size <= 2 * this.#jobs.size + 64) return;
    this.#dues.clear();
    for (const job of this.#jobs.values()) {
      if (job.nextDueAt !== undefined) this.#dues.push({ at: job.nextDueAt, id: job.id, incarnation: job.schedule });
    }
  }

  /** Makes room by dropping the first single run that is over. */
  #evictFinished(): boolean {
    for (const job of this.#jobs.values()) {
      const pending = job.nextDueAt ?? job.waitingDueAt ?? job.repeatDueAt;
      if (pending === undefined && !job.running) {
        this.#jobs.delete(job.id);
        this.#onChange(job.id, 'definition');
        return true;
      }
    }
    return false;
  }
}

/** The run number is given here, and only here: a call is made for it in any case. One that is made again has its own. */
function begin(job: Job): JobCall {
  const dueAt = (job.repeatDueAt ?? job.waitingDueAt)!;
  if (job.repeatDueAt === undefined) {
    job.waitingDueAt = undefined;
    job.runs++;
  }
  job.repeatDueAt = undefined;
  job.running = true;
  job.lastDueAt = dueAt;
  return { id: job.id, life: job.life, url: job.definition.url, run: job.runs, dueAt, lane: job.lane };
}

function sameSchedule(a: JobDefinition, b: JobDefinition): boolean {
  return a.url === b.url && ('at' in a ? 'at' in b && a.at === b.at : 'everyMs' in b && a.everyMs === b.everyMs);
}
