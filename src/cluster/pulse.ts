/**
 * The periodic work of a node, done together. What a node at rest costs is how often it wakes up, hardly what it does then;
 * so once it is awake for one thing it also does what would be due soon, and what goes to one peer travels in one frame.
 * Work comes earlier by this, never later.
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import { fastPaths } from '../fast_paths.ts';

export class Pulse {
  readonly #environment: Environment;
  readonly #works: PeriodicWork[] = [];
  #cancel: Cancel | undefined;
  #armedFor = Infinity;
  #beating = false;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /**
   * `run` says itself when it wants to run again. `early`: the part of its wait that it may be early by. Works run in the
   * order in which they were added.
   */
  work(early: number, run: () => void): PeriodicWork {
    const work = new PeriodicWork(early, run, this.#environment, () => this.#arm());
    this.#works.push(work);
    return work;
  }

  /** This node is awake: does what is due, or will be soon. */
  beat(): void {
    if (fastPaths.pulse) this.#run(this.#environment.clock.now());
  }

  #rung(): void {
    // Clocks round: a hair before the time that was asked for is that time.
    const now = Math.max(this.#armedFor, this.#environment.clock.now());
    this.#armedFor = Infinity;
    this.#cancel = undefined;
    this.#run(now);
  }

  #run(now: number): void {
    if (this.#beating) return;
    this.#beating = true;
    try {
      for (const work of this.#works) if (now >= (fastPaths.pulse ? work.soonestAt : work.dueAt)) work.start();
    } finally {
      this.#beating = false;
      this.#arm();
    }
  }

  #arm(): void {
    if (this.#beating) return;
    let at = Infinity;
    for (const work of this.#works) at = Math.min(at, work.dueAt);
    if (at === this.#armedFor) return;
    this.#cancel?.();
    this.#armedFor = at;
    this.#cancel = at === Infinity
      ? undefined
      : this.#environment.timers.set(Math.max(0, at - this.#environment.clock.now()), () => this.#rung());
  }
}

export class PeriodicWork {
  readonly #early: number;
  readonly #run: () => void;
  readonly #environment: Environment;
  readonly #changed: () => void;
  #dueAt = Infinity;
  #soonestAt = Infinity;
  #stopped = false;

  constructor(early: number, run: () => void, environment: Environment, changed: () => void) {
    this.#early = early;
    this.#run = run;
    this.#environment = environment;
    this.#changed = changed;
  }

  get dueAt(): number {
    return this.#dueAt;
  }

  get soonestAt(): number {
    return this.#soonestAt;
  }

  /** Monotonic; replaces the time set before, earlier or later. */
  at(time: number): void {
    if (this.#stopped || time === this.#dueAt) return;
    const now = this.#environment.clock.now();
    this.#dueAt = time;
    this.#soonestAt = time - Math.max(0, time - now) * this.#early;
    this.#changed();
  }

  start(): void {
    this.#dueAt = this.#soonestAt = Infinity;
    this.#run();
  }

  cancel(): void {
    this.#dueAt = this.#soonestAt = Infinity;
    this.#changed();
  }

  /** For good. */
  stop(): void {
    this.cancel();
    this.#stopped = true;
  }
}
