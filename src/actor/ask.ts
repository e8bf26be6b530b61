/** Asking: a message whose reply is a promise. */
import { coreLimits as limits } from '../limits.ts';
import type { Cancel, Environment } from './environment.ts';
import { AskTimeoutError, SystemTerminatedError, TooManyAsksError } from './errors.ts';
import { durationRule, OptionsError } from './options.ts';
import { ActorRef, admitSender } from './ref.ts';

/** Default of `ask`'s time limit, in milliseconds. */
export const defaultAskTimeoutMs = 5_000;

const timeLimit = durationRule(1);

/** The asker of one question: the temporary ref that a reply goes to, under `/temp/…`. The first reply settles it. */
export class AskRef extends ActorRef<unknown> {
  readonly id: number;
  readonly targetPath: string;
  readonly timeoutMs: number;
  readonly deadline: number;
  /** Asked when the time is over. */
  why: (() => string | undefined) | undefined = undefined;
  readonly #asks: Asks;
  readonly #resolve: (reply: unknown) => void;
  readonly #reject: (error: unknown) => void;
  /** Neighbours in the queue of asks with the same time limit. */
  previous: AskRef | undefined = undefined;
  next: AskRef | undefined = undefined;
  #settled = false;

  constructor(
    asks: Asks,
    id: number,
    targetPath: string,
    timeoutMs: number,
    deadline: number,
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    super();
    this.#asks = asks;
    this.id = id;
    this.targetPath = targetPath;
    this.timeoutMs = timeoutMs;
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Made when it is needed: questions within one process never look at it. */
  get path(): string {
    return `/temp/${this.#asks.nameOf(this.id)}`;
  }

  get incarnation(): number {
    return this.#asks.firstIncarnation + this.id;
  }

  tell(reply: unknown, sender?: ActorRef<any>): void {
    const from = admitSender(sender);
    if (this.#settled) this.#asks.late(this, reply, from);
    else if (this.#settle()) this.#resolve(reply);
  }

  ask<R = unknown>(message: unknown, timeoutMs?: number): Promise<R> {
    return this.#asks.ask<R>(this, message, timeoutMs);
  }

  stop(): void {}

  /** Rejects the promise, unless it is settled. */
  fail(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#asks.remove(this);
    return true;
  }
}

/** Asks with one time limit, in the order of their deadlines, with one timer for all. */
interface Lane {
  first: AskRef | undefined;
  last: AskRef | undefined;
  timer: Cancel | undefined;
}

/** Time limits with a lane that is kept while it is empty, so that asking one by one sets no timer each time. */
const keptLanes = 16;

/** The questions of one system that wait for their replies. */
export class Asks {
  readonly #environment: Environment;
  readonly #systemName: string;
  readonly #onLate: (ask: AskRef, reply: unknown, sender: ActorRef<any> | undefined) => void;
  readonly #waiting = new Map<number, AskRef>();
  readonly #lanes = new Map<number, Lane>();
  /** Random per system, so that a reply meant for an earlier process at this address finds nobody. */
  readonly #prefix: string;
  readonly firstIncarnation: number;
  #closed = false;
  #counter = 0;
  /** Questions refused since `limits.asks` were waiting. */
  refused = 0;

  constructor(
    environment: Environment,
    systemName: string,
    firstIncarnation: number,
    onLate: (ask: AskRef, reply: unknown, sender: ActorRef<any> | undefined) => void,
  ) {
    this.#environment = environment;
    this.#systemName = systemName;
    this.firstIncarnation = firstIncarnation;
    this.#onLate = onLate;
    this.#prefix = Math.floor(environment.random.next() * 2 ** 40).toString(36);
  }

  get inFlight(): number {
    return this.#waiting.size;
  }

  nameOf(id: number): string {
    return `${this.#prefix}-${id.toString(36)}`;
  }

  find(name: string): AskRef | undefined {
    const id = Number.parseInt(name.slice(this.#prefix.length + 1), 36);
    return this.nameOf(id) === name ? this.#waiting.get(id) : undefined;
  }

  /**
   * Tells `target` the message with a temporary ref as its sender; see `ActorRef.ask`. `why`: what is known when no reply has
   * come in time.
   */
  ask<R>(
    target: ActorRef<any>,
    message: unknown,
    timeoutMs: number = defaultAskTimeoutMs,
    why?: () => string | undefined,
  ): Promise<R> {
    if (!timeLimit.accepts(timeoutMs)) {
      return Promise.reject(new OptionsError('ask', 'timeoutMs', timeoutMs, timeLimit.rule));
    }
    if (this.#closed) return Promise.reject(new SystemTerminatedError(this.#systemName, 'ask'));
    if (this.#waiting.size >= limits.asks) {
      this.refused += 1;
      return Promise.reject(new TooManyAsksError(target.path, limits.asks));
    }
    return new Promise<R>((resolve, reject) => {
      const id = this.#counter += 1;
      const deadline = this.#environment.clock.now() + timeoutMs;
      const settle = resolve as (reply: unknown) => void;
      const asker = new AskRef(this, id, target.path, timeoutMs, deadline, settle, reject);
      asker.why = why;
      this.#add(asker);
      try {
        target.tell(message, asker);
      } catch (error) {
        asker.fail(error);
      }
    });
  }

  /** Called by the ask itself when it has been settled. */
  remove(ask: AskRef): void {
    this.#waiting.delete(ask.id);
    const lane = this.#lanes.get(ask.timeoutMs);
    if (lane === undefined) return;
    if (ask.previous === undefined) lane.first = ask.next;
    else ask.previous.next = ask.next;
    if (ask.next === undefined) lane.last = ask.previous;
    else ask.next.previous = ask.previous;
    ask.previous = undefined;
    ask.next = undefined;
    if (lane.first === undefined && this.#lanes.size > keptLanes) this.#dropLane(ask.timeoutMs, lane);
  }

  late(ask: AskRef, reply: unknown, sender: ActorRef<any> | undefined): void {
    this.#onLate(ask, reply, sender);
  }

  /** Fails every question and accepts no more. */
  close(): void {
    this.#closed = true;
    for (const ask of [...this.#waiting.values()]) {
      ask.fail(new SystemTerminatedError(this.#systemName, 'wait for a reply'));
    }
    for (const [timeoutMs, lane] of [...this.#lanes]) this.#dropLane(timeoutMs, lane);
  }

  #add(ask: AskRef): void {
    this.#waiting.set(ask.id, ask);
    let lane = this.#lanes.get(ask.timeoutMs);
    if (lane === undefined) {
      lane = { first: undefined, last: undefined, timer: undefined };
      this.#lanes.set(ask.timeoutMs, lane);
    }
    ask.previous = lane.last;
    if (lane.last === undefined) lane.first = ask;
    else lane.last.next = ask;
    lane.last = ask;
    if (lane.timer === undefined) this.#arm(ask.timeoutMs, lane);
  }

  #arm(timeoutMs: number, lane: Lane): void {
    const first = lane.first;
    if (first === undefined) return this.#dropLane(timeoutMs, lane);
    const delayMs = Math.max(0, first.deadline - this.#environment.clock.now());
    lane.timer = this.#environment.timers.set(delayMs, () => this.#expire(timeoutMs, lane));
  }

  #expire(timeoutMs: number, lane: Lane): void {
    lane.timer = undefined;
    const now = this.#environment.clock.now();
    for (let ask = lane.first; ask !== undefined && ask.deadline <= now; ask = lane.first) {
      ask.fail(new AskTimeoutError(ask.targetPath, timeoutMs, ask.why?.()));
    }
    if (this.#lanes.get(timeoutMs) === lane) this.#arm(timeoutMs, lane);
  }

  #dropLane(timeoutMs: number, lane: Lane): void {
    lane.timer?.();
    lane.timer = undefined;
    this.#lanes.delete(timeoutMs);
  }
}
