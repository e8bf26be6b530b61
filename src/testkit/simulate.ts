/** One simulated run: a plan drawn from a seed, a fault phase, and a quiet phase in which everything must settle. */
import { type Fault, type FaultHooks, scheduleFault } from './fault.ts';
import { Prng } from './prng.ts';
import { type Profile, profileNamed } from './profiles.ts';
import type { Program, ProgramRun } from './program.ts';
import type { SimHost } from './sim_host.ts';
import type { DelayProfile } from './sim_path.ts';
import { SimulationError, World } from './sim_world.ts';
import { showValue } from './values.ts';
import type { TraceEntry } from './trace.ts';

/** Options of `simulate`. */
export interface SimulateOptions {
  readonly seed: string | number;
  readonly program: Program;
  /** A registered profile by name, or one of your own. Default 'mixed'. */
  readonly profile?: string | Profile;
  /** Number of hosts; drawn from the profile's range by default. */
  readonly nodes?: number;
  /** Faults instead of the drawn ones. */
  readonly faults?: readonly Fault[];
  /** Indexes of the faults to keep, all others are left out: the replay of a shrunk run. */
  readonly keep?: readonly number[];
  /** Length of the fault phase in virtual milliseconds. Default: the profile's. */
  readonly until?: number;
  /** How long after the last fault everything may take to settle. Default 60 000 virtual milliseconds. */
  readonly settleWithinMs?: number;
  /** See `WorldOptions.drain`; default: what the program says. */
  readonly drain?: 'always' | 'tracked';
  /** Sees each trace entry as it happens. */
  readonly onTrace?: (entry: TraceEntry) => void;
  /** The runs' world, before anything starts: for tests that steer it by hand. */
  readonly onWorld?: (world: World) => void;
}

/** Everything about a run that is drawn, so that it can be run again with fewer faults. */
export interface Plan {
  readonly seed: string;
  readonly profile: Profile;
  readonly hosts: readonly { readonly name: string; readonly address: string; readonly startAt: number | undefined }[];
  readonly delays: DelayProfile;
  readonly faults: readonly Fault[];
  /** All faults that were drawn, before any were left out. */
  readonly drawn: readonly Fault[];
  readonly faultsEnd: number;
  readonly settleWithinMs: number;
}

/** The rule that a run broke. */
export interface SimulationFailure {
  readonly rule: string;
  readonly message: string;
  /** Virtual milliseconds. */
  readonly at: number;
}

/** What came of a run. */
export interface SimulationResult {
  readonly plan: Plan;
  readonly program: string;
  /** Equal for equal runs on every runtime. */
  readonly hash: string;
  readonly steps: number;
  readonly virtualMs: number;
  /** From the last fault until everything was settled. */
  readonly settledAfterMs: number | undefined;
  readonly failure: SimulationFailure | undefined;
  readonly statistics: Readonly<Record<string, number>>;
  readonly trace: readonly TraceEntry[];
}

/** Draws the plan of a seed and runs it. Never rejects for a broken rule: see `failure`. */
export function simulate(options: SimulateOptions): Promise<SimulationResult> {
  return runPlan(drawPlan(options), options.program, options);
}

/**
 * Hosts, delays and faults of a run, drawn from its seed.
 * @throws RangeError for a profile nobody knows
 */
export function drawPlan(options: SimulateOptions): Plan {
  const profile = typeof options.profile === 'object' ? options.profile : profileNamed(options.profile ?? 'mixed');
  const seed = String(options.seed);
  const random = new Prng(`${seed}/plan/${profile.name}`);
  const drawnCount = random.integer(profile.nodes[0], profile.nodes[1]);
  const count = options.nodes ?? drawnCount;
  const loopback = random.chance(profile.loopback);
  const delays = random.pick(profile.delays);
  const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
  const starts = names.map(() => random.between(0, 1_500));
  const from = profile.settleMs;
  const faultsEnd = from + (options.until ?? profile.faultMs);
  const drawn = options.faults ??
    profile.plan({ random, nodes: names, loopback, from, to: faultsEnd }).filter((fault) => fault.at < faultsEnd);
  const late = new Set(drawn.flatMap((fault) => fault.kind === 'start' ? [fault.node] : []));
  const hosts = names.map((name, index) => ({
    name,
    address: loopback ? `127.0.0.1:${9_000 + 7 * index}` : `10.0.0.${index + 1}:2550`,
    startAt: late.has(name) ? undefined : starts[index],
  }));
  const faults = options.keep === undefined ? drawn : drawn.filter((_, index) => options.keep?.includes(index));
  return { seed, profile, hosts, delays, faults, drawn, faultsEnd, settleWithinMs: options.settleWithinMs ?? 60_000 };
}

/** Runs one plan to its end. A broken rule is in the result; nothing is thrown for it. */
export async function runPlan(
  plan: Plan,
  program: Program,
  observers: Pick<SimulateOptions, 'onTrace' | 'onWorld' | 'drain'> = {},
): Promise<SimulationResult> {
  const runner = new Runner(plan, program, observers);
  return await runner.run();
}

