/** The part of an actor's runtime that has failures judged, and carries the verdict out. */
import { phases, signal } from './cell_core.ts';
import { CellHookRunner } from './cell_hooks.ts';
import { ActorFailed } from './event_stream.ts';
import { errorFields, messageKind } from './logger.ts';
import { judge, type SupervisorStrategy, type Verdict } from './supervision.ts';
import type { TerminationCause } from './watch.ts';

/** Bits of what an actor is and has been. */
export const trait = {
  /** Part of the system's own tree, not to be stopped by users, and nobody above to escalate to. */
  guardian: 1,
  /** There has been an instance. */
  constructed: 2,
  /** An instance has started well. */
  started: 4,
  /** The present instance has. */
  up: 8,
} as const;

export abstract class CellSupervision extends CellHookRunner {
  protected traits = 0;
  /** Rounded up: small integers need no memory of their own. */
  protected runningSince = 0;

  get guardian(): boolean {
    return (this.traits & trait.guardian) !== 0;
  }

  private get isUp(): boolean {
    return (this.traits & trait.up) !== 0;
  }

  abstract stop(cause: TerminationCause, error?: unknown): void;

  protected override failed(error: unknown, message: unknown): void {
    if (this.phase >= phases.stopping) return;
    const started = this.isUp;
    const now = this.system.environment.clock.now();
    const strategy = this.strategy();
    const top = this.parent?.guardian !== false;
    const failure = { error, started, top, healthyMs: started ? now - this.runningSince : 0 };
    const verdict = judge(strategy, this.seldom.record, failure, now, this.system.environment.random.next());
    this.own.record = verdict.record;
    this.phase = phases.suspended;
    this.report(error, message, verdict);
    const together = strategy.scope === 'all-for-one' ? this.siblings() : [];
    switch (verdict.directive) {
      case 'resume':
        return this.goOn();
      case 'restart':
        this.own.failure = { error, message };
        this.own.restartDelayMs = verdict.delayMs;
        this.signals |= signal.restart;
        for (const sibling of together) sibling.restartWith(error);
        return;
      case 'stop':
        for (const sibling of together) sibling.stop('failure', error);
        return this.stop('failure', error);
      case 'escalate':
        return this.parent?.childEscalated(this, error);
      default:
        return verdict.directive satisfies never;
    }
  }

  private strategy(): SupervisorStrategy {
    if (this.options.supervisor !== undefined) return this.options.supervisor;
    try {
      return this.parent?.actor?.supervisor() ?? this.system.defaultSupervisor;
    } catch (error) {
      this.system.log.error(`supervisor() of ${this.parent?.path} threw`, errorFields(error));
      return this.system.defaultSupervisor;
    }
  }

  private report(error: unknown, message: unknown, verdict: Verdict): void {
    const kind = message === undefined ? undefined : messageKind(message);
    const where = kind === undefined ? (this.isUp ? 'with a child' : 'while starting') : `on message '${kind}'`;
    const why = verdict.why === undefined ? '' : ` (${verdict.why})`;
    const fields = { actor: this.path, messageKind: kind, directive: verdict.directive, ...errorFields(error) };
    this.system.log.error(`${this.path} failed ${where}, ${verdict.directive}${why}: ${fields.error}`, fields);
    this.system.eventStream.publish(new ActorFailed(this.path, error, kind, verdict.directive));
  }

  /** A sibling under the same all-for-one strategy failed. */
  protected restartWith(error: unknown): void {
    if (this.phase < phases.starting || this.phase > phases.suspended) return;
    this.own.failure = { error, message: undefined };
    this.own.restartDelayMs = 0;
    this.signals |= signal.restart;
    this.wake();
  }

  /** A child's failure becomes this actor's own; until that is decided the child stays suspended. */
  protected childEscalated(child: CellSupervision, error: unknown): void {
    if (this.phase >= phases.restarting) return child.stop('failure', error);
    if ((this.signals & signal.childFailed) === 0) this.own.childError = error;
    this.signals |= signal.childFailed;
    this.wake();
  }

  protected goOn(): void {
    this.phase = phases.running;
    for (const child of this.childCells()) {
      if (child.phase !== phases.suspended || child.signals !== 0) continue;
      if (child.isUp) child.goOn();
      else child.stop('failure', this.seldom.childError);
    }
    this.wake();
  }
}
