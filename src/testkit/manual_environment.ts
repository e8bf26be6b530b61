/** An environment that a test moves by hand: nothing happens by itself, and everything happens in a fixed order. */
import type { Cancel, Environment, Logger, LogLevel } from '../actor/environment.ts';
import { LevelLogger } from '../actor/logger.ts';

export interface LogEntry {
  readonly level: Exclude<LogLevel, 'off'>;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | undefined;
}

interface ManualTimer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Turns run in one go before it is taken for an endless loop. */
const maxTurns = 1_000_000;
/** How many levels of promises `settle` lets pass before it looks for new turns. */
const microtaskRounds = 32;

/**
 * A clock that stands still until `advance`, timers that fire only then, and turns that wait for `runTurns`. Actors run in
 * turns only. Where handlers are async, `await settle()` or `await elapse(ms)`, which also let promises go on.
 */
export class ManualEnvironment implements Environment {
  readonly clock = { now: (): number => this.time, wall: (): number => this.wallStart + this.time };
  readonly timers = { set: (delayMs: number, run: () => void): Cancel => this.setTimer(delayMs, run) };
  readonly turns = { schedule: (run: () => void): void => void this.turnQueue.push(run) };
  readonly random: { next(): number };
  readonly log: Logger;
  /** Everything logged, at any level. */
  readonly logged: LogEntry[] = [];
  private time = 0;
  private readonly wallStart: number;
  private turnQueue: (() => void)[] = [];
  private readonly pending = new Set<ManualTimer>();
  private order = 0;

  /** The same seed gives the same random numbers. */
  constructor(options: { readonly seed?: number; readonly wallStart?: number } = {}) {
    this.wallStart = options.wallStart ?? 1_700_000_000_000;
    this.random = seededRandom(options.seed ?? 1);
    this.log = new LevelLogger('debug', (level, message, fields) => {
      this.logged.push({ level, message, fields });
    });
  }

  /** Runs queued turns, and those they queue, until none is left. */
  runTurns(): void {
    for (let count = 0; this.turnQueue.length > 0; count += 1) {
      if (count >= maxTurns) throw new Error(`still busy after ${maxTurns} turns`);
      this.turnQueue.shift()?.();
    }
  }

  /** Runs turns, then each timer due within `ms` at its time and the turns it causes. */
  advance(ms: number): void {
    const end = this.time + ms;
    this.runTurns();
    for (let timer = this.nextDue(end); timer !== undefined; timer = this.nextDue(end)) {
      this.fire(timer);
      this.runTurns();
    }
    this.time = end;
  }

  /** Moves the clock without running anything: a suspended process. What became due runs with the next `advance`. */
  jump(ms: number): void {
    this.time += ms;
  }

  /** Lets turns and promises go on until neither has anything left to do. */
  async settle(): Promise<void> {
    do {
      this.runTurns();
      for (let round = 0; round < microtaskRounds; round += 1) await Promise.resolve();
    } while (this.turnQueue.length > 0);
  }

  /** Like `advance`, and lets promises go on in between. */
  async elapse(ms: number): Promise<void> {
    const end = this.time + ms;
    await this.settle();
    for (let timer = this.nextDue(end); timer !== undefined; timer = this.nextDue(end)) {
      this.fire(timer);
      await this.settle();
    }
    this.time = end;
  }

  /** Timers that are set. */
  get timerCount(): number {
    return this.pending.size;
  }

  /** Turns that are queued. */
  get turnCount(): number {
    return this.turnQueue.length;
  }

  /** Messages logged at a level. */
  logsAt(level: LogEntry['level']): readonly string[] {
    return this.logged.filter((entry) => entry.level === level).map((entry) => entry.message);
  }

  private setTimer(delayMs: number, run: () => void): Cancel {
    const clamped = Math.min(2 ** 31 - 1, Math.max(0, delayMs || 0));
    const timer: ManualTimer = { at: this.time + clamped, order: this.order += 1, run };
    this.pending.add(timer);
    return () => {
      this.pending.delete(timer);
    };
  }

  private nextDue(end: number): ManualTimer | undefined {
    let next: ManualTimer | undefined;
    for (const timer of this.pending) {
      if (timer.at > end) continue;
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer;
    }
    return next;
  }

  private fire(timer: ManualTimer): void {
    this.pending.delete(timer);
    this.time = Math.max(this.time, timer.at);
    timer.run();
  }
}

/** Numbers in [0, 1) that depend on the seed alone (a 32-bit mixing generator). */
export function seededRandom(seed: number): { next(): number } {
  let state = seed >>> 0;
  return {
    next: () => {
      state = (state + 0x9e3779b9) >>> 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
    },
  };
}
