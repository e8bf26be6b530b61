/** The ordered end of a node: named phases, one after the other, each with its tasks. After Akka's coordinated shutdown. */
import type { Cancel, Environment, Timers } from './environment.ts';
import { errorFields } from './logger.ts';
import { checkOption, OptionsError, rules } from './options.ts';

/** In the order in which they run. */
export const shutdownPhases = [
  'before-service-unbind',
  'service-unbind',
  'service-requests-done',
  'service-stop',
  'before-cluster-shutdown',
  'cluster-leave-preparation',
  'cluster-leave',
  'cluster-exiting',
  'cluster-exiting-done',
  'cluster-shutdown',
  'before-actor-system-terminate',
  'actor-system-terminate',
] as const;

/** A step of a coordinated shutdown, by name; they run in the order of `shutdownPhases`. */
export type ShutdownPhase = (typeof shutdownPhases)[number];

/** Work of one phase of a shutdown; the phase waits for its promise, within its time. What it throws is logged. */
export type ShutdownTask = () => void | PromiseLike<unknown>;

export interface ShutdownLimits {
  /** For each phase unless it has its own; default 5000. */
  readonly phaseTimeoutMs?: number;
  /** For everything; default 60 000. Phases that are left then are started and not waited for. */
  readonly totalTimeoutMs?: number;
}

/** Timers that can keep the process alive, so that it does not end in the middle of its own shutdown. */
export interface HoldingTimers extends Timers {
  hold?(): Cancel;
}

interface Registered {
  readonly name: string;
  readonly task: ShutdownTask;
}

/** Runs once, however often it is asked for. Tasks that are not async take no turn of the event loop. */
export class CoordinatedShutdown {
  private readonly environment: Environment;
  private readonly tasks = new Map<ShutdownPhase, Set<Registered>>();
  private readonly timeouts = new Map<ShutdownPhase, number>();
  private readonly phaseTimeoutMs: number;
  private readonly totalTimeoutMs: number;
  private deadline = 0;
  private running: Promise<void> | undefined = undefined;
  private why: string | undefined = undefined;
  private phase: ShutdownPhase | undefined = undefined;
  /** Phases that ran out of time. */
  timedOut: readonly ShutdownPhase[] = [];

  constructor(environment: Environment, options: ShutdownLimits = {}) {
    checkOption('ShutdownLimits', 'phaseTimeoutMs', options.phaseTimeoutMs, rules.durationMs(0));
    checkOption('ShutdownLimits', 'totalTimeoutMs', options.totalTimeoutMs, rules.durationMs(0));
    this.environment = environment;
    this.phaseTimeoutMs = options.phaseTimeoutMs ?? 5_000;
    this.totalTimeoutMs = options.totalTimeoutMs ?? 60_000;
  }

  /** Why it was started; undefined before. */
  get reason(): string | undefined {
    return this.why;
  }

  /** The phase that is running, or the last one; undefined before the start. */
  get currentPhase(): ShutdownPhase | undefined {
    return this.phase;
  }

  /**
   * Adds a task to a phase; the tasks of a phase run side by side. Returns what removes it. A task for a phase that has
   * begun or is over never runs, which is logged.
   */
  addTask(phase: ShutdownPhase, name: string, task: ShutdownTask): Cancel {
    checkPhase(phase);
    if (this.phase !== undefined && shutdownPhases.indexOf(phase) <= shutdownPhases.indexOf(this.phase)) {
      this.environment.log.warn(`shutdown task '${name}' comes too late for phase '${phase}'`);
    }
    const registered: Registered = { name, task };
    const tasks = this.tasks.get(phase) ?? new Set<Registered>();
    this.tasks.set(phase, tasks.add(registered));
    return () => {
      tasks.delete(registered);
    };
  }

  /** @throws OptionsError */
  setPhaseTimeout(phase: ShutdownPhase, timeoutMs: number): void {
    checkPhase(phase);
    checkOption('CoordinatedShutdown', 'timeoutMs', timeoutMs ?? null, rules.durationMs(0));
    this.timeouts.set(phase, timeoutMs);
  }

  phaseTimeout(phase: ShutdownPhase): number {
    return this.timeouts.get(phase) ?? this.phaseTimeoutMs;
  }

  /** Starts, or joins the run that has started. Never rejects: what fails or takes too long is logged. */
  run(reason: string): Promise<void> {
    if (this.running !== undefined) return this.running;
    this.why = reason;
    this.deadline = this.environment.clock.now() + this.totalTimeoutMs;
    const release = (this.environment.timers as HoldingTimers).hold?.();
    let finished = (): void => {};
    this.running = new Promise<void>((resolve) => {
      finished = resolve;
    });
    this.runFrom(0, () => {
      release?.();
      finished();
    });
    return this.running;
  }

  private runFrom(index: number, finished: () => void): void {
    const phase = shutdownPhases[index];
    if (phase === undefined) return finished();
    this.phase = phase;
    this.runPhase(phase, [...(this.tasks.get(phase) ?? [])], () => this.runFrom(index + 1, finished));
  }

  private runPhase(phase: ShutdownPhase, tasks: readonly Registered[], next: () => void): void {
    const pending = new Set(tasks);
    let over = false;
    let timer: Cancel | undefined = undefined;
    const settle = (task: Registered): void => {
      pending.delete(task);
      if (pending.size > 0 || over) return;
      over = true;
      timer?.();
      next();
    };
    if (tasks.length === 0) return next();
    for (const registered of tasks) this.runTask(phase, registered, () => settle(registered));
    if (over) return;
    const left = Math.max(0, this.deadline - this.environment.clock.now());
    timer = this.environment.timers.set(Math.min(this.phaseTimeout(phase), left), () => {
      if (over) return;
      over = true;
      this.timedOut = [...this.timedOut, phase];
      const names = [...pending].map((task) => task.name).join(', ');
      this.environment.log.warn(`shutdown phase '${phase}' ran out of time and is left behind: ${names}`, { phase });
      next();
    });
  }

  private runTask(phase: ShutdownPhase, { name, task }: Registered, settled: () => void): void {
    const failed = (error: unknown): void => {
      this.environment.log.error(`shutdown task '${name}' of phase '${phase}' failed`, errorFields(error));
      settled();
    };
    try {
      const result = task();
      if (result === undefined || typeof result.then !== 'function') settled();
      else result.then(settled, failed);
    } catch (error) {
      failed(error);
    }
  }
}

function checkPhase(phase: ShutdownPhase): void {
  const expected = rules.oneOf(...shutdownPhases);
  if (!expected.accepts(phase)) throw new OptionsError('CoordinatedShutdown', 'phase', phase, expected.rule);
}
