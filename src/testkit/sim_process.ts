/**
 * One process of the simulated world: an incarnation of a host, with its own drifting clock, timers, randomness and log.
 * It can be suspended (SIGSTOP, an event-loop stall): what is due meanwhile is held and runs late, while its clock goes on.
 */
import type { Cancel, Clock, Environment, Logger, LogLevel, Random, Timers, Turns } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type { QueuedEvent } from './event_queue.ts';
import { Prng } from './prng.ts';
import type { SimHost } from './sim_host.ts';
import { showValue } from './values.ts';
import type { World } from './sim_world.ts';

/** How long a turn of the event loop takes, so that endless turns move time. */
const turnMs = 0.01;
/** Keeps a timer from firing a rounding error before its deadline. */
const timerSlackMs = 1e-6;

/** One life of a simulated process, with clock, timers, randomness and log of its own. */
export class SimProcess {
  readonly world: World;
  readonly host: SimHost;
  /** Counts the processes of this host from 1. */
  readonly incarnation: number;
  readonly name: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly turns: Turns;
  readonly log: Logger;
  /** What the code under test gets. */
  readonly environment: Environment;
  /** Promises of the code under test that have not settled; while there are any, each step drains promise reactions. */
  pendingAsync = 0;
  #settles = false;
  #alive = true;
  #suspensions = 0;
  #resumedAt = -Infinity;
  #held: QueuedEvent<SimProcess>[] = [];
  #bootedAt: number;
  /** For how long the clock has stood still, in all. */
  #slept = 0;
  #clockStoppedAt: number | undefined;
  #clockBase: number;
  #rate: number;
  #onExit: ((how: ExitKind) => void)[] = [];

  constructor(world: World, host: SimHost, incarnation: number, logLevel: LogLevel) {
    this.world = world;
    this.host = host;
    this.incarnation = incarnation;
    this.name = host.name;
    const stream = new Prng(`${world.seed}/${host.name}/${incarnation}`);
    this.#bootedAt = world.now;
    this.#clockBase = stream.between(1, 1e6);
    this.#rate = 1 + stream.between(-1, 1) * world.options.driftPpm / 1e6;
    this.random = stream;
    this.clock = { now: () => this.localNow(), wall: () => Math.floor(world.wallBase + world.now + host.wallOffsetMs) };
    this.timers = { set: (delayMs, run) => this.#setTimer(delayMs, run) };
    this.turns = { schedule: (run) => void world.schedule(world.now + turnMs, this, 'turn', run) };
    this.log = createLogger(world, host.name, logLevel);
    const { clock, timers, random, turns, log } = this;
    let nodes = 0;
    // Random first: where uids stand in order, it should not be that of the names.
    const uid = () => `${stream.uint32().toString(36).padStart(7, '0')}-${host.name}.${incarnation}.${++nodes}`;
    this.environment = { clock, timers, random, turns, log, uid };
  }

  get alive(): boolean {
    return this.#alive;
  }

  get suspended(): boolean {
    return this.#suspensions > 0;
  }

  /** When it went on the last time, on the clock of the world. */
  get resumedAt(): number {
    return this.#resumedAt;
  }

  /** This process's monotonic clock. */
  localNow(): number {
    return this.#clockBase + ((this.#clockStoppedAt ?? this.world.now) - this.#bootedAt - this.#slept) * this.#rate;
  }

  /** Until it is resumed. */
  stopClock(): void {
    this.#clockStoppedAt ??= this.world.now;
  }

  /** Counts `promise` as work of this process until it settles. The result is the promise itself. */
  track<T>(promise: Promise<T>): Promise<T> {
    this.pendingAsync++;
    const settled = () => {
      this.pendingAsync--;
    };
    promise.then(settled, settled);
    return promise;
  }

  /** A promise of the code under test settles in this step: its reactions run before the next one. */
  settles(): void {
    this.#settles = true;
  }

  /** Must promise reactions be drained after the step of this process that has just run? */
  takeAsync(): boolean {
    const settles = this.#settles;
    this.#settles = false;
    return settles || this.pendingAsync > 0;
  }

  /** Called when the process ends, by whatever way. */
  onExit(run: (how: ExitKind) => void): void {
    this.#onExit.push(run);
  }

  /** The process ends by itself, as after `process.exit`. */
  exit(): void {
    this.end('exit');
  }

  end(how: ExitKind): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#held = [];
    this.world.record('exit', this.name, how);
    for (const run of this.#onExit) run(how);
    this.world.network.processEnded(this, how);
    this.world.processEnded(this, how);
  }

  suspend(): void {
    this.#suspensions++;
  }

  /** Lets held events run now: by due time, timers first or sockets first, as `order` says. */
  resume(order: 'due' | 'timers-first' | 'io-first'): void {
    if (this.#suspensions === 0) return;
    this.#suspensions--;
    if (this.#suspensions > 0 || !this.#alive) return;
    this.#resumedAt = this.world.now;
    if (this.#clockStoppedAt !== undefined) this.#slept += this.world.now - this.#clockStoppedAt;
    this.#clockStoppedAt = undefined;
    const held = this.#held;
    this.#held = [];
    const first = order === 'timers-first' ? 'timer' : 'io';
    const sorted = order === 'due'
      ? held
      : [...held.filter((event) => event.kind === first), ...held.filter((event) => event.kind !== first)];
    for (const event of sorted) this.world.requeue(event);
  }

  hold(event: QueuedEvent<SimProcess>): void {
    this.#held.push(event);
  }

  #setTimer(delayMs: number, run: () => void): Cancel {
    const delay = delayMs > 0 ? Math.min(delayMs, limits.timerMs) : 0;
    const lateness = this.world.timerLateness();
    const due = this.world.now + delay / this.#rate + timerSlackMs + lateness;
    return this.#timerAt(due, this.#slept, run);
  }

  /** Timers go by the monotonic clock: one that stood still since they were set makes them later. */
  #timerAt(due: number, slept: number, run: () => void): Cancel {
    let again: Cancel | undefined;
    const event = this.world.schedule(due, this, 'timer', () => {
      if (this.#slept === slept) run();
      else again = this.#timerAt(due + this.#slept - slept, this.#slept, run);
    });
    return () => {
      event.run = undefined;
      again?.();
    };
  }
}

/** `crash`: killed, the kernel resets its connections. `power`: the whole machine goes silent. `exit`: by itself. */
export type ExitKind = 'crash' | 'power' | 'exit';

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'off'];

function createLogger(world: World, node: string, level: LogLevel): Logger {
  const threshold = levels.indexOf(level);
  const at = (name: LogLevel) => (message: string, fields?: Readonly<Record<string, unknown>>): void => {
    if (levels.indexOf(name) < threshold) return;
    world.trace.note(world.now, node, name, () => fields === undefined ? message : `${message} ${printFields(fields)}`);
    if (name === 'error' || name === 'warn') world.logged(node, name, message, fields);
  };
  return { level, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function printFields(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields).map(([key, value]) => `${key}=${showValue(value)}`).join(' ');
}
