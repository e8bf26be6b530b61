/**
 * Which due runs may call their targets now. Pure. The calls in flight are bounded; so that dead targets never hold back
 * the others, slow jobs and new ones may take only a part of them, and the jobs of one URL only a part of that part.
 */
import { limits } from '../src/limits.ts';
import type { Job, Lane } from './job.ts';

interface Bounds {
  readonly total: number;
  readonly perTarget: number;
}

const bounds: Readonly<Record<Lane, Bounds>> = {
  good: { total: limits.jobConcurrency, perTarget: limits.jobConcurrency },
  new: { total: limits.jobNewConcurrency, perTarget: limits.jobNewPerTarget },
  slow: { total: limits.jobSlowConcurrency, perTarget: limits.jobSlowPerTarget },
};

const lanes: readonly Lane[] = ['good', 'new', 'slow'];

export class CallSlots {
  readonly #waiting: Record<Lane, WaitingLine> = {
    good: new WaitingLine(),
    new: new WaitingLine(),
    slow: new WaitingLine(),
  };
  readonly #inFlight: Record<Lane, Map<string, number>> = { good: new Map(), new: new Map(), slow: new Map() };
  readonly #totals: Record<Lane, number> = { good: 0, new: 0, slow: 0 };

  get inFlight(): number {
    return lanes.reduce((sum, lane) => sum + this.#totals[lane], 0);
  }

  wait(job: Job): void {
    this.#waiting[job.lane].add(job);
  }

  /** Must be called before the lane or the URL of a job changes. */
  stopWaiting(job: Job): void {
    this.#waiting[job.lane].remove(job);
  }

  /** A job that may call now; it counts as in flight from here on. */
  take(): Job | undefined {
    for (const lane of lanes) {
      const { total, perTarget } = bounds[lane];
      if (this.inFlight >= limits.jobConcurrency) return undefined;
      if (this.#totals[lane] >= total) continue;
      const counts = this.#inFlight[lane];
      const job = this.#waiting[lane].take((target) => (counts.get(target) ?? 0) < perTarget);
      if (job === undefined) continue;
      const target = targetOf(job.definition.url);
      counts.set(target, (counts.get(target) ?? 0) + 1);
      this.#totals[lane]++;
      return job;
    }
    return undefined;
  }

  /** The call to `url` that was begun in `lane` has ended. */
  release(lane: Lane, url: string): void {
    const counts = this.#inFlight[lane];
    const target = targetOf(url);
    const left = (counts.get(target) ?? 0) - 1;
    if (left > 0) counts.set(target, left);
    else counts.delete(target);
    this.#totals[lane]--;
  }
}

/** Jobs that wait, by target; targets take turns, and the jobs of each go in the order in which they came. */
class WaitingLine {
  readonly #byTarget = new Map<string, Map<string, Job>>();

  add(job: Job): void {
    const target = targetOf(job.definition.url);
    const jobs = this.#byTarget.get(target);
    if (jobs === undefined) this.#byTarget.set(target, new Map([[job.id, job]]));
    else jobs.set(job.id, job);
  }

  remove(job: Job): void {
    const target = targetOf(job.definition.url);
    const jobs = this.#byTarget.get(target);
    if (jobs?.delete(job.id) && jobs.size === 0) this.#byTarget.delete(target);
  }

  take(allowed: (target: string) => boolean): Job | undefined {
    for (const [target, jobs] of this.#byTarget) {
      if (!allowed(target)) continue;
      const job = jobs.values().next().value!;
      jobs.delete(job.id);
      this.#byTarget.delete(target);
      if (jobs.size > 0) this.#byTarget.set(target, jobs);
      return job;
    }
    return undefined;
  }
}

/** A URL without its query: jobs that differ only in parameters call one target. */
function targetOf(url: string): string {
  return url.split(/[?#]/, 1)[0]!;
}
