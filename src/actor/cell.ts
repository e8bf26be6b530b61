/**
 * The runtime of one actor: its life from start to end. What it inherits: messages
 * (`cell_core.ts`), children (`cell_family.ts`), hooks (`cell_hooks.ts`) and failures (`cell_supervision.ts`).
 */
import { limits } from '../limits.ts';
import { type Actor, type ActorOrFactory, construct } from './actor.ts';
import { phases, signal } from './cell_core.ts';
import { type ChildKey, refOf } from './cell_family.ts';
import { CellSupervision, trait } from './cell_supervision.ts';
import { ActorContext } from './context.ts';
import { StartTimeoutError } from './errors.ts';
import { noInbox } from './inbox.ts';
import type { LocalActorRef } from './local_ref.ts';
import { checkName } from './names.ts';
import { type CellOptions, checkSpawnOptions } from './spawn_options.ts';
import type { ActorSystem } from './system.ts';
import type { TerminationCause } from './watch.ts';

export class Cell extends CellSupervision {
  readonly ref: LocalActorRef<any>;
  private readonly source: ActorOrFactory<any>;
  private context: ActorContext<any> | undefined = undefined;

  constructor(
    system: ActorSystem,
    parent: Cell | undefined,
    key: ChildKey,
    source: ActorOrFactory<any>,
    options: CellOptions,
    guardian: boolean,
  ) {
    super(system, parent, key, options);
    this.source = source;
    if (guardian) this.traits = trait.guardian;
    this.ref = refOf(this);
    this.ref.fence = this.fence;
    this.signals = signal.start;
    this.wake();
  }

  protected override createChild(
    source: ActorOrFactory<any>,
    key: ChildKey,
    options: CellOptions,
    guardian: boolean,
  ): Cell {
    return new Cell(this.system, this, key, source, options, guardian);
  }

  /** The child of this name, whatever actor it is; a guardian is made where there is none. */
  guardianChild(name: string, source: ActorOrFactory<any>): Cell {
    const existing = this.childCell(name);
    if (existing !== undefined && existing.phase < phases.stopping) return existing;
    checkName(name);
    return this.adopt(source, name, checkSpawnOptions(undefined), true);
  }

  /** Nothing is being handled, and nothing waits that could be. */
  get isQuiet(): boolean {
    if (this.busy || this.signals !== 0) return false;
    return this.phase !== phases.running || this.queued === 0 || this.options.gate?.open() === false;
  }

  /** Asks for an orderly end; the first cause counts. */
  stop(cause: TerminationCause, error?: unknown): void {
    if (this.phase >= phases.stopping || (this.signals & signal.stop) !== 0) return;
    this.own.stopCause = cause;
    this.own.stopError = error;
    this.signals |= signal.stop;
    // A start that never settles must not hold up everybody above. Who owns the actor (hooks) has `kill` for that.
    if (this.phase === phases.starting && this.busy && this.options.hooks === undefined) {
      this.setLifeTimer(limits.startAbandonMs, () => this.abandonStart());
    }
    this.wake();
  }

  kill(): void {
    if (this.isTerminated) return;
    const { own } = this;
    own.killed = true;
    this.fence ??= alwaysFenced;
    this.ref.fence = this.fence;
    this.busy = false;
    own.hookGeneration += 1;
    this.phase = phases.stopping;
    this.signals = 0;
    own.stopCause = 'kill';
    this.quiesce();
    this.discardMail();
    for (const child of this.childCells()) child.kill();
    const { actor } = this;
    if (actor !== undefined) this.callHook('stopped', () => this.options.hooks?.stopped?.(actor, 'kill'));
    this.end();
  }

  protected override handleSignals(): void {
    const { signals } = this;
    if ((signals & signal.stop) !== 0 && this.phase < phases.stopping) {
      this.signals = 0;
      return this.beginStop();
    }
    switch (this.phase) {
      case phases.created:
        this.signals = 0;
        return this.start(false);
      case phases.running:
      case phases.suspended:
        this.signals = 0;
        if ((signals & signal.restart) !== 0) this.beginRestart();
        else if ((signals & signal.childFailed) !== 0 && this.phase === phases.running) {
          this.failed(this.seldom.childError, undefined);
        }
        return;
      case phases.restarting:
        this.signals = 0;
        if (this.seldom.awaitsChildren && !this.hasChildren) this.endOldInstance();
        else if ((signals & signal.again) !== 0) this.start(true);
        return;
      case phases.stopping:
        this.signals = 0;
        if (this.seldom.awaitsChildren && !this.hasChildren) this.runPostStop();
        return;
      default:
        this.signals = 0;
    }
  }

  // Start

