/**
 * The one loop that runs the actors of a system.
 *
 * Latency against fairness: a message told while the loop is idle starts to be handled in the microtask after the present
 * callback (some tens of nanoseconds later), not in a later turn (microseconds, or a timer's granularity). But microtasks
 * starve timers and sockets, and so do messages that several runtimes deliver by the thousand within one turn. So the first
 * microtask of a turn also books a visit in the next turn through `Environment.turns`; until that visit has come, actors
 * share one budget of `turnBudgetMs`, and what exceeds it waits for the visit. Nothing is booked while nothing is queued.
 */
import { fastPaths } from '../fast_paths.ts';
import type { Clock, Turns } from './environment.ts';
import { RingQueue } from './ring_queue.ts';

/** Turns that can also run something at the end of the present callback. Without it everything waits for a turn. */
export interface SoonTurns extends Turns {
  soon?(run: () => void): void;
}

/** Something that handles messages when it is its turn. */
export interface Runnable {
  /** Set while it is in the queue or running; owned by the dispatcher. */
  scheduled: boolean;
  /** How many messages it may handle in one go; owned by the dispatcher. */
  quota: number;
  /** Handles up to `quota` messages; true when it could go on at once. Never throws. */
  run(quota: number): boolean;
}

/** Milliseconds of actor work in one turn of the event loop. */
const turnBudgetMs = 2;
/** A clock that stands still (virtual time) must not make a turn endless. */
const turnRuns = 20_000;
export const firstQuota = 8;
const maxQuota = 256;
/** Actors run between two readings of the clock, at most. */
const maxRunsPerCheck = 32;

export class Dispatcher {
  private readonly clock: Clock;
  private readonly turns: SoonTurns;
  private readonly soon: boolean;
  private readonly queue = new RingQueue<Runnable>();
  /** A drain is booked or running. */
  private armed = false;
  /** A visit in a later turn is booked. */
  private booked = false;
  private turnStartedAt = 0;
  private runsPerCheck = 1;

  constructor(clock: Clock, turns: SoonTurns) {
    this.clock = clock;
    this.turns = turns;
    this.soon = fastPaths.soon && typeof turns.soon === 'function';
  }

  /** Nothing is waiting to run. */
  get idle(): boolean {
    return this.queue.length === 0;
  }

  schedule(cell: Runnable): void {
    if (cell.scheduled) return;
    cell.scheduled = true;
    this.queue.push(cell);
    if (!this.armed) this.arm();
  }

  private arm(): void {
    this.armed = true;
    if (!this.soon) return this.book();
    if (this.booked && this.clock.now() - this.turnStartedAt >= turnBudgetMs) return;
    this.turns.soon?.(this.drainSoon);
    if (this.booked) return;
    this.turnStartedAt = this.clock.now();
    this.book();
  }

  private book(): void {
    if (this.booked) return;
    this.booked = true;
    this.turns.schedule(this.visit);
  }

  private readonly visit = (): void => {
    this.booked = false;
    if (this.queue.length === 0) return;
    this.armed = true;
    this.turnStartedAt = this.clock.now();
    this.drain();
  };

  private readonly drainSoon = (): void => {
    if (this.queue.length > 0) this.drain();
    else this.armed = false;
  };

  private drain(): void {
    let checkedAt = this.clock.now();
    let runs = 0;
    let unchecked = 0;
    for (let cell = this.queue.shift(); cell !== undefined; cell = this.queue.shift()) {
      const more = cell.run(fastPaths.quotas ? cell.quota : 1);
      if (more) this.queue.push(cell);
      else cell.scheduled = false;
      runs += 1;
      unchecked += 1;
      if (!more && unchecked < this.runsPerCheck) continue;
      const now = this.clock.now();
      this.learn(now - checkedAt, more ? cell : undefined);
      if (now - this.turnStartedAt >= turnBudgetMs || runs >= turnRuns) break;
      checkedAt = now;
      unchecked = 0;
    }
    // What is left waits for the next turn, and `armed` stays set until then.
    if (this.queue.length > 0) this.book();
    else this.armed = false;
  }

  /** Reads the clock often among slow handlers and seldom among quick ones. */
  private learn(tookMs: number, busy: Runnable | undefined): void {
    if (tookMs < 0.1) this.runsPerCheck = Math.min(maxRunsPerCheck, this.runsPerCheck * 2);
    else if (tookMs > 0.5) this.runsPerCheck = 1;
    if (busy === undefined) return;
    if (tookMs < 0.25) busy.quota = Math.min(maxQuota, busy.quota * 2);
    else if (tookMs > 1) busy.quota = Math.max(1, busy.quota >> 2);
  }
}
