/**
 * The sender's side of delivery: owns the only copy of every message told through a singleton ref on this node until it is
 * settled (rules 12 and 15). No time, no sockets: the proxy gives it a port to transmit through.
 */
import { coreLimits as limits } from '../limits.ts';
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
  | 'never-hosts'
  /** A caller's token does not allow it. */
  | 'forbidden';

/** Nobody could ever get it. */
export interface Unsendable {
  readonly reason: 'unserializable' | 'too-large';
  readonly detail: string;
}

/** What came of handing one message to the host's node: its size in bytes. `wait`: not now, nothing was sent. */
export type Transmission = number | 'wait' | Unsendable;

export interface StreamPort {
  transmit(target: OpenTarget, seq: number, message: unknown, sender: Sender, repeat: boolean): Transmission;
  /** About its size in bytes. */
  weigh(message: unknown): number | Unsendable;
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

/** The ledger of one sender: told = acknowledged + deadLettered + outcomeUnknown + buffered, at any moment. */
export interface Ledger {
  readonly told: number;
  readonly acknowledged: number;
  readonly deadLettered: number;
  /** Dead letters too, counted apart: they may have been processed before the host crashed. */
  readonly outcomeUnknown: number;
  readonly buffered: number;
  /** About the size of the buffered ones. */
  readonly bufferedBytes: number;
  /** Transmissions beyond the first of each message. */
  readonly resent: number;
  readonly dropped: number;
  /** How often new messages had to wait since the window was full, in messages or in bytes. */
  readonly windowFull: number;
}

/** Places in the line of unsent messages for which it keeps the memory when it is empty. */
const keptLine = 1_024;

/** Before a proxy has taken the stream nothing is sent. */
const unattached: StreamPort = { transmit: () => 'wait', weigh: () => 0, lost: () => {} };

export class SenderStream {
  target: OpenTarget | undefined;
  /** Epoch under which something in flight was last transmitted. */
  lastSentEpoch = 0;
  #port: StreamPort = unattached;
  /** Not sent yet, by their place in line. */
  #pending = new InFlight();
  readonly #inFlight = new InFlight();
  /** Next sequence number to transmit on the present connection; below `next` it is a repeat. */
  #cursor = 1;
  #repeatBelow = 1;
  #bufferSize: number;
  #bufferBytes: number;
  #overflow: OverflowPolicy;
  #windowFull = false;
  readonly #counts = {
    told: 0,
    acknowledged: 0,
    deadLettered: 0,
    outcomeUnknown: 0,
    resent: 0,
    dropped: 0,
    windowFull: 0,
  };

  constructor(bufferSize: number, bufferBytes: number, overflow: OverflowPolicy) {
    this.#bufferSize = bufferSize;
    this.#bufferBytes = bufferBytes;
    this.#overflow = overflow;
  }

  attach(port: StreamPort): void {
    this.#port = port;
  }

  /**
   * No host knows this sender, which may be a new member: what was on its way has an unknown outcome, or is sent again as a
   * possible repeat.
   */
  renew(mode: DeliveryMode): void {
    this.target = undefined;
    this.lastSentEpoch = 0;
    if (mode === 'at-most-once') this.#outcomeUnknown();
  }

  configure(bufferSize: number, bufferBytes: number, overflow: OverflowPolicy): void {
    this.#bufferSize = bufferSize;
    this.#bufferBytes = bufferBytes;
    this.#overflow = overflow;
  }

  get base(): number {
    return this.#inFlight.base;
  }

  get next(): number {
    return this.#inFlight.next;
  }

  get buffered(): number {
    return this.#pending.span + this.#inFlight.unsettled;
  }

  get waiting(): number {
    return this.#pending.span;
  }

