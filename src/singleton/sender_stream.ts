/**
 * The sender's side of delivery: owns the only copy of every message told through a singleton ref on this node until it is
 * settled (rules 12 and 15). No time, no sockets: the proxy gives it a port to transmit through.
 */
import { Mailbox } from '../actor/mailbox.ts';
import { limits } from '../limits.ts';
import type { Address } from '../transport/contract.ts';
import { InFlight, type Sender } from './in_flight.ts';

export type OverflowPolicy = 'drop-newest' | 'drop-oldest' | 'fail-ask';
export type DeliveryMode = 'at-most-once' | 'at-least-once';

export type LostReason =
  | 'buffer-overflow'
  | 'outcome-unknown'
  | 'unserializable'
  | 'too-large'
  | 'terminated'
  | 'never-hosts';

/** What came of handing one message to the host's node. `wait`: not now, nothing was sent. */
export type Transmission = 'sent' | 'wait' | {
  readonly reason: 'unserializable' | 'too-large';
  readonly detail: string;
};

export interface StreamPort {
  transmit(target: OpenTarget, seq: number, message: unknown, sender: Sender, repeat: boolean): Transmission;
  /** Ends a message without success: dead letter, with its reason. */
  lost(message: unknown, sender: Sender, reason: LostReason, detail: string): void;
}

/** The host this stream is open to. */
export interface OpenTarget {
  readonly uid: string;
  readonly address: Address;
  readonly epoch: number;
}

/** The host's answer to an open: `continued` keeps what is in flight, `crash` means the old filter is gone. */
export interface Opened {
  readonly target: OpenTarget;
  readonly verdict: 'continued' | 'crash';
  /** Next sequence number that the host accepts. */
  readonly next: number;
  readonly prefix: number;
  readonly exceptions: readonly number[];
}

/** The ledger of one sender: told = acknowledged + deadLettered + buffered, at any moment. */
export interface Ledger {
  readonly told: number;
  readonly acknowledged: number;
  readonly deadLettered: number;
  /** Of the dead letters, those that may have been processed before the host crashed. */
  readonly outcomeUnknown: number;
  readonly buffered: number;
  /** Transmissions beyond the first of each message. */
  readonly resent: number;
  readonly dropped: number;
}

/** Before a proxy has taken the stream nothing is sent. */
const unattached: StreamPort = { transmit: () => 'wait', lost: () => {} };

export class SenderStream {
  target: OpenTarget | undefined;
  /** Epoch under which something in flight was last transmitted. */
  lastSentEpoch = 0;
  #port: StreamPort = unattached;
  readonly #pending = new Mailbox();
  readonly #inFlight = new InFlight();
  /** Next sequence number to transmit on the present connection; below `next` it is a repeat. */
  #cursor = 1;
  #repeatBelow = 1;
  #bufferSize: number;
  #overflow: OverflowPolicy;
  readonly #counts = { told: 0, acknowledged: 0, deadLettered: 0, outcomeUnknown: 0, resent: 0, dropped: 0 };

  constructor(bufferSize: number, overflow: OverflowPolicy) {
    this.#bufferSize = bufferSize;
    this.#overflow = overflow;
  }

  attach(port: StreamPort): void {
    this.#port = port;
  }

  /**
   * The sender is a new member now, whom no host knows: what was on its way has an unknown outcome, or is sent again as a
   * possible repeat.
   */
  renew(mode: DeliveryMode): void {
    this.target = undefined;
    this.lastSentEpoch = 0;
    if (mode === 'at-most-once') this.#outcomeUnknown();
  }

  configure(bufferSize: number, overflow: OverflowPolicy): void {
    this.#bufferSize = bufferSize;
    this.#overflow = overflow;
  }

  get base(): number {
    return this.#inFlight.base;
  }

  get next(): number {
    return this.#inFlight.next;
  }

  get buffered(): number {
    return this.#pending.length + this.#inFlight.unsettled;
  }

  get waiting(): number {
    return this.#pending.length;
  }

