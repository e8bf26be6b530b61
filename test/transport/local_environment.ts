/** Real time and turns, and a log that is kept for inspection. */
import type { Environment } from '../../src/actor/environment.ts';

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface LocalEnvironment extends Environment {
  readonly lines: LogLine[];
}

/** `timerScale` shortens (or lengthens) every timer of the environment. */
export function localEnvironment(timerScale = 1): LocalEnvironment {
  const lines: LogLine[] = [];
  const at = (level: string) => (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
    lines.push({ level, message, fields });
  };
  return {
    lines,
    clock: { now: () => performance.now(), wall: () => Date.now() },
    timers: {
      set(delayMs, run) {
        const timer = setTimeout(run, delayMs * timerScale);
        return () => clearTimeout(timer);
      },
    },
    random: { next: () => Math.random() },
    turns: { schedule: (run) => void setTimeout(run, 0) },
    log: { level: 'debug', debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
  };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until the condition holds; fails loudly after `ms`. */
export async function until(what: string, condition: () => boolean, ms = 5_000): Promise<void> {
  const end = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await pause(5);
  }
}
