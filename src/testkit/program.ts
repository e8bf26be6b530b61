/** What the simulator runs on its hosts: the code under test, the load on it and the rules it must keep. */
import type { Prng } from './prng.ts';
import type { Profile } from './profiles.ts';
import type { SimProcess } from './sim_process.ts';
import type { World } from './sim_world.ts';

/** What a program gets for one run. */
export interface RunContext {
  readonly world: World;
  readonly profile: Profile;
  /** Randomness of the program's own choices (settings, load). */
  readonly random: Prng;
  /** Addresses of all hosts, in order. */
  readonly addresses: readonly string[];
}

/** What runs on the hosts of a simulation. */
export interface Program {
  readonly name: string;
  /** See `WorldOptions.drain`; default `always`. */
  readonly drain?: 'always' | 'tracked';
  /** Called once per run, before any process starts. */
  create(context: RunContext): ProgramRun;
}

/** A program in one run. */
export interface ProgramRun {
  /** Starts the program in a fresh process. A rejected promise ends the run. */
  boot(process: SimProcess): void | Promise<void>;
  /** False: a `leave` fault is skipped. */
  mayLeave?(process: SimProcess): boolean;
  /** Leaves gracefully; the process ends when the promise settles. */
  leave(process: SimProcess): Promise<void>;
  /** An action that a `call` fault names. */
  call?(process: SimProcess, action: string, argument: string): void;
  /**
   * Called after every step: throws a `SimulationError` when a rule is broken. `process`: whose step it was; undefined for
   * the world's own.
   */
  check?(process: SimProcess | undefined): void;
  /** The faults are over: stop the load that keeps the run from settling. */
  quiesce?(): void;
  /** What is still missing before the cluster may be called settled, for people; undefined when it is settled. */
  unsettled(): string | undefined;
  /** The last checks, after the run has been settled for a while. */
  finish?(): void | Promise<void>;
  statistics?(): Readonly<Record<string, number>>;
}