  private start(restart: boolean): void {
    this.phase = phases.starting;
    this.traits &= ~trait.up;
    const again = (this.traits & trait.constructed) !== 0;
    const { hooks, startTimeoutMs } = this.options;
    const context = new ActorContext<any>(this);
    this.context = context;
    let actor: Actor<any>;
    try {
      actor = construct(this.source, context);
      hooks?.constructed?.(actor, again);
    } catch (error) {
      context.revoke();
      return this.failed(error, undefined);
    }
    this.actor = actor;
    this.traits |= trait.constructed;
    const { error } = this.seldom.failure;
    const hook = restart && again ? () => actor.postRestart(error) : () => actor.preStart();
    this.callUser(hook, (startError, failed) => {
      this.clearLifeTimer();
      if (failed) this.failed(startError, undefined);
      else this.startSucceeded();
    });
    if (this.busy && startTimeoutMs !== undefined) {
      this.setLifeTimer(startTimeoutMs, () => {
        this.dropStart();
        this.failed(new StartTimeoutError(this.path, startTimeoutMs), undefined);
        this.wake();
      });
    }
  }

  private startSucceeded(): void {
    this.phase = phases.running;
    this.runningSince = Math.ceil(this.system.environment.clock.now());
    const { traits } = this;
    this.traits |= trait.started | trait.up;
    if ((traits & trait.started) !== 0) return;
    this.callHook('started', () => this.options.hooks?.started?.());
  }

  /** Cuts off an instance whose start has not settled. */
  private dropStart(): void {
    this.own.hookGeneration += 1;
    this.busy = false;
    this.context?.revoke();
    this.actor = undefined;
  }

  private abandonStart(): void {
    this.system.log.error(`${this.path} is stopped although its start has not settled`, { actor: this.path });
    this.dropStart();
    this.wake();
  }

  // Restart: children first, so that their names are free, then the old instance, then the new one

  private beginRestart(): void {
    this.phase = phases.restarting;
    this.quiesce();
    this.unstashAll();
    this.stopChildren(() => this.endOldInstance());
  }

  private endOldInstance(): void {
    if (this.seldom.awaitsChildren) this.own.awaitsChildren = false;
    const { actor } = this;
    if (actor === undefined) return this.replaceInstance();
    const { error, message } = this.seldom.failure;
    this.callUser(() => actor.preRestart(error, message), (hookError, failed) => {
      if (failed) this.logHook('preRestart', hookError);
      this.replaceInstance();
    });
  }

  private replaceInstance(): void {
    this.context?.revoke();
    this.setIdle(undefined);
    this.actor = undefined;
    const again = (): void => {
      this.signals |= signal.again;
      this.wake();
    };
    // At once means with the next step of the loop, so that endless restarts yield like anything else.
    if (this.seldom.restartDelayMs > 0) this.setLifeTimer(this.seldom.restartDelayMs, again);
    else again();
  }

  // Stop: children first, then postStop

  private beginStop(): void {
    this.phase = phases.stopping;
    this.quiesce();
    this.discardMail();
    this.stopChildren(() => this.runPostStop());
  }

  private runPostStop(): void {
    if (this.seldom.awaitsChildren) this.own.awaitsChildren = false;
    const { actor } = this;
    if (actor === undefined) return this.end();
    this.callUser(() => actor.postStop(), (error, failed) => {
      if (failed) this.logHook('postStop', error);
      this.callHook('stopped', () => this.options.hooks?.stopped?.(actor, this.seldom.stopCause));
      this.end();
    });
  }

  private stopChildren(none: () => void): void {
    for (const child of this.childCells()) child.stop('stop');
    if (!this.hasChildren) return none();
    this.own.awaitsChildren = true;
  }

  private end(): void {
    if (this.isTerminated) return;
    this.phase = phases.terminated;
    this.clearLifeTimer();
    this.context?.revoke();
    this.stopWaiting();
    this.actor = undefined;
    this.behavior = undefined;
    // Not given back: a handler that was abandoned may still hold it.
    this.inbox = noInbox;
    this.parent?.forgetChild(this);
    this.callHook('terminated', () => this.options.hooks?.terminated?.(this.seldom.stopCause, this.seldom.stopError));
    this.announceEnd();
    this.parent?.childEnded();
  }

  private childEnded(): void {
    if (!this.seldom.awaitsChildren || this.hasChildren) return;
    this.signals |= signal.childrenGone;
    this.wake();
  }

  /** Ends what belongs to the present instance and could still send messages. */
  private quiesce(): void {
    this.clearLifeTimer();
    this.context?.quiesce();
    this.stopWaiting();
    this.behavior = undefined;
  }
}

const alwaysFenced = (): boolean => true;
