/** Messages that reached nobody: counted by reason, the latest kept, all published. */
import { coreLimits as limits } from '../limits.ts';
import { AskRef } from './ask.ts';
import type { Cancel, Logger } from './environment.ts';
import { UndeliveredError } from './errors.ts';
import type { EventStream } from './event_stream.ts';
import type { ActorRef } from './ref.ts';
import { roughSize } from './rough_size.ts';

/**
 * Why a message reached nobody. `stopped`: the actor stopped with it in its mailbox; `terminated`: it was dead already;
 * `outcome-unknown`: it was sent, and whether it was handled cannot be known.
 */
export type DeadLetterReason =
  | 'no-such-actor'
  | 'stopped'
  | 'terminated'
  | 'mailbox-overflow'
  | 'stash-overflow'
  | 'buffer-overflow'
  | 'no-host'
  | 'never-hosts'
  | 'outcome-unknown'
  | 'unserializable'
  | 'too-large'
  | 'queue-full'
  | 'unreachable'
  | (string & Record<never, never>);

/** What makes a `DeadLetter`. */
export interface DeadLetterFields {
  readonly message: unknown;
  readonly sender: ActorRef<any> | undefined;
  /** The path it was meant for, or a text that names the singleton. */
  readonly recipient: string;
  readonly reason: DeadLetterReason;
  /** More about the reason, for people. */
  readonly detail?: string | undefined;
}

/**
 * A message that nobody handled, or of which nobody knows whether it was handled, with the reason. Published on the
 * system's event stream.
 */
export class DeadLetter implements DeadLetterFields {
  readonly message: unknown;
  readonly sender: ActorRef<any> | undefined;
  readonly recipient: string;
  readonly reason: DeadLetterReason;
  readonly detail: string | undefined;

  constructor(fields: DeadLetterFields) {
    this.message = fields.message;
    this.sender = fields.sender;
    this.recipient = fields.recipient;
    this.reason = fields.reason;
    this.detail = fields.detail;
  }
}

/** The dead letters of one system. */
export class DeadLetters {
  readonly #events: EventStream;
  readonly #log: Logger;
  readonly #kept: DeadLetter[] = [];
  /** Of each that is kept. */
  readonly #sizes: number[] = [];
  #bytes = 0;
  #forgotten = 0;
  readonly #counts = new Map<string, number>();
  #total = 0;
  #publishing = false;

  constructor(events: EventStream, log: Logger) {
    this.#events = events;
    this.#log = log;
  }

  /** All there ever were. */
  get count(): number {
    return this.#total;
  }

  countOf(reason: DeadLetterReason): number {
    return this.#counts.get(reason) ?? 0;
  }

  /** How many there were, by reason. */
  get countByReason(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** The latest `limits.deadLettersKept`, oldest first; fewer where they are large. */
  get recent(): readonly DeadLetter[] {
    return [...this.#kept];
  }

  /** How many are not among the latest because of their size. */
  get forgotten(): number {
    return this.#forgotten;
  }

  subscribe(listener: (letter: DeadLetter) => void): Cancel {
    return this.#events.subscribe(DeadLetter, listener);
  }

  /**
   * Counts, keeps and publishes the letter. If it was a question, the one who asked fails at once. A letter that comes of
   * publishing another one is counted and kept, and not published, so that a listener cannot cause an endless chain.
   */
  publish(fields: DeadLetterFields): void {
    const letter = fields instanceof DeadLetter ? fields : new DeadLetter(fields);
    this.#total += 1;
    this.#counts.set(letter.reason, this.countOf(letter.reason) + 1);
    this.#keep(letter);
    const sender = letter.sender?.underlying();
    if (sender instanceof AskRef) {
      sender.fail(new UndeliveredError(letter.recipient, letter.reason, letter.detail));
    }
    if (this.#publishing) return;
    this.#publishing = true;
    try {
      this.#log.debug(`dead letter for ${letter.recipient}: ${letter.reason}`, { detail: letter.detail });
      this.#events.publish(letter);
    } finally {
      this.#publishing = false;
    }
  }

  #keep(letter: DeadLetter): void {
    const size = roughSize(letter.message);
    if (size > limits.deadLettersKeptBytes) {
      this.#forgotten += 1;
      return;
    }
    this.#kept.push(letter);
    this.#sizes.push(size);
    this.#bytes += size;
    if (this.#kept.length > limits.deadLettersKept) this.#drop();
    for (; this.#bytes > limits.deadLettersKeptBytes; this.#forgotten += 1) this.#drop();
  }

  #drop(): void {
    this.#kept.shift();
    this.#bytes -= this.#sizes.shift() ?? 0;
  }
}
