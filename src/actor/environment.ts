/**
 * What an actor system and a cluster node take from the world: time, timers, randomness, turns and a log. Everything in
 * `src` reads these from an `Environment` it was given, so that the simulator can run the same code on a virtual clock.
 */

/** Cancels what was scheduled; calling it again, or after the run, does nothing. */
export type Cancel = () => void;

/** Where time comes from. Replaced in tests and simulations. */
export interface Clock {
  /** Monotonic milliseconds. Durations and deadlines use only this. */
  now(): number;
  /** Wall-clock milliseconds since the epoch: shown to people, never compared between nodes. */
  wall(): number;
}

/** One-shot timers. */
export interface Timers {
  /** Runs `run` once after `delayMs` (clamped to 0 … 2^31 − 1). Timers never keep a process alive by themselves. */
  set(delayMs: number, run: () => void): Cancel;
}

/** Where randomness that safety does not rest on comes from. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
}

/** The event loop, as far as actors need it. */
export interface Turns {
  /** Runs `run` in a later turn of the event loop, after sockets and due timers had their chance. */
  schedule(run: () => void): void;
}

/** The least severe line that is written; `off` writes none. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'off';

/**
 * Where log lines go: the usual four methods, so that a logger of yours fits after a few lines. One line per change of
 * state, with its fields beside the text.
 */
export interface Logger {
  readonly level: LogLevel;
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/**
 * What a system has of the world: time, timers, randomness, turns of the event loop, and the log. Replaced in tests and
 * simulations.
 */
export interface Environment {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly turns: Turns;
  readonly log: Logger;
  /** A name for one start of a cluster node, different each time. Default: 128 random bits. For simulations, which replay. */
  readonly uid?: () => string;
}