  ledger(): Ledger {
    return { ...this.#counts, buffered: this.buffered };
  }

  tell(message: unknown, sender: Sender): void {
    this.#counts.told += 1;
    if (this.target !== undefined && this.#pending.length === 0 && this.#cursor === this.#inFlight.next) {
      if (this.#sendNew(this.target, message, sender)) return;
    }
    if (this.#pending.length >= this.#bufferSize) {
      this.#counts.dropped += 1;
      const detail = `the buffer of ${this.#bufferSize} messages is full`;
      if (this.#overflow !== 'drop-oldest') return this.#lose(message, sender, 'buffer-overflow', detail);
      this.#lose(this.#pending.message(), this.#pending.sender(), 'buffer-overflow', detail);
      this.#pending.drop();
    }
    this.#pending.push(message, sender, undefined);
  }

  /** Sends what may be sent: repeats first, then new messages, in order. */
  pump(): void {
    const target = this.target;
    if (!target) return;
    const flight = this.#inFlight;
    while (this.#cursor < flight.next) {
      const seq = this.#cursor;
      if (!flight.isSettled(seq)) {
        const repeat = seq < this.#repeatBelow;
        if (this.#port.transmit(target, seq, flight.message(seq), flight.sender(seq), repeat) !== 'sent') return;
        this.lastSentEpoch = target.epoch;
        this.#counts.resent += 1;
      }
      this.#cursor = seq + 1;
    }
    while (this.#pending.length > 0) {
      if (!this.#sendNew(target, this.#pending.message(), this.#pending.sender())) return;
      this.#pending.drop();
    }
  }

  /** True when the message is off this method's hands: sent, or ended as a dead letter. */
  #sendNew(target: OpenTarget, message: unknown, sender: Sender): boolean {
    const flight = this.#inFlight;
    if (flight.span >= limits.streamWindow) return false;
    const outcome = this.#port.transmit(target, flight.next, message, sender, false);
    if (outcome === 'wait') return false;
    if (outcome !== 'sent') {
      this.#lose(message, sender, outcome.reason, outcome.detail);
      return true;
    }
    flight.push(message, sender);
    this.#cursor = flight.next;
    this.lastSentEpoch = target.epoch;
    return true;
  }

  /** The host (of whatever epoch) has processed everything up to `prefix`, and these. True when something was new. */
  acknowledged(prefix: number, others: readonly number[]): boolean {
    const flight = this.#inFlight;
    const before = this.#counts.acknowledged;
    const last = Math.min(prefix, flight.next - 1);
    for (let seq = flight.base; seq <= last; seq += 1) if (flight.settle(seq)) this.#counts.acknowledged += 1;
    for (const seq of others) if (flight.settle(seq)) this.#counts.acknowledged += 1;
    return this.#counts.acknowledged !== before;
  }

  opened(opened: Opened, mode: DeliveryMode): void {
    this.target = opened.target;
    const flight = this.#inFlight;
    if (opened.verdict === 'continued') {
      this.acknowledged(opened.prefix, opened.exceptions);
      this.#cursor = Math.min(flight.next, Math.max(flight.base, opened.next));
    } else if (mode === 'at-least-once') {
      this.#cursor = flight.base;
      this.#repeatBelow = flight.next;
    } else {
      this.#outcomeUnknown();
    }
    this.pump();
  }

  closed(): void {
    this.target = undefined;
  }

  /** Nothing will ever be delivered again: everything kept ends as a dead letter. */
  terminate(reason: LostReason, detail: string): void {
    this.target = undefined;
    this.#outcomeUnknown();
    while (this.#pending.length > 0) {
      const message = this.#pending.message();
      const sender = this.#pending.sender();
      this.#pending.drop();
      this.#lose(message, sender, reason, detail);
    }
  }

  #outcomeUnknown(): void {
    const flight = this.#inFlight;
    for (let seq = flight.base; seq < flight.next; seq += 1) {
      if (flight.isSettled(seq)) continue;
      const message = flight.message(seq);
      const sender = flight.sender(seq);
      flight.settle(seq);
      this.#counts.outcomeUnknown += 1;
      this.#lose(message, sender, 'outcome-unknown', 'the host is gone, and whether it had handled this is not known');
    }
    this.#cursor = flight.next;
  }

  #lose(message: unknown, sender: Sender, reason: LostReason, detail: string): void {
    this.#counts.deadLettered += 1;
    this.#port.lost(message, sender, reason, detail);
  }
}
