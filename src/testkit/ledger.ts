/**
 * The outside witness of promise S3: what each sender told, and what became of every message. A stream is one sender
 * process and one singleton; its messages carry 1, 2, 3, …
 */
import { SimulationError, type World } from './sim_world.ts';

/** A message that a `Ledger` accounts for. */
export interface LedgerMessage {
  readonly stream: string;
  readonly seq: number;
}

/** The name of the stream from a sender to a singleton. */
export function streamName(sender: string, singleton: string): string {
  return `${sender}>${singleton}`;
}

export function singletonOf(stream: string): string {
  return stream.slice(stream.indexOf('>') + 1);
}

/** The account of one sender. */
export interface LedgerStream {
  readonly name: string;
  told: number;
  /** Handlers that settled, by sequence number. */
  readonly processed: Map<number, number>;
  readonly deadLettered: Map<number, string>;
  lastHandled: number;
}

/** What a sender's messages are held to. */
export interface LedgerPolicy {
  /** A message may be handled twice only after a crash and only when the singleton asks for it. */
  readonly atLeastOnce: boolean;
  /** Nothing may be lost, duplicated or reordered. */
  readonly exact: boolean;
  /** The singleton sets messages aside: each may be handled once, in any order. */
  readonly unordered?: boolean;
  /**
   * Every side of a split lives on: what a sender has given up as of unknown outcome may yet be handled on the other side,
   * after later messages on its own.
   */
  readonly sidesLive?: boolean;
}

/** What a sender counts itself. */
export interface Books {
  readonly told: number;
  readonly acknowledged: number;
  readonly deadLettered: number;
  readonly outcomeUnknown: number;
  readonly buffered: number;
}

/** Accounts for every message of a simulation, and ends the run when one is lost, doubled or out of order. */
export class Ledger {
  readonly statistics = { told: 0, processed: 0, deadLettered: 0, outcomeUnknown: 0, repeated: 0 };
  #world: World;
  #policy: (stream: string) => LedgerPolicy;
  #streams = new Map<string, LedgerStream>();
  #handledBy = new Map<string, number>();

  constructor(world: World, policy: (stream: string) => LedgerPolicy) {
    this.#world = world;
    this.#policy = policy;
  }

  stream(name: string): LedgerStream {
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { name, told: 0, processed: new Map(), deadLettered: new Map(), lastHandled: 0 };
      this.#streams.set(name, stream);
    }
    return stream;
  }

  /** The next message of a stream; call it right before `tell`. */
  told(name: string): LedgerMessage {
    const stream = this.stream(name);
    stream.told++;
    this.statistics.told++;
    return { stream: name, seq: stream.told };
  }

  /** A handler for this message starts. */
  handled(message: LedgerMessage): void {
    const stream = this.stream(message.stream);
    const singleton = singletonOf(message.stream);
    this.#handledBy.set(singleton, this.handledBy(singleton) + 1);
    const policy = this.#policy(message.stream);
    if (message.seq > stream.told) this.#broken(message, 'was never told');
    const handledBefore = stream.processed.has(message.seq);
    if (policy.unordered === true && handledBefore && !policy.atLeastOnce) this.#broken(message, 'is handled twice');
    if (policy.exact && policy.unordered !== true && message.seq !== stream.lastHandled + 1) {
      this.#broken(message, `is handled after ${stream.lastHandled}, in a run of planned moves`);
    }
    const late = !handledBefore && (policy.unordered === true ||
      (policy.sidesLive === true && stream.deadLettered.get(message.seq) === 'outcome-unknown'));
    if (message.seq <= stream.lastHandled && !late) {
      if (!policy.atLeastOnce) this.#broken(message, `is handled after ${stream.lastHandled}: twice, or out of order`);
      this.statistics.repeated++;
    }
    const dead = stream.deadLettered.get(message.seq);
    if (dead !== undefined && dead !== 'outcome-unknown') {
      this.#broken(message, `is handled after its dead letter (${dead})`);
    }
    stream.lastHandled = Math.max(stream.lastHandled, message.seq);
  }

  /** Messages of all senders that a singleton has begun to handle, over all its instances. */
  handledBy(singleton: string): number {
    return this.#handledBy.get(singleton) ?? 0;
  }

  /** Its handler has settled or thrown. */
  processed(message: LedgerMessage): void {
    const { processed } = this.stream(message.stream);
    processed.set(message.seq, (processed.get(message.seq) ?? 0) + 1);
    this.statistics.processed++;
  }

  deadLettered(message: LedgerMessage, reason: string): void {
    const stream = this.stream(message.stream);
    if (stream.deadLettered.has(message.seq)) this.#broken(message, `has a second dead letter (${reason})`);
    stream.deadLettered.set(message.seq, reason);
    this.statistics.deadLettered++;
    if (reason === 'outcome-unknown') this.statistics.outcomeUnknown++;
    else if (stream.processed.has(message.seq)) {
      this.#broken(message, `is a dead letter (${reason}) though it was processed`);
    }
    if (this.#policy(message.stream).exact) {
      this.#broken(message, `is a dead letter (${reason}) in a run of planned moves`);
    }
  }

  /**
   * The books of a sender that is still alive, with its own counters: told = acknowledged + dead letters (of known and
   * of unknown outcome) + buffered, and nothing was acknowledged that was not processed.
   */
  audit(name: string, own: Books): void {
    const stream = this.stream(name);
    const dead = own.deadLettered + own.outcomeUnknown;
    const sum = own.acknowledged + dead + own.buffered;
    if (own.told !== stream.told) this.#unbalanced(name, `counts ${own.told} told, ${stream.told} were`);
    if (own.told !== sum) {
      this.#unbalanced(
        name,
        `${own.told} told is not ${own.acknowledged} acknowledged + ${dead} dead + ${own.buffered} buffered`,
      );
    }
    const unknown = [...stream.deadLettered.values()].filter((reason) => reason === 'outcome-unknown').length;
    const known = stream.deadLettered.size - unknown;
    if (own.deadLettered !== known || own.outcomeUnknown !== unknown) {
      const counted = `${own.deadLettered} dead letters and ${own.outcomeUnknown} of unknown outcome`;
      this.#unbalanced(name, `counts ${counted}, ${known} and ${unknown} were published`);
    }
    if (own.acknowledged > stream.processed.size) {
      this.#unbalanced(name, `${own.acknowledged} acknowledged, only ${stream.processed.size} processed`);
    }
    if (own.buffered === 0) this.#checkEach(stream);
  }

  /** With nothing buffered any more, each single message must have ended somewhere. */
  #checkEach(stream: LedgerStream): void {
    for (let seq = 1; seq <= stream.told; seq++) {
      if (!stream.processed.has(seq) && !stream.deadLettered.has(seq)) {
        this.#broken({ stream: stream.name, seq }, 'is lost without a trace: neither processed nor a dead letter');
      }
    }
  }

  #broken(message: LedgerMessage, what: string): void {
    this.#world.fail(new SimulationError('S3', `message ${message.seq} of ${message.stream} ${what}`));
  }

  #unbalanced(stream: string, what: string): void {
    this.#world.fail(new SimulationError('S3', `the ledger of ${stream} does not balance: ${what}`));
  }
}
