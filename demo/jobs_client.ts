/** Asks nodes over HTTP, with a deadline on everything. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface JobSpec {
  readonly id: string;
  readonly everyMs: number;
  readonly url: string;
}

/** Repeats `attempt` until it gives a value that is not undefined; an attempt that throws counts as undefined. */
export async function until<T>(
  what: string,
  deadlineMs: number,
  attempt: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const startedAt = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const value = await attempt();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() - startedAt > deadlineMs) {
      const why = last === undefined ? '' : ` (last error: ${last instanceof Error ? last.message : String(last)})`;
      throw new Error(`${what}: not within ${deadlineMs} ms${why}`);
    }
    await sleep(10);
  }
}

/**
 * Posts a job to the node at `url`, again until it is taken: posting the same job again changes nothing. A request that
 * the dying host took with it is given up after half a second.
 */
export function postJob(url: string, job: JobSpec, deadlineMs: number): Promise<true> {
  return until<true>(`POST /jobs ${job.id}`, deadlineMs, async () => {
    const response = await fetch(new URL('/jobs', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(job),
      signal: AbortSignal.timeout(500),
    });
    const text = await response.text();
    if (response.status === 201) return true as const;
    throw new Error(`${response.status} ${text}`);
  });
}

export async function isReady(url: string): Promise<boolean> {
  const response = await fetch(new URL('/ready', url), { signal: AbortSignal.timeout(1_000) });
  await response.body?.cancel();
  return response.status === 200;
}

/** Ticks that the scheduler says it skipped, over all jobs. */
export async function skippedTicks(url: string): Promise<number> {
  const response = await fetch(new URL('/jobs', url), { signal: AbortSignal.timeout(5_000) });
  const { jobs } = await response.json() as { jobs: { skipped: number }[] };
  return jobs.reduce((sum, job) => sum + job.skipped, 0);
}