/** Longer than the failure detector needs to notice a fault that began just before the quiet phase. */
const stableMs = 5_000;

class Runner {
  #plan: Plan;
  #program: Program;
  #world: World;
  #run: ProgramRun;
  #random: Prng;
  #quiet = false;
  #leaving = new Set<SimHost>();
  #settledAfter: number | undefined;

  constructor(plan: Plan, program: Program, observers: Pick<SimulateOptions, 'onTrace' | 'onWorld' | 'drain'>) {
    this.#plan = plan;
    this.#program = program;
    this.#world = new World({
      seed: plan.seed,
      network: { delays: plan.delays },
      drain: observers.drain ?? program.drain ?? 'always',
    });
    this.#world.trace.onEntry = observers.onTrace;
    this.#random = new Prng(`${plan.seed}/runner`);
    this.#run = program.create({
      world: this.#world,
      profile: plan.profile,
      random: new Prng(`${plan.seed}/program`),
      addresses: plan.hosts.map((host) => host.address),
    });
    this.#world.afterStep = (process) => this.#run.check?.(process);
    this.#world.onProcessEnded = (process, how) => {
      if (how === 'exit' && !this.#leaving.has(process.host)) this.#startLater(process.host, 500, 3_000);
    };
    observers.onWorld?.(this.#world);
  }

  async run(): Promise<SimulationResult> {
    let failure: SimulationFailure | undefined;
    try {
      await this.#phases();
    } catch (error) {
      const rule = error instanceof SimulationError ? error.rule : 'exception';
      const message = error instanceof SimulationError
        ? error.message
        : error instanceof Error
        ? error.stack
        : undefined;
      failure = { rule, message: message ?? showValue(error), at: this.#world.now };
    }
    return {
      plan: this.#plan,
      program: this.#program.name,
      hash: this.#world.trace.hash(),
      steps: this.#world.steps,
      virtualMs: this.#world.now,
      settledAfterMs: this.#settledAfter,
      failure,
      statistics: this.#run.statistics?.() ?? {},
      trace: this.#world.trace.entries(),
    };
  }

  async #phases(): Promise<void> {
    const world = this.#world;
    for (const planned of this.#plan.hosts) {
      const host = world.addHost(planned.name, planned.address, (process) => this.#run.boot(process));
      if (planned.startAt !== undefined) world.at(planned.startAt, () => void world.start(host));
    }
    const hooks: FaultHooks = {
      leave: (host, restartAfterMs) => this.#leave(host, restartAfterMs),
      call: (host, action, argument) => {
        if (host.process !== undefined) this.#run.call?.(host.process, action, argument);
      },
    };
    for (const fault of this.#plan.faults) scheduleFault(world, fault, hooks);
    await world.runUntil(this.#plan.faultsEnd);
    this.#endFaults();
    await this.#settle();
    await this.#run.finish?.();
    world.throwFailure();
  }

  #endFaults(): void {
    const world = this.#world;
    world.record('quiet', '-', 'the faults are over');
    this.#quiet = true;
    world.heal('mixed');
    this.#run.quiesce?.();
    for (const host of world.hosts) {
      while (host.process?.suspended === true) host.process.resume('due');
      if (host.process === undefined && !this.#leaving.has(host)) this.#startLater(host, 0, 500);
    }
  }

  /** Settled means: so for `stableMs` without a break, beginning within the bound. */
  async #settle(): Promise<void> {
    const world = this.#world;
    const start = world.now;
    let since = start;
    let missing: string | undefined;
    while (since - start <= this.#plan.settleWithinMs) {
      await world.advance(50);
      const down = world.hosts.find((host) => host.process === undefined);
      const now = down === undefined ? this.#run.unsettled() : `${down.name} does not run`;
      if (now !== undefined) {
        missing = now;
        since = world.now;
      } else if (world.now - since >= stableMs) {
        this.#settledAfter = since - start;
        return;
      }
    }
    throw new SimulationError('S2', `not settled ${this.#plan.settleWithinMs} ms after the last fault: ${missing}`);
  }

  #leave(host: SimHost, restartAfterMs: number | undefined): void {
    const process = host.process;
    if (process === undefined || this.#leaving.has(host) || this.#run.mayLeave?.(process) === false) return;
    this.#leaving.add(host);
    const again = () => {
      this.#leaving.delete(host);
      if (this.#quiet) this.#startLater(host, 0, 500);
      else if (restartAfterMs !== undefined) this.#startLater(host, restartAfterMs, restartAfterMs);
    };
    process.onExit(again);
    this.#world.schedule(this.#world.now, process, 'turn', () => {
      const gone = () => process.exit();
      process.track(this.#run.leave(process)).then(gone, gone);
    });
  }

  #startLater(host: SimHost, low: number, high: number): void {
    const world = this.#world;
    world.at(world.now + this.#random.between(low, high), () => void world.start(host));
  }
}
