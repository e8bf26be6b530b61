/**
 * The outside witness of persistence. For each persistence id it keeps the one history that anybody has seen, be it by an
 * acknowledgement or by a recovery, and says when somebody sees another one:
 *
 * J1. Whatever was acknowledged is in every later recovery, under its number, and so is whatever a recovery has shown.
 * J2. Nothing is recovered that nobody wanted to write, and nothing twice.
 * J3. Once an instance has recovered, no other one is told that it has written beyond what that recovery has shown.
 */
import { SimulationError, type World } from './sim_world.ts';

interface Book {
  /** The event of number n at n − 1. */
  readonly history: string[];
  readonly wanted: Set<string>;
  acknowledged: number;
  lastRecovered: object | undefined;
  /** Its claim's epoch, and its place among those of the same epoch. */
  lastRank: readonly [epoch: number, order: number];
}

/**
 * Accounts for the events that persistent actors of a simulation wrote, and ends the run when a recovery misses one
 * that was acknowledged.
 */
export class EventBook {
  readonly statistics = { eventsWanted: 0, eventsAcknowledged: 0, recoveries: 0, staleRecoveries: 0 };
  readonly #world: World;
  readonly #books = new Map<string, Book>();
  readonly #recovered = new WeakSet<object>();

  constructor(world: World) {
    this.#world = world;
  }

  ids(): string[] {
    return [...this.#books.keys()];
  }

  /** Whether `instance` has its state. Another one may have claimed the history since: its next write will tell it. */
  hasRecovered(instance: object): boolean {
    return this.#recovered.has(instance);
  }

  /** Somebody is about to write these. */
  wanted(id: string, events: readonly string[]): void {
    for (const event of events) this.#of(id).wanted.add(event);
    this.statistics.eventsWanted += events.length;
  }

  /** `instance` was told that its events, the last of which has number `lastSeq`, are durable. */
  acknowledged(id: string, instance: object, lastSeq: number, events: readonly string[]): void {
    const book = this.#of(id);
    const { history } = book;
    this.statistics.eventsAcknowledged += events.length;
    for (const [index, event] of events.entries()) {
      const seq = lastSeq - events.length + 1 + index;
      if (seq <= history.length) {
        if (history[seq - 1] !== event) this.#broken('J1', id, `event ${seq} is ${event} and was ${history[seq - 1]}`);
        continue;
      }
      if (seq > history.length + 1) this.#broken('J1', id, `event ${seq} follows ${history.length}`);
      if (book.lastRecovered !== instance) {
        this.#broken('J3', id, `event ${seq} (${event}) was acknowledged to an instance that had been replaced`);
      }
      history.push(event);
    }
    book.acknowledged = Math.max(book.acknowledged, lastSeq);
  }

  /**
   * `instance` has recovered, and this is what it has. One that was suspended in the middle, and whose claim another one has
   * overtaken, sees what was there before: it may not write, so that this does no harm.
   */
  recovered(id: string, instance: object, rank: Book['lastRank'], events: readonly string[]): void {
    const book = this.#of(id);
    const [epoch, order] = book.lastRank;
    this.statistics.recoveries++;
    this.#recovered.add(instance);
    if (rank[0] < epoch || (rank[0] === epoch && rank[1] < order)) {
      this.statistics.staleRecoveries++;
      return this.#compare(id, 1, events);
    }
    this.shown(id, events);
    book.lastRecovered = instance;
    book.lastRank = rank;
  }

  /** Somebody has read the whole history. */
  shown(id: string, events: readonly string[]): void {
    const { history } = this.#of(id);
    if (events.length < history.length) {
      this.#broken('J1', id, `only ${events.length} events are there, and ${history.length} have been seen`);
    }
    this.#compare(id, 1, events);
    for (const event of events.slice(history.length)) history.push(event);
  }

  /** What a loss of power at this moment would leave, from number `firstSeq` on: what was only seen may be gone. */
  left(id: string, firstSeq: number, events: readonly string[]): void {
    const { acknowledged } = this.#of(id);
    const last = firstSeq + events.length - 1;
    if (last < acknowledged) {
      this.#broken('J1', id, `${last} events would survive a loss of power, and ${acknowledged} are acknowledged`);
    }
    this.#compare(id, firstSeq, events);
  }

  #compare(id: string, firstSeq: number, events: readonly string[]): void {
    const { history, wanted } = this.#of(id);
    const seen = new Set<string>();
    for (const [index, event] of events.entries()) {
      const seq = firstSeq + index;
      const before = history[seq - 1];
      if (before !== undefined && before !== event) {
        this.#broken('J1', id, `event ${seq} is ${event} and was ${before}`);
      }
      if (!wanted.has(event)) this.#broken('J2', id, `event ${seq} (${event}) was never written by anybody`);
      if (seen.has(event)) this.#broken('J2', id, `event ${seq} (${event}) is there twice`);
      seen.add(event);
    }
  }

  #of(id: string): Book {
    let book = this.#books.get(id);
    if (book === undefined) {
      book = { history: [], wanted: new Set(), acknowledged: 0, lastRecovered: undefined, lastRank: [-1, 0] };
      this.#books.set(id, book);
    }
    return book;
  }

  #broken(rule: string, id: string, what: string): void {
    this.#world.fail(new SimulationError(rule, `history of ${id}: ${what}`));
  }
}
