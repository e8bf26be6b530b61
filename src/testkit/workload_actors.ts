/** The singletons of the simulator's load. Each reports its life and what it handles to the outside witnesses. */
import { Actor } from '../actor/actor.ts';
import { FencedError } from '../actor/errors.ts';
import type { WarmHandOver } from '../singleton/warm_hand_over.ts';
import type { Instance, InstanceRegistry } from './instance_registry.ts';
import type { Ledger, LedgerMessage } from './ledger.ts';
import type { Prng } from './prng.ts';
import type { SimProcess } from './sim_process.ts';
import { SimulationError } from './sim_world.ts';

export interface WorkMessage extends LedgerMessage {
  /** The sender waits for an answer. */
  readonly ask: boolean;
}

export interface WorkAnswer {
  readonly seq: number;
  readonly epoch: number;
}

/** From a worker's own timer. */
export interface Tick {
  readonly tick: true;
}

/** What a worker needs to know of its surroundings. */
export interface WorkerPlace {
  readonly registry: InstanceRegistry;
  readonly ledger: Ledger;
  readonly process: SimProcess;
  readonly random: Prng;
  /** Planned moves only: state must survive every one of them. */
  readonly plannedOnly: boolean;
  /** It has a lease: what its fence lets through must not be late. */
  readonly leased: boolean;
  /** Of the cluster this node belongs to now. */
  readonly clusterId: () => string | undefined;
  /** Highest epoch that this node has seen another member claim for a singleton; 0 for none. */
  readonly seenEpoch: (name: string) => number;
  /** The faults are over: nothing fails or stops by itself any more. */
  readonly quiet: () => boolean;
}

/** How a singleton of the load behaves. */
export interface WorkerKind {
  readonly name: string;
  readonly role?: string;
  /** Placement `spread`. */
  readonly spread?: boolean;
  readonly atLeastOnce?: boolean;
  /** State travels with planned moves. */
  readonly warm?: boolean;
  /** Its state is made of events in a journal. */
  readonly persistent?: boolean;
  /** `postStop` takes up to this long. */
  readonly slowStopMs?: number;
  /** Handlers are async and take up to this long. */
  readonly slowHandlerMs?: number;
  /** Handles a message of its own timer this often. */
  readonly tickMs?: number;
  /** Probability that a constructor throws. */
  readonly failingStarts?: number;
  /** Probability that a message is set aside until the next tick. */
  readonly stashes?: number;
  /** Probability that a handler throws. */
  readonly failingHandlers?: number;
  /** Probability that a handler stops its own actor. */
  readonly stopsItself?: number;
}

export const workerKinds: readonly WorkerKind[] = [
  { name: 'plain' },
  { name: 'roled', role: 'worker' },
  { name: 'spread', spread: true },
  { name: 'spread-warm', spread: true, warm: true, slowStopMs: 100 },
  { name: 'warm', warm: true },
  { name: 'slow-stop', slowStopMs: 400 },
  { name: 'async', slowHandlerMs: 30 },
  // Near its capacity, so that its mailbox is seldom empty.
  { name: 'busy', slowHandlerMs: 120 },
  { name: 'ticking', tickMs: 40 },
  { name: 'stashing', tickMs: 300, stashes: 0.2 },
  { name: 'failing', failingStarts: 0.1, failingHandlers: 0.02 },
  { name: 'self-stopping', stopsItself: 0.01 },
  { name: 'at-least-once', atLeastOnce: true, slowHandlerMs: 10 },
];

export class Worker extends Actor<WorkMessage | Tick> {
  protected readonly kind: WorkerKind;
  protected readonly place: WorkerPlace;
  protected readonly instance: Instance;
  readonly #stashed = new Set<string>();

  constructor(kind: WorkerKind, place: WorkerPlace) {
    super();
    this.kind = kind;
    this.place = place;
    this.instance = place.registry.born(kind.name, place.process);
    if (!place.quiet() && place.random.chance(kind.failingStarts ?? 0)) {
      place.registry.terminated(this.instance);
      throw new Error('planted: this constructor fails');
    }
  }