  ledger(): Ledger {
    return { ...this.#counts, buffered: this.buffered, bufferedBytes: this.#pending.bytes + this.#inFlight.bytes };
  }

  tell(message: unknown, sender: Sender): void {
    this.#counts.told += 1;
    if (this.target !== undefined && this.#pending.span === 0 && this.#cursor === this.#inFlight.next) {
      const outcome = this.#sendNew(this.target, message, sender);
      if (typeof outcome === 'number') return;
      if (outcome !== 'wait') return this.#lose(message, sender, outcome.reason, outcome.detail);
    }
    const size = this.#port.weigh(message);
    if (typeof size !== 'number') return this.#lose(message, sender, size.reason, size.detail);
    while (this.#isFullFor(size)) {
      this.#counts.dropped += 1;
      const detail = this.#pending.span >= this.#bufferSize
        ? `the buffer of ${this.#bufferSize} messages is full`
        : `the buffer of ${this.#bufferBytes} bytes is full`;
      if (this.#overflow !== 'drop-oldest') return this.#lose(message, sender, 'buffer-overflow', detail);
      const { message: oldest, sender: from } = this.#takePending();
      this.#lose(oldest, from, 'buffer-overflow', detail);
    }
    this.#pending.push(message, sender, size);
  }

  /** A message larger than the whole buffer finds room in an empty one. */
  #isFullFor(size: number): boolean {
    if (this.#pending.span === 0) return false;
    return this.#pending.span >= this.#bufferSize || this.#pending.bytes + size > this.#bufferBytes;
  }

  #takePending(): { readonly message: unknown; readonly sender: Sender } {
    const pending = this.#pending;
    const { base } = pending;
    const taken = { message: pending.message(base), sender: pending.sender(base) };
    pending.settle(base);
    // Else the memory of the longest line there ever was would stay.
    if (pending.span === 0 && pending.capacity > keptLine) this.#pending = new InFlight();
    return taken;
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
        const outcome = this.#port.transmit(target, seq, flight.message(seq), flight.sender(seq), repeat);
        if (outcome === 'wait') return;
        if (typeof outcome !== 'number') return this.#giveUp(seq, outcome);
        this.lastSentEpoch = target.epoch;
        this.#counts.resent += 1;
      }
      this.#cursor = seq + 1;
    }
    while (this.#pending.span > 0) {
      const { base } = this.#pending;
      const outcome = this.#sendNew(target, this.#pending.message(base), this.#pending.sender(base));
      if (outcome === 'wait') return;
      // Out of the line first: whoever hears of the dead letter may tell something, which may need its place.
      const { message, sender } = this.#takePending();
      if (typeof outcome !== 'number') this.#lose(message, sender, outcome.reason, outcome.detail);
    }
  }

  /**
   * Its sender has changed it since, and now it cannot be sent again. Once all before it are settled, it ends; the host goes
   * on after it when the stream is opened again.
   */
  #giveUp(seq: number, { reason, detail }: Unsendable): void {
    const flight = this.#inFlight;
    if (seq !== flight.base) return;
    const message = flight.message(seq);
    const sender = flight.sender(seq);
    flight.settle(seq);
    this.#lose(message, sender, reason, detail);
    this.closed();
  }

  #sendNew(target: OpenTarget, message: unknown, sender: Sender): Transmission {
    const flight = this.#inFlight;
    if (flight.span >= limits.streamWindow || flight.bytes >= limits.streamWindowBytes) {
      if (!this.#windowFull) this.#counts.windowFull += 1;
      this.#windowFull = true;
      return 'wait';
    }
    const outcome = this.#port.transmit(target, flight.next, message, sender, false);
    if (typeof outcome !== 'number') return outcome;
    this.#windowFull = false;
    flight.push(message, sender, outcome);
    this.#cursor = flight.next;
    this.lastSentEpoch = target.epoch;
    return outcome;
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
    while (this.#pending.span > 0) {
      const { message, sender } = this.#takePending();
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
      this.#lose(message, sender, 'outcome-unknown', 'the host is gone, and whether it had handled this is not known');
    }
    this.#cursor = flight.next;
  }

  #lose(message: unknown, sender: Sender, reason: LostReason, detail: string): void {
    this.#counts[reason === 'outcome-unknown' ? 'outcomeUnknown' : 'deadLettered'] += 1;
    this.#port.lost(message, sender, reason, detail);
  }
}
