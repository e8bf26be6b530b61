/** An address of the simulated world with the machine behind it, on which one process after the other may run. */
import type { Address } from '../transport/contract.ts';
import type { SimProcess } from './sim_process.ts';

/** Starts the program under test in a fresh process. */
export type Boot = (process: SimProcess) => void | Promise<void>;

/** A simulated machine: it runs one process at a time, and keeps its address over restarts. */
export class SimHost {
  readonly index: number;
  readonly name: string;
  readonly address: Address;
  readonly boot: Boot;
  /** The running process, if any. */
  process: SimProcess | undefined = undefined;
  incarnations = 0;
  /** False after a power failure: packets to it vanish. */
  machineUp = true;
  /** New connections are refused until then, as if nobody listened. */
  refusesUntil = -Infinity;
  /** Added to the wall clock; jumps with clock faults. */
  wallOffsetMs = 0;

  constructor(index: number, name: string, address: Address, boot: Boot) {
    this.index = index;
    this.name = name;
    this.address = address;
    this.boot = boot;
  }
}
