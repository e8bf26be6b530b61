/** One instance of a singleton on this node: spawned, watched over its whole life, and asked for its state at the end. */
import type { Actor } from '../actor/actor.ts';
import type { Cancel, Environment } from '../actor/environment.ts';
import type { LocalActorRef } from '../actor/local_ref.ts';
import type { CellOptions, Gate } from '../actor/spawn_options.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { Receipt } from './delivery_host.ts';
import type { Sender } from './in_flight.ts';
import type { ResolvedStart } from './start_options.ts';
import { isWarm } from './warm_hand_over.ts';

export interface InstancePort {
  started(): void;
  /** Once. `planned`: after `stop`; state only if it was collected. */
  /** After a kill, `returned` are the messages that no handler had begun. */
  ended(
    cause: 'planned' | 'died',
    state: Uint8Array | null,
    killed: { returned: readonly Receipt[] } | undefined,
  ): void;
  settled(receipt: Receipt, failed: boolean): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** Path segments of the manager of `typeName`. */
export function managerPath(typeName: string): readonly string[] {
  return ['cluster', 'singleton', `manager-${typeName}`];
}

const managers = '/system/cluster/singleton/manager-';
const instancePath = /^\/system\/cluster\/singleton\/manager-([^/]+)\/instance$/;

/** The singleton whose instance lives at this path. */
export function singletonOfInstance(path: string): string | undefined {
  // Asked for every sender.
  return path.startsWith(managers) ? instancePath.exec(path)?.[1] : undefined;
}

export interface InstanceLife {
  readonly epoch: number;
  readonly gate: Gate;
  readonly warm: Uint8Array | null | undefined;
  /** Why there is no state although there was an instance before: that one crashed, or ended by itself. */
  readonly cold: string | undefined;
  /** Of the lease, under this epoch. Undefined: there is none. */
  readonly tenure: Tenure | undefined;
}

export interface Tenure {
  held(): boolean;
  /** Also long enough for a handler that begins now. */
  mayBegin(): boolean;
}

/** While its term is about to end an instance looks this often whether it has been renewed. */
const renewedMs = 20;

/**
 * Nothing is handled without the lease, whatever else is open. A lost one does not come back to this instance; but a clock
 * that was set and set back at once makes one look lost that is not: so it is looked at once more, after the loss was told.
 */
function leased(gate: Gate, tenure: Tenure | undefined, { turns, timers }: Environment): Gate {
  if (tenure === undefined) return gate;
  const open = (): boolean => tenure.mayBegin() && gate.open();
  const onOpen = (run: () => void): Cancel => {
    let cancelTimer: Cancel | undefined;
    let cancelled = false;
    const look = (): void => {
      if (cancelled) return;
      if (open()) run();
      else if (tenure.held() && !tenure.mayBegin()) cancelTimer = timers.set(renewedMs, look);
    };
    const cancel = gate.onOpen(run);
    turns.schedule(look);
    return () => {
      cancelled = true;
      cancel();
      cancelTimer?.();
    };
  };
  return { open, onOpen };
}

export class Instance {
  readonly epoch: number;
  readonly #start: ResolvedStart<any>;
  readonly #port: InstancePort;
  #ref: LocalActorRef<any> | undefined;
  #collect = false;
  #started = false;
  #stopping = false;
  #ended = false;
  #fenced = false;
  #killed = false;
  readonly #returned: Receipt[] = [];
  #state: Uint8Array | null = null;
  /** The state handed over to this instance, until an actor takes it. */
  #untaken: Uint8Array | null;

  constructor(
    system: ActorSystem,
    start: ResolvedStart<any>,
    life: InstanceLife,
    port: InstancePort,
  ) {
    this.epoch = life.epoch;
    this.#start = start;
    this.#port = port;
    this.#untaken = life.warm ?? null;
    const options: CellOptions = {
      ...start.actorOptions,
      epoch: life.epoch,
      gate: leased(life.gate, life.tenure, system.environment),
      fenced: () => this.#fenced || life.tenure?.held() === false,
      hooks: {
        constructed: (actor, restart) => {
          this.#untaken = null;
          if (!restart) return this.#restore(actor, life);
          // One that has never started is not tried again and again here: the manager's backoff, and in the end another
          // member, are for that.
          if (this.#started) return;
          this.#ref?.stop();
          throw new Error('its first start failed');
        },
        started: () => {
          this.#started = true;
          port.started();
        },
        stopped: (actor) => this.#serialize(actor),
        terminated: () => this.#end(),
        settled: (receipt, failed) => port.settled(receipt as Receipt, failed),
        // Its sender still owns it and sends it to the next instance. Given back before the kill, or by it: both count.
        returned: (_message, _sender, receipt) => void this.#returned.push(receipt as Receipt),
      },
    };
    this.#ref = system.spawnSystem([...managerPath(start.typeName), 'instance'], start.actor, options) as LocalActorRef<
      any
    >;
  }

  deliver(message: unknown, sender: Sender, receipt: Receipt): void {
    this.#ref?.deliver(message, sender, receipt);
  }

  stop(collect: boolean): void {
    this.#collect = collect;
    this.#stopping = true;
    this.#ref?.stop();
  }

  /** Ends it without waiting for user code, which may do nothing more. */
  kill(): void {
    this.#stopping = true;
    this.#fenced = true;
    this.#killed = true;
    this.#ref?.kill();
  }

  #restore(actor: Actor<any>, { warm: state, cold }: InstanceLife): void {
    if (cold !== undefined && isWarm(actor)) this.#port.warn('cold start', { why: cold });
    if (state === undefined || !isWarm(actor)) {
      if (state) this.#port.warn('state was handed over, but the actor has no restoreFromHandOver: cold start');
      return;
    }
    if (state === null || state.length === 0) return;
    try {
      const pending: unknown = actor.restoreFromHandOver(state);
      if (isThenable(pending)) {
        pending.then(
          undefined,
          (error) => this.#port.warn('restoreFromHandOver failed after it had returned', { error }),
        );
        this.#port.warn('restoreFromHandOver must not be async: the actor has started before it was done');
      }
    } catch (error) {
      this.#port.warn('restoreFromHandOver failed: cold start', { error });
    }
  }

  #serialize(actor: Actor<any>): void {
    if (!this.#collect || !isWarm(actor)) return;
    try {
      const state: unknown = actor.serializeForHandOver();
      if (isThenable(state)) state.then(undefined, () => {});
      if (state === null) return;
      if (!(state instanceof Uint8Array)) throw new TypeError('it must return a Uint8Array or null');
      if (state.length === 0) return;
      const limit = this.#start.maxHandOverStateBytes;
      if (state.length > limit) {
        this.#port.warn('the state is over maxHandOverStateBytes: cold start', { bytes: state.length, limit });
        return;
      }
      this.#state = state.slice();
    } catch (error) {
      this.#port.warn('serializeForHandOver failed: cold start', { error });
    }
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fenced = true;
    this.#ref = undefined;
    this.#port.ended(
      this.#stopping ? 'planned' : 'died',
      // Moved on before there was an actor: the next host gets what this one got.
      this.#collect ? this.#state ?? this.#untaken : this.#state,
      this.#killed ? { returned: this.#returned } : undefined,
    );
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