  override preStart(): void {
    const { registry, clusterId, seenEpoch } = this.place;
    registry.epoch(this.instance, this.context.epoch, clusterId(), seenEpoch(this.kind.name));
    const { tickMs } = this.kind;
    if (tickMs !== undefined) this.context.timers.startFixedRate('tick', { tick: true }, tickMs);
  }

  override onReceive(message: WorkMessage | Tick): void | Promise<void> {
    const settled = this.place.registry.handling(this.instance);
    if ('tick' in message) {
      if (this.kind.stashes !== undefined) this.context.unstashAll();
      return settled();
    }
    if (this.#setAside(message)) return settled();
    this.place.ledger.handled(message);
    this.observe(message);
    const done = () => {
      if (this.place.leased) this.#act();
      this.place.ledger.processed(message);
      settled();
      this.#answer(message);
    };
    const { slowHandlerMs } = this.kind;
    if (slowHandlerMs === undefined) {
      done();
      return;
    }
    const ms = this.place.quiet() ? 0 : this.place.random.between(0, slowHandlerMs);
    return sleep(this.place.process, ms).then(done);
  }

  /** Each message at most once. */
  #setAside(message: WorkMessage): boolean {
    const { stashes = 0 } = this.kind;
    const key = `${message.stream} ${message.seq}`;
    if (stashes === 0 || this.place.quiet() || this.#stashed.delete(key)) return false;
    if (!this.place.random.chance(stashes)) return false;
    this.#stashed.add(key);
    return this.context.stash();
  }

  override postStop(): void | Promise<void> {
    const { slowStopMs } = this.kind;
    const ended = () => this.place.registry.terminated(this.instance);
    if (slowStopMs === undefined) return ended();
    return sleep(this.place.process, this.place.random.between(0, slowStopMs)).then(ended);
  }

  /** For kinds that keep state. */
  protected observe(_message: WorkMessage): void {}

  /** A write to a store of its own, at the end of a handler. */
  #act(): void {
    try {
      this.context.fence();
    } catch (error) {
      if (error instanceof FencedError) return;
      throw error;
    }
    this.place.registry.acting(this.instance);
  }

  #answer(message: WorkMessage): void {
    const { random } = this.place;
    if (message.ask) {
      const answer: WorkAnswer = { seq: message.seq, epoch: this.context.epoch };
      this.context.sender.tell(answer);
    }
    if (this.place.quiet()) return;
    if (random.chance(this.kind.stopsItself ?? 0)) this.context.stopSelf();
    if (random.chance(this.kind.failingHandlers ?? 0)) throw new Error('planted: this handler fails');
  }
}

/** Counts what it has handled, over all moves. */
export class WarmWorker extends Worker implements WarmHandOver {
  #handled = 0;

  serializeForHandOver(): Uint8Array {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, this.#handled);
    return bytes;
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#handled = new DataView(state.buffer, state.byteOffset, state.byteLength).getFloat64(0);
  }

  protected override observe(message: WorkMessage): void {
    this.#handled++;
    const { place, instance } = this;
    const expected = place.ledger.handledBy(instance.singleton);
    if (!place.plannedOnly || expected === this.#handled) return;
    const text =
      `warm state counts ${this.#handled} messages, ${expected} were handled (at ${message.stream} ${message.seq})`;
    place.process.world.fail(new SimulationError('warm', text));
  }
}

export function makeWorker(kind: WorkerKind, place: WorkerPlace): Worker {
  return kind.warm === true ? new WarmWorker(kind, place) : new Worker(kind, place);
}

function sleep(process: SimProcess, ms: number): Promise<void> {
  return new Promise((resolve) =>
    void process.timers.set(ms, () => {
      process.settles();
      resolve();
    })
  );
}
