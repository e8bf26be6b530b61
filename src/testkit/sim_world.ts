/**
 * The virtual world: one event queue, one virtual time in milliseconds, seeded randomness, hosts with processes, and a
 * network between them. A run is a pure function of its seed and of what is called on the world.
 */
import type { LogLevel } from '../actor/environment.ts';
import { drainPromises } from './drain.ts';
import { type EventKind, EventQueue, QueuedEvent } from './event_queue.ts';
import { Prng } from './prng.ts';
import { type Boot, SimHost } from './sim_host.ts';
import { type HealMode, SimNetwork } from './sim_network.ts';
import { type ExitKind, SimProcess } from './sim_process.ts';
import { showValue } from './values.ts';
import { Trace } from './trace.ts';
import { partition } from './sim_partition.ts';
import type { CrashOptions, PartitionOptions, PauseOptions, ResumeOrder, WorldOptions } from './world_options.ts';

/** A broken rule: what invariants throw and what ends a run. `rule` names it ('S1', 'livelock', 'uncaught', …). */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
  readonly rule: string;

  constructor(rule: string, message: string, options?: ErrorOptions) {
    super(`${rule}: ${message}`, options);
    this.rule = rule;
  }
}

/** Events without the clock moving by a millisecond, after which a run is called a livelock. */
const livelockEvents = 200_000;

/** A simulated world: hosts, processes and a network on one virtual clock. Equal seeds give equal runs. */
export class World {
  readonly seed: string;
  readonly options: { readonly driftPpm: number; readonly timerLatenessMs: number };
  readonly trace: Trace;
  readonly network: SimNetwork;
  readonly hosts: SimHost[] = [];
  /** Wall milliseconds at virtual time 0. */
  readonly wallBase = 1_790_000_000_000;
  /** Virtual milliseconds since the start of the run: the one global time. */
  now = 0;
  /** Events run so far. */
  steps = 0;
  /** Called after each step and its promise reactions, with the process that ran. Throwing ends the run. */
  afterStep: ((process: SimProcess | undefined) => void) | undefined;
  /** Called when an event of a process throws. Default: the run fails. */
  onUncaught: (process: SimProcess, error: unknown) => void;
  /** Called for warnings and errors that a process logs. */
  onLog:
    | ((node: string, level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void)
    | undefined;
  /** Called when a process has ended. */
  onProcessEnded: ((process: SimProcess, how: ExitKind) => void) | undefined;
  #queue = new EventQueue<SimProcess>();
  #order = 0;
  #lateness: Prng;
  #logLevel: LogLevel;
  /** See `WorldOptions.drain`. */
  drain: 'always' | 'tracked';
  #stepped: SimProcess | undefined;
  #lastProgress = 0;
  #stepsAtProgress = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: WorldOptions) {
    this.seed = String(options.seed);
    this.options = { driftPpm: options.driftPpm ?? 200, timerLatenessMs: options.timerLatenessMs ?? 1 };
    this.trace = new Trace(options.traceKept);
    this.network = new SimNetwork(this, options.network ?? {});
    this.#lateness = new Prng(`${this.seed}/timers`);
    this.#logLevel = options.logLevel ?? 'info';
    this.drain = options.drain ?? 'tracked';
    this.onUncaught = (process, error) => {
      this.fail(
        new SimulationError('uncaught', `exception in ${process.name}: ${printStack(error)}`, { cause: error }),
      );
    };
  }

  host(name: string): SimHost {
    const host = this.hosts.find((candidate) => candidate.name === name);
    if (host === undefined) throw new RangeError(`World: there is no host ${name}`);
    return host;
  }

  /** Packets between the two groups vanish from now on; for ever, or for `forMs`. See `heal`. */
  partition(from: readonly string[], to: readonly string[], options: PartitionOptions = {}): void {
    partition(this, from, to, options);
  }

  /** Ends every partition and slowness; what links held comes through (`deliver`, the default) or they are reset. */
  heal(mode: HealMode = 'deliver'): void {
    this.network.mendAll(mode);
  }

  /** Kills the process on a host, or its whole machine. Nothing when none is running. */
  crash(node: string, options: CrashOptions = {}): void {
    const host = this.host(node);
    host.process?.end(options.power === true ? 'power' : 'crash');
    if (options.restartAfterMs !== undefined) this.at(this.now + options.restartAfterMs, () => void this.start(host));
  }

  /** Suspends the process on a host, as SIGSTOP does; for `forMs`, or until `resume`. */
  pause(node: string, options: PauseOptions = {}): void {
    const process = this.host(node).process;
    if (process === undefined) return;
    process.suspend();
    if (options.clockStops === true) process.stopClock();
    if (options.forMs !== undefined) this.at(this.now + options.forMs, () => process.resume(options.order ?? 'due'));
  }

  resume(node: string, order: ResumeOrder = 'due'): void {
    this.host(node).process?.resume(order);
  }

  /** A fresh process at the same address: the running one, if any, is killed first. */
  restart(node: string): SimProcess | undefined {
    this.crash(node);
    return this.start(this.host(node));
  }

  /** Multiplies the delays between two hosts; for `forMs`, or until `heal`. */
  slow(a: string, b: string, factor: number, forMs?: number): void {
    const paths = [this.network.path(this.host(a), this.host(b)), this.network.path(this.host(b), this.host(a))];
    for (const path of paths) path.slowness = factor;
    if (forMs !== undefined) {
      this.at(this.now + forMs, () => {
        for (const path of paths) path.slowness = 1;
      });
    }
  }

