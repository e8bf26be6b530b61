/** The part of an actor's runtime that runs the user's hooks, and tells others that the actor has ended. */
import { isThenable, phases } from './cell_core.ts';
import { CellFamily } from './cell_family.ts';
import type { Cancel } from './environment.ts';
import { errorFields } from './logger.ts';
import { running } from './ref.ts';
import type { TerminationCause } from './watch.ts';

type HookDone = (error: unknown, failed: boolean) => void;

export abstract class CellHookRunner extends CellFamily {
  get isTerminated(): boolean {
    return this.phase === phases.terminated;
  }

  onTermination(run: (cause: TerminationCause) => void): Cancel {
    if (this.isTerminated) {
      run(this.seldom.stopCause);
      return () => {};
    }
    // One function may be registered twice, and each registration counts.
    const listener = (cause: TerminationCause): void => run(cause);
    const listeners = this.own.endListeners ??= new Set();
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }

  protected announceEnd(): void {
    const { endListeners, stopCause } = this.seldom;
    if (endListeners === undefined) return;
    for (const listener of endListeners) this.callHook('termination', () => listener(stopCause));
    endListeners.clear();
  }

  /** Runs a hook that may be async; the cell is busy until it settles. */
  protected callUser(run: () => unknown, done: HookDone): void {
    let result: unknown;
    if (this.fence !== undefined) {
      running.fence = this.fence;
      running.path = this.path;
    }
    try {
      result = run();
    } catch (error) {
      running.fence = undefined;
      if (!this.isTerminated) done(error, true);
      return;
    }
    running.fence = undefined;
    if (!isThenable(result)) {
      if (!this.isTerminated) done(undefined, false);
      return;
    }
    this.busy = !this.isTerminated;
    const generation = this.seldom.hookGeneration;
    const settle = (error: unknown, failed: boolean): void => {
      if (generation !== this.seldom.hookGeneration || this.isTerminated) return;
      this.busy = false;
      done(error, failed);
      this.wake();
    };
    Promise.resolve(result).then(() => settle(undefined, false), (error: unknown) => settle(error, true));
  }

  protected logHook(hook: string, error: unknown): void {
    this.system.log.error(`${hook} of ${this.path} failed`, { actor: this.path, ...errorFields(error) });
  }

  /** The one timer of the cell's life: a start that takes long, or the wait before a restart. */
  protected setLifeTimer(delayMs: number, run: () => void): void {
    this.clearLifeTimer();
    this.own.lifeTimer = this.system.environment.timers.set(delayMs, run);
  }

  protected clearLifeTimer(): void {
    if (this.seldom.lifeTimer === undefined) return;
    this.seldom.lifeTimer();
    this.own.lifeTimer = undefined;
  }
}
