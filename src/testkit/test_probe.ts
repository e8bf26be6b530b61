/** An actor that records what it is told, for assertions about other actors. After Akka's and Erlang's probes. */
import { Actor } from '../actor/actor.ts';
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { Terminated } from '../actor/watch.ts';
import { sameValue, showValue } from './values.ts';

/** An expectation that was not met. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
}

/** Lets `ms` of the system's time pass, with everything that happens in it. */
export type Elapse = (ms: number) => Promise<void>;

export interface Received<T> {
  readonly message: T;
  /** `system.noSender` when there was none. */
  readonly sender: ActorRef<unknown>;
}

/** How long an expectation waits, in milliseconds of the system's clock. */
export const defaultWithinMs = 1_000;

/** An actor that notes what it gets, with methods that wait for it and say what came instead. */
export class TestProbe<T = unknown> {
  readonly ref: ActorRef<T>;
  readonly name: string;
  #elapse: Elapse;
  #received: Received<T>[] = [];
  #terminated: string[] = [];
  #watch: (ref: ActorRef<any>) => void;
  #last: Received<T> | undefined;

  /** Spawns the probe at `/user/<name>`. */
  constructor(system: ActorSystem, name: string, elapse: Elapse) {
    this.name = name;
    this.#elapse = elapse;
    this.#watch = () => {
      throw new ProbeError(`probe ${name} has not started: let time pass before watch`);
    };
    this.ref = system.spawn<T>(
      () =>
        new ProbeActor<T>({
          started: (watch) => this.#watch = watch,
          message: (received) => void this.#received.push(received),
          terminated: (path) => void this.#terminated.push(path),
        }),
      name,
    );
  }

  /** The next message, whatever it is. @throws ProbeError when none comes in time */
  async receiveMessage(withinMs: number = defaultWithinMs): Promise<T> {
    return (await this.#next(withinMs, 'a message')).message;
  }

  /** The next message must be equal to `expected`, value by value. @throws ProbeError */
  async expectMessage(expected: T, withinMs: number = defaultWithinMs): Promise<T> {
    const { message } = await this.#next(withinMs, showValue(expected));
    if (sameValue(message, expected)) return message;
    throw new ProbeError(`probe ${this.name} expected ${showValue(expected)}, got ${showValue(message)}`);
  }

  /** The next message must satisfy `matches`. @throws ProbeError */
  async expectMessageWhich(what: string, matches: (message: T) => boolean, withinMs = defaultWithinMs): Promise<T> {
    const { message } = await this.#next(withinMs, what);
    if (matches(message)) return message;
    throw new ProbeError(`probe ${this.name} expected ${what}, got ${showValue(message)}`);
  }

  /** Skips messages until one satisfies `matches`. @throws ProbeError */
  async fishForMessage(what: string, matches: (message: T) => boolean, withinMs = defaultWithinMs): Promise<T> {
    let left = withinMs;
    const skipped: string[] = [];
    while (left >= 0) {
      const waited = await this.#wait(() => this.#received.length > 0, left);
      if (waited === undefined) break;
      left -= waited;
      const { message } = this.#take();
      if (matches(message)) return message;
      skipped.push(showValue(message));
    }
    throw new ProbeError(
      `probe ${this.name} saw no ${what} within ${withinMs} ms, but ${skipped.join(', ') || 'nothing'}`,
    );
  }

  /** Nothing may come for `forMs`. @throws ProbeError */
  async expectNoMessage(forMs = 100): Promise<void> {
    await this.#elapse(forMs);
    const first = this.#received[0];
    if (first !== undefined) {
      throw new ProbeError(`probe ${this.name} expected nothing, got ${showValue(first.message)}`);
    }
  }

  /** Has the probe watch `ref`, so that `expectTerminated` can tell. */
  async watch(ref: ActorRef<any>): Promise<void> {
    await this.#elapse(0);
    this.#watch(ref);
  }

  /** A watched actor must end, or have ended. @throws ProbeError */
  async expectTerminated(ref: ActorRef<any>, withinMs = defaultWithinMs): Promise<void> {
    const waited = await this.#wait(() => this.#terminated.includes(ref.path), withinMs);
    if (waited === undefined) {
      throw new ProbeError(`probe ${this.name}: ${ref.path} has not ended within ${withinMs} ms`);
    }
    this.#terminated.splice(this.#terminated.indexOf(ref.path), 1);
  }

  /** Answers the sender of the message that was taken last. */
  reply(message: unknown): void {
    if (this.#last === undefined) throw new ProbeError(`probe ${this.name} has received nothing to reply to`);
    this.#last.sender.tell(message, this.ref);
  }

  /** Who sent the message that was taken last. */
  get lastSender(): ActorRef<unknown> {
    if (this.#last === undefined) throw new ProbeError(`probe ${this.name} has received nothing`);
    return this.#last.sender;
  }

  /** Messages that have come and were not taken by an expectation. */
  get waiting(): readonly T[] {
    return this.#received.map(({ message }) => message);
  }

  async #next(withinMs: number, what: string): Promise<Received<T>> {
    const waited = await this.#wait(() => this.#received.length > 0, withinMs);
    if (waited === undefined) {
      throw new ProbeError(`probe ${this.name} expected ${what}, got nothing within ${withinMs} ms`);
    }
    return this.#take();
  }

  #take(): Received<T> {
    const received = this.#received.shift() as Received<T>;
    this.#last = received;
    return received;
  }

  /** Milliseconds until `holds`; undefined when it does not within `withinMs`. */
  async #wait(holds: () => boolean, withinMs: number): Promise<number | undefined> {
    await this.#elapse(0);
    for (let waited = 0; !holds(); waited++) {
      if (waited >= withinMs) return undefined;
      await this.#elapse(1);
      if (holds()) return waited + 1;
    }
    return 0;
  }
}

interface ProbeEvents<T> {
  started(watch: (ref: ActorRef<any>) => void): void;
  message(received: Received<T>): void;
  terminated(path: string): void;
}

class ProbeActor<T> extends Actor<T> {
  #events: ProbeEvents<T>;

  constructor(events: ProbeEvents<T>) {
    super();
    this.#events = events;
  }

  override preStart(): void {
    this.#events.started((ref) => this.context.watch(ref));
  }

  override onReceive(message: T): void {
    this.#events.message({ message, sender: this.context.sender });
  }

  override onTerminated(notice: Terminated): void {
    this.#events.terminated(notice.ref.path);
  }
}
