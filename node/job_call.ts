/** One call to a job's target: POST, no redirects, bounded in time and in what is read of the answer. */
import type { Clock, Timers } from '../src/actor/environment.ts';
import { limits } from '../src/limits.ts';
import { readBounded } from '../src/wire/bounded_body.ts';
import type { CallOutcome } from './job.ts';

/** The JSON body a target receives. */
export interface JobBody {
  readonly id: string;
  /** Counts from 1 per job and goes on over planned moves. */
  readonly run: number;
  /** Of the scheduler instance that calls; only grows. A target may refuse a lower one than it has seen. */
  readonly epoch: number;
  /** Address of the node that calls. */
  readonly host: string;
  /** ISO 8601. */
  readonly dueAt: string;
}

export interface CallingWorld {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

export interface RunningCall {
  /** Never rejects. */
  readonly ended: Promise<CallOutcome>;
  /** Cuts the call off; it ends at once with `why` as its error. */
  readonly abort: (why: string) => void;
}

/** Calls the target. Whatever happens, the outcome is there within `limits.jobTimeoutMs`. */
export function callTarget(url: string, body: JobBody, world: CallingWorld): RunningCall {
  const startedAt = world.clock.now();
  const controller = new AbortController();
  const settled = Promise.withResolvers<CallOutcome>();
  let status: number | undefined;
  const end = (error: string | undefined) => {
    cancelTimeout();
    // Once there is a status, it is the outcome, however the rest of the answer ends.
    const why = status === undefined ? error : undefined;
    settled.resolve({ status, error: why, tookMs: world.clock.now() - startedAt });
  };
  // The outcome does not wait for the abort to take effect: an aborted fetch may settle late or never.
  const abort = (why: string) => {
    end(why);
    controller.abort();
  };
  const cancelTimeout = world.timers.set(
    limits.jobTimeoutMs,
    () => abort(`no answer within ${limits.jobTimeoutMs} ms`),
  );
  const request = async () => {
    const response = await world.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: controller.signal,
    });
    status = response.status;
    // To its end, so that the connection can be used again, but not further than the bound.
    await readBounded(response.body, limits.jobAnswerBytes);
    end(undefined);
  };
  request().catch((error) => end(describe(error)));
  return { ended: settled.promise, abort };
}

function describe(error: unknown): string {
  const { message = String(error), code, cause } = (error ?? {}) as {
    message?: string;
    code?: string;
    cause?: unknown;
  };
  const inner = cause as { message?: string; code?: string } | undefined;
  const text = `${code ?? ''} ${inner?.code ?? ''} ${inner?.message ?? ''} ${message}`;
  if (/refused/i.test(text)) return 'connection refused';
  if (/reset|EPIPE|socket hang up|other side closed/i.test(text)) return 'connection lost';
  if (/ENOTFOUND|EAI_AGAIN|lookup|dns/i.test(text)) return 'host not found';
  return (inner?.message ?? message).replace(/\s+/g, ' ').slice(0, 200);
}