  /** Adds a host; its program starts with `start`. */
  addHost(name: string, address: string, boot: Boot): SimHost {
    const host = new SimHost(this.hosts.length, name, address, boot);
    this.hosts.push(host);
    this.network.addHost(host);
    return host;
  }

  /** Starts a fresh process on the host; nothing when one is running. */
  start(host: SimHost): SimProcess | undefined {
    if (host.process !== undefined) return undefined;
    host.machineUp = true;
    host.incarnations++;
    const process = new SimProcess(this, host, host.incarnations, this.#logLevel);
    host.process = process;
    this.record('start', host.name, `incarnation ${host.incarnations}`);
    this.schedule(this.now, process, 'turn', () => {
      const booted = host.boot(process);
      if (booted instanceof Promise) {
        process.track(booted).catch((error) => {
          if (process.alive) this.#failed(process, error);
        });
      }
    });
    return process;
  }

  /** Puts an event into the queue. Cancel it by setting its `run` to undefined. */
  schedule(time: number, owner: SimProcess | undefined, kind: EventKind, run: () => void): QueuedEvent<SimProcess> {
    const event = new QueuedEvent(time < this.now ? this.now : time, this.#order++, owner, kind, run);
    this.#queue.push(event);
    return event;
  }

  /** Puts a held event back, to run now and after everything that is due already. */
  requeue(event: QueuedEvent<SimProcess>): void {
    event.time = this.now;
    event.order = this.#order++;
    event.admit = undefined;
    this.#queue.push(event);
  }

  /** Runs `run` at a virtual time, outside any process. */
  at(time: number, run: () => void): void {
    this.schedule(time, undefined, 'world', run);
  }

  timerLateness(): number {
    return this.options.timerLatenessMs * this.#lateness.next();
  }

  /** Counts for the hash and is kept for the report. */
  record(kind: string, node: string, detail: string): void {
    this.trace.mixFloat(this.now);
    this.trace.mixText(kind);
    this.trace.mixText(detail);
    this.trace.note(this.now, node, kind, detail);
  }

  logged(node: string, level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.onLog?.(node, level, message, fields);
  }

  processEnded(process: SimProcess, how: ExitKind): void {
    if (process.host.process === process) process.host.process = undefined;
    this.onProcessEnded?.(process, how);
  }

  /** Runs every event due until `time`, and leaves the clock there. */
  async runUntil(time: number): Promise<void> {
    for (;;) {
      const next = this.#queue.peek();
      if (next === undefined || next.time > time) break;
      if (this.#step()) await drainPromises();
      this.#afterStep();
    }
    if (time > this.now) this.now = time;
    this.throwFailure();
  }

  advance(ms: number): Promise<void> {
    return this.runUntil(this.now + ms);
  }

  /** Runs until `condition` holds (checked after each step); false when it did not within `withinMs`. */
  async advanceUntil(condition: () => boolean, withinMs: number): Promise<boolean> {
    const end = this.now + withinMs;
    while (!condition()) {
      const next = this.#queue.peek();
      if (next === undefined || next.time > end) {
        this.now = end;
        this.throwFailure();
        return condition();
      }
      if (this.#step()) await drainPromises();
      this.#afterStep();
    }
    return true;
  }

  /** Ends the run with this error at the end of the present step. The first one wins. */
  fail(error: unknown): void {
    if (this.#failure === undefined) this.#failure = { error };
  }

  /** Throws what `fail` was called with first; for what is checked when no step follows any more. */
  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #afterStep(): void {
    this.throwFailure();
    this.afterStep?.(this.#stepped);
  }

  /** Runs one event; true when promise reactions must be drained after it. */
  #step(): boolean {
    const event = this.#queue.pop();
    const run = event?.run;
    if (event === undefined || run === undefined) return false;
    if (event.time > this.now) this.now = event.time;
    if (event.admit !== undefined && !event.admit()) return false;
    const owner = event.owner;
    if (owner !== undefined) {
      if (!owner.alive) return false;
      if (owner.suspended) {
        owner.hold(event);
        return false;
      }
    }
    event.run = undefined;
    this.#stepped = owner;
    this.steps++;
    this.#checkProgress();
    if (owner === undefined) {
      run();
      return this.drain === 'always';
    }
    this.trace.mixFloat(this.now);
    this.trace.mix(owner.host.index);
    try {
      run();
    } catch (error) {
      this.#failed(owner, error);
    }
    return this.drain === 'always' || owner.takeAsync();
  }

  #failed(process: SimProcess, error: unknown): void {
    if (error instanceof SimulationError) return this.fail(error);
    this.record('uncaught', process.name, showValue(error));
    this.onUncaught(process, error);
  }

  #checkProgress(): void {
    if (this.now >= this.#lastProgress + 1) {
      this.#lastProgress = this.now;
      this.#stepsAtProgress = this.steps;
    } else if (this.steps - this.#stepsAtProgress > livelockEvents) {
      throw new SimulationError(
        'livelock',
        `${livelockEvents} events within a millisecond at ${this.now.toFixed(3)} ms`,
      );
    }
  }
}

function printStack(error: unknown): string {
  return error instanceof Error ? error.stack ?? String(error) : showValue(error);
}
