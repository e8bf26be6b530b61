/** What a world and its verbs take. */
import type { LogLevel } from '../actor/environment.ts';
import type { HealMode, NetworkOptions } from './sim_network.ts';

/** What a process that wakes up runs first. */
export type ResumeOrder = 'due' | 'timers-first' | 'io-first';

/** How a simulated process stands still. */
export interface PauseOptions {
  readonly forMs?: number;
  /** What runs first after waking: what was due first (default), all timers, or all that sockets hold. */
  readonly order?: ResumeOrder;
  /** The process's monotonic clock stands still too, as on a machine that sleeps. Default false. */
  readonly clockStops?: boolean;
}

/** How a simulated process crashes. */
export interface CrashOptions {
  /** The machine goes silent instead of resetting its connections. */
  readonly power?: boolean;
  readonly restartAfterMs?: number;
}

/** How two groups of hosts are cut off from each other. */
export interface PartitionOptions {
  /** Only packets from the first group to the second vanish. */
  readonly oneWay?: boolean;
  /** The single paths fail (and heal) up to this many milliseconds apart. Default 0. */
  readonly skewMs?: number;
  /** Heals by itself after this long. */
  readonly forMs?: number;
  readonly heal?: HealMode;
}

/** Options of a `World`. Only the seed is required. */
export interface WorldOptions {
  readonly seed: string | number;
  /** Clock rates differ from true time by at most this many parts per million. Default 200. */
  readonly driftPpm?: number;
  /** Timers fire up to this late, in milliseconds. Default 1. */
  readonly timerLatenessMs?: number;
  readonly network?: Partial<NetworkOptions>;
  /** Level of the nodes' logs, which go into the trace. Default 'info'. */
  readonly logLevel?: LogLevel;
  /** Entries of the trace kept per node for reports. Default 400. */
  readonly traceKept?: number;
  /** `always`: promise reactions are drained after each step; `tracked` (default): only for processes with tracked promises. */
  readonly drain?: 'always' | 'tracked';
}
