/** Asking: a message whose reply is a promise. */
import { fastPaths } from '../fast_paths.ts';
import { coreLimits as limits } from '../limits.ts';
import type { Cancel, Environment } from './environment.ts';
import { AskTimeoutError, SystemTerminatedError, TooManyAsksError } from './errors.ts';
import { durationRule, OptionsError } from './options.ts';
import { ActorRef, admitSender } from './ref.ts';

/** Default of `ask`'s time limit, in milliseconds. */
export const defaultAskTimeoutMs = 5_000;

const timeLimit = durationRule(1);

/** Asks with one time limit, in the order of their deadlines, with one timer for all. */
interface Lane {
  readonly timeoutMs: number;
  first: AskRef | undefined;
  last: AskRef | undefined;
  timer: Cancel | undefined;
}

/** The asker of one question: the temporary ref that a reply goes to, under `/temp/…`. The first reply settles it. */
export class AskRef extends ActorRef<unknown> {
  readonly id: number;
  readonly target: ActorRef<any>;
  readonly deadline: number;
  /** Asked when the time is over. */
  readonly why: (() => string | undefined) | undefined;
  /** Undefined once it is settled. */
  lane: Lane | undefined;
  /** Neighbours in its lane. */
  previous: AskRef | undefined;
  next: AskRef | undefined = undefined;
  /** Its name is never used again. */
  readonly incarnation = 0;
  readonly #asks: Asks;
  readonly #resolve: (reply: unknown) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    asks: Asks,
    id: number,
    target: ActorRef<any>,
    deadline: number,
    lane: Lane,
    why: (() => string | undefined) | undefined,
  ) {
    super();
    this.#asks = asks;
    this.id = id;
    this.target = target;
    this.deadline = deadline;
    this.lane = lane;
    this.previous = lane.last;
    this.why = why;
    this.#resolve = resolveLast;
    this.#reject = rejectLast;
  }

  /** Made when it is needed: questions within one process never look at it. */
  get path(): string {
    return `/temp/${this.#asks.register(this)}`;
  }

  tell(reply: unknown, sender?: ActorRef<any>): void {
    const from = admitSender(sender);
    if (this.#asks.settle(this)) this.#resolve(reply);
    else this.#asks.onLate(this, reply, from);
  }

  ask<R = unknown>(message: unknown, timeoutMs?: number): Promise<R> {
    return this.#asks.ask<R>(this, message, timeoutMs);
  }

  stop(): void {}

  /** Rejects the promise, unless it is settled. */
  fail(error: unknown): void {
    if (this.#asks.settle(this)) this.#reject(error);
  }
}

/** The ends of the promise made last. What fills them in is one function for all promises, not one for each. */
let resolveLast: (reply: any) => void;
let rejectLast: (error: unknown) => void;
const keepEnds = (resolve: (reply: any) => void, reject: (error: unknown) => void): void => {
  resolveLast = resolve;
  rejectLast = reject;
};

/** Time limits with a lane that is kept while it is empty, so that asking one by one sets no timer each time. */
const keptLanes = 16;

/** The number behind the dash at `dash`, spelled as `toString(36)` does and no other way; 0 for anything else. */
function idIn(name: string, dash: number): number {
  if (name.charCodeAt(dash) !== 0x2d || name.length > dash + 11 || name.charCodeAt(dash + 1) === 0x30) return 0;
  let id = 0;
  for (let at = dash + 1; at < name.length; at += 1) {
    const code = name.charCodeAt(at);
    const digit = code < 0x3a ? code - 0x30 : code - 0x57;
    if (digit < 0 || digit > 35 || (code > 0x39 && digit < 10)) return 0;
    id = id * 36 + digit;
  }
  return id;
}

/** The questions of one system that wait for their replies. */
export class Asks {
  readonly #environment: Environment;
  readonly #systemName: string;
  readonly onLate: (ask: AskRef, reply: unknown, sender: ActorRef<any> | undefined) => void;
  /** Those that somebody may look for by name. */
  readonly #named = new Map<number, AskRef>();
  readonly #lanes = new Map<number, Lane>();
  /** The lane used last. */
  #lane: Lane | undefined;
  /** Random per system, so that a reply meant for an earlier process at this address finds nobody. */
  readonly #prefix: string;
  #closed = false;
  #counter = 0;
  inFlight = 0;
  /** Questions refused since `limits.asks` were waiting. */
  refused = 0;

  constructor(
    environment: Environment,
    systemName: string,
    onLate: (ask: AskRef, reply: unknown, sender: ActorRef<any> | undefined) => void,
  ) {
    this.#environment = environment;
    this.#systemName = systemName;
    this.onLate = onLate;
    this.#prefix = Math.floor(environment.random.next() * 2 ** 40).toString(36);
  }

  /** Its name, by which it is found from now on while it waits. */
  register(ask: AskRef): string {
    if (ask.lane !== undefined) this.#named.set(ask.id, ask);
    return this.#nameOf(ask.id);
  }

  find(name: string): AskRef | undefined {
    const id = name.startsWith(this.#prefix) ? idIn(name, this.#prefix.length) : 0;
    return this.#named.get(id);
  }

  #nameOf(id: number): string {
    return `${this.#prefix}-${id.toString(36)}`;
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
    if (this.inFlight >= limits.asks) {
      this.refused += 1;
      return Promise.reject(new TooManyAsksError(target.path, limits.asks));
    }
    const promise = new Promise<R>(keepEnds);
    const asker = this.#add(target, timeoutMs, why);
    try {
      target.tell(message, asker);
    } catch (error) {
      asker.fail(error);
    }
    return promise;
  }

  /** True for the first who settles it. */
  settle(ask: AskRef): boolean {
    const { lane, previous, next } = ask;
    if (lane === undefined) return false;
    this.inFlight -= 1;
    this.#named.delete(ask.id);
    if (previous === undefined) lane.first = next;
    else previous.next = next;
    if (next === undefined) lane.last = previous;
    else next.previous = previous;
    ask.lane = undefined;
    ask.previous = undefined;
    ask.next = undefined;
    if (lane.first === undefined && this.#lanes.size > keptLanes) this.#dropLane(lane);
    return true;
  }

  /** Fails every question and accepts no more. */
  close(): void {
    this.#closed = true;
    for (const lane of [...this.#lanes.values()]) {
      while (lane.first !== undefined) lane.first.fail(new SystemTerminatedError(this.#systemName, 'wait for a reply'));
      this.#dropLane(lane);
    }
  }

  /** For the promise made last. */
  #add(target: ActorRef<any>, timeoutMs: number, why: (() => string | undefined) | undefined): AskRef {
    const lane = this.#lane?.timeoutMs === timeoutMs ? this.#lane : this.#laneOf(timeoutMs);
    this.#counter += 1;
    // Rounded up: engines keep small integers without memory of their own.
    const deadline = Math.ceil(this.#environment.clock.now() + timeoutMs);
    const ask = new AskRef(this, this.#counter, target, deadline, lane, why);
    this.inFlight += 1;
    if (lane.last === undefined) lane.first = ask;
    else lane.last.next = ask;
    lane.last = ask;
    if (!fastPaths.lateNames) this.register(ask);
    if (lane.timer === undefined) this.#arm(lane);
    return ask;
  }

  #laneOf(timeoutMs: number): Lane {
    let lane = this.#lanes.get(timeoutMs);
    if (lane === undefined) {
      lane = { timeoutMs, first: undefined, last: undefined, timer: undefined };
      this.#lanes.set(timeoutMs, lane);
    }
    return this.#lane = lane;
  }

  #arm(lane: Lane): void {
    if (lane.first === undefined) return this.#dropLane(lane);
    const delayMs = Math.max(0, lane.first.deadline - this.#environment.clock.now());
    lane.timer = this.#environment.timers.set(delayMs, () => this.#expire(lane));
  }

  #expire(lane: Lane): void {
    lane.timer = undefined;
    const now = this.#environment.clock.now();
    for (let ask = lane.first; ask !== undefined && ask.deadline <= now; ask = lane.first) {
      ask.fail(new AskTimeoutError(ask.target.path, lane.timeoutMs, ask.why?.()));
    }
    if (this.#lanes.get(lane.timeoutMs) === lane) this.#arm(lane);
  }

  #dropLane(lane: Lane): void {
    lane.timer?.();
    lane.timer = undefined;
    this.#lanes.delete(lane.timeoutMs);
    if (this.#lane === lane) this.#lane = undefined;
  }
}
