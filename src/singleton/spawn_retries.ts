/** Attempts with a wait between them that doubles, with jitter, until one succeeds, fails for good, or the bounds are met. */
import { checkOption, OptionsError, rules } from '../actor/options.ts';
import type { Environment } from '../actor/environment.ts';
import { type SpawnError, spawnError } from './spawn_errors.ts';

export interface RetryOptions {
  readonly spawnTimeoutMs: number;
  readonly waitIntervalMs: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** With the defaults. @throws OptionsError */
export function retryOptions(given: Partial<RetryOptions>): RetryOptions {
  const family = 'SpawnOptions';
  const { spawnTimeoutMs = 30_000, waitIntervalMs = 500, retries = 5, signal } = given;
  checkOption(family, 'spawnTimeoutMs', spawnTimeoutMs, rules.durationMs(1));
  checkOption(family, 'waitIntervalMs', waitIntervalMs, rules.durationMs(1));
  checkOption(family, 'retries', retries, rules.integer(1, 1_000));
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new OptionsError(family, 'signal', signal, 'must be an AbortSignal');
  }
  return { spawnTimeoutMs, waitIntervalMs, retries, signal };
}

export interface Retried {
  /** For messages: "the spawn of 'jobs'". */
  readonly what: string;
  readonly environment: Environment;
  attempt(done: (error: SpawnError | undefined) => void): void;
}

/** Rejects with the last attempt's error; with `timeout` when none has ended, with `aborted` when the signal says so. */
export function retrying(retried: Retried, options: RetryOptions): Promise<void> {
  const { clock, timers, random } = retried.environment;
  const { spawnTimeoutMs, waitIntervalMs, retries, signal } = options;
  const deadline = clock.now() + spawnTimeoutMs;
  return new Promise((resolve, reject) => {
    let settled = false;
    let last: SpawnError | undefined;
    const settle = (error: SpawnError | undefined): void => {
      if (settled) return;
      settled = true;
      cancel();
      signal?.removeEventListener('abort', abort);
      if (error) reject(error);
      else resolve();
    };
    const abort = (): void => settle(spawnError('aborted', `${retried.what} was aborted`));
    const cancel = timers.set(spawnTimeoutMs, () => {
      settle(last ?? spawnError('timeout', `${retried.what} did not succeed within ${spawnTimeoutMs} ms`));
    });
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) return abort();
    const attempt = (count: number): void => {
      if (settled) return;
      retried.attempt((error) => {
        if (!error) return settle(undefined);
        last = error;
        const wait = Math.min(2 ** 31 - 1, waitIntervalMs * 2 ** (count - 1) * (1 + 0.2 * random.next()));
        if (!error.retryable || count >= retries || clock.now() + wait >= deadline) return settle(error);
        timers.set(wait, () => attempt(count + 1));
      });
    };
    attempt(1);
  });
}
