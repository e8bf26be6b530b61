/** The environment of production: the one place where time, timers and randomness of the real world enter. */
import { coreLimits as limits } from '../limits.ts';
import type { HoldingTimers } from './coordinated_shutdown.ts';
import type { Environment, Logger } from './environment.ts';
import { consoleLogger } from './logger.ts';
import { realTurns } from './real_turns.ts';

/** An environment on the real clock. `log` defaults to the console at level `warn`. */
export function realEnvironment(log: Logger = consoleLogger()): Environment {
  const now = (): number => performance.now();
  const timers: HoldingTimers = {
    set(delayMs, run) {
      // Longer delays than this, and those that are no number, would fire at once.
      const clamped = Math.min(limits.timerMs, Math.max(0, delayMs || 0));
      const due = now() + clamped;
      // Runtimes drop fractions, and count from a time that they read before the present callback: a timer may fire early.
      // Whoever then finds his deadline not yet reached would wait for ever.
      const fire = (): void => {
        const left = due - now();
        if (left > 0) timer = quietTimer(fire, Math.ceil(left));
        else run();
      };
      // Rounded up at once: a timer that fires early costs a second one, and a wake-up.
      let timer = quietTimer(fire, Math.ceil(clamped));
      return () => clearTimeout(timer);
    },
    hold() {
      const timer = setInterval(() => {}, limits.timerMs);
      return () => clearInterval(timer);
    },
  };
  return {
    clock: { now, wall: () => Date.now() },
    timers,
    random: { next: nextRandom },
    turns: realTurns(now),
    log,
  };
}

/** One that does not keep the process alive. */
function quietTimer(run: () => void, delayMs: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(run, delayMs);
  (timer as unknown as { unref?: () => void }).unref?.();
  return timer;
}

const pool = new Uint32Array(256);
let used = pool.length;

/** 53 random bits as a number in [0, 1), from the runtime's secure source. */
function nextRandom(): number {
  if (used + 2 > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const high = (pool[used] ?? 0) >>> 5;
  const low = (pool[used + 1] ?? 0) >>> 6;
  used += 2;
  return (high * 2 ** 26 + low) / 2 ** 53;
}

/** 128 random bits as 32 hexadecimal digits: names one start of a process. */
export function uid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
