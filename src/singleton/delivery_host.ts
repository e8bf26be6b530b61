/**
 * The host's side of delivery: takes numbered messages from sender streams, hands them to the instance in order, filters
 * duplicates, and acknowledges what has been handled (rules 12 to 14).
 */
import type { DeliveryReceipt } from '../actor/spawn_options.ts';
import { limits } from '../limits.ts';
import { inOneLine, StreamFilter, type Watermark } from './delivery_filter.ts';
import type { Sender } from './in_flight.ts';
import type { OpenMessage } from './messages.ts';
import { isCaller, spoiled } from './outside.ts';

/** One message as it comes from its sender. */
export interface Delivery {
  readonly seq: number;
  readonly message: unknown;
  readonly sender: Sender;
  /** About its size. */
  readonly bytes: number;
  /** It may have been handled before, by an instance that crashed. */
  readonly repeat: boolean;
}

/** What an accepted message carries until its handler has settled. */
export class Receipt implements DeliveryReceipt {
  readonly filter: HostStream;
  readonly seq: number;
  readonly bytes: number;
  /** Of the instance it was accepted for. */
  readonly epoch: number;
  readonly possibleRepeat: boolean;
  constructor(filter: HostStream, epoch: number, { seq, bytes, repeat }: Delivery) {
    this.filter = filter;
    this.seq = seq;
    this.bytes = bytes;
    this.epoch = epoch;
    this.possibleRepeat = repeat;
  }
}

class HostStream extends StreamFilter {
  readonly uid: string;
  dirty = false;
  gapTold = false;
  /** Something was turned away for lack of room. */
  waits = false;
  constructor(uid: string, prefix: number, exceptions: readonly number[] = []) {
    super(prefix, exceptions);
    this.uid = uid;
  }
}

export interface DeliveryHostPort {
  /** Hands a message to the instance. */
  deliver(message: unknown, sender: Sender, receipt: Receipt): void;
  acknowledge(stream: string, prefix: number, others: readonly number[]): void;
  /** There is room again for what was turned away. */
  resume(stream: string): void;
  /** Something must be acknowledged: call `flush` at the end of this turn. */
  wantsFlush(): void;
}

export type OpenOutcome = {
  /** `forgotten`: nothing is known of this stream, although something of it is on its way. It is not open. */
  readonly verdict: 'continued' | 'crash' | 'forgotten';
  readonly next: number;
  readonly prefix: number;
  readonly exceptions: readonly number[];
};

const forgotten: OpenOutcome = { verdict: 'forgotten', next: 1, prefix: 0, exceptions: [] };

export class DeliveryHost {
  /** The epoch that deliveries must name; 0 while nothing runs here. */
  epoch = 0;
  plannedSince = 0;
  /** Messages handed to the instance, ever; and those turned away as repeats. */
  handled = 0;
  failed = 0;
  duplicates = 0;
  /** Accepted and not handled yet. */
  held = 0;
  heldBytes = 0;
  /** How often the bound on that was reached. */
  full = 0;
  readonly #port: DeliveryHostPort;
  #waiting = 0;
  #streams = new Map<string, HostStream>();
  #dirty: HostStream[] = [];

  constructor(port: DeliveryHostPort) {
    this.#port = port;
  }

  /** A new instance takes over what its predecessor had processed. */
  begin(epoch: number, plannedSince: number, watermarks: readonly Watermark[]): void {
    this.#streams = new Map(
      watermarks.map((mark) => [mark.stream, new HostStream(mark.stream, mark.prefix, mark.exceptions)]),
    );
    this.#dirty = [];
    this.#holdNothing();
    this.epoch = epoch;
    this.plannedSince = plannedSince;
  }

  /** The instance on this very node is replaced: what it had accepted and not handled will be sent again. */
  beginAgain(epoch: number): void {
    for (const stream of this.#streams.values()) stream.rewind();
    this.#holdNothing();
    this.epoch = epoch;
  }

  #holdNothing(): void {
    this.held = 0;
    this.heldBytes = 0;
    this.#waiting = 0;
    for (const stream of this.#streams.values()) stream.waits = false;
  }

  /** Nothing is accepted any more; what was handled so far. */
  end(): Watermark[] {
    this.flush();
    this.epoch = 0;
    this.#holdNothing();
    const marks: Watermark[] = [];
    for (const [uid, stream] of this.#streams) marks.push(stream.snapshot(uid));
    return marks;
  }

  streams(): Iterable<string> {
    return this.#streams.keys();
  }

  state(stream: string): OpenOutcome | undefined {
    const filter = this.#streams.get(stream);
    return filter && this.#outcome(filter, 'continued');
  }

  /** Undefined when there are too many streams. */
  open(stream: string, message: OpenMessage): OpenOutcome | undefined {
    let filter = this.#streams.get(stream);
    const sameLine = inOneLine(message.lastSentEpoch, this);
    // What is on its way was sent to a filter that has been dropped: nothing tells how far that one got. The sender settles
    // it and opens anew; until then there is no filter, so that a lost answer is given again.
    if (filter === undefined && sameLine && message.base < message.next) return forgotten;
    const continuous = message.base === message.next || sameLine;
    const start = continuous || message.repeat ? message.base : message.next;
    if (filter) {
      // Also where it is the same open once more, sent before the first was answered: what has come since stays accepted.
      filter.advance(start);
    } else {
      if (this.#streams.size >= limits.streams || (isCaller(stream) && !this.#roomForCaller())) return undefined;
      filter = new HostStream(stream, start - 1);
      this.#streams.set(stream, filter);
    }
    filter.gapTold = false;
    return this.#outcome(filter, continuous ? 'continued' : 'crash');
  }

  /** Callers come and go; those of one singleton never take the places of members. */
  #roomForCaller(): boolean {
    let callers = 0;
    for (const stream of this.#streams.keys()) if (isCaller(stream)) callers += 1;
    return callers < limits.callersRemembered;
  }

  #outcome(filter: StreamFilter, verdict: 'continued' | 'crash'): OpenOutcome {
    const { prefix, exceptions } = filter.snapshot('');
    return { verdict, next: filter.next, prefix, exceptions };
  }

  /**
   * `gap`: the sender must open again; `full`: there is no room, and it will be told when there is; `ignored`: a gap it was
   * told of already, or a repeat.
   */
  offer(stream: string, delivery: Delivery): 'accepted' | 'gap' | 'full' | 'ignored' {
    const filter = this.#streams.get(stream);
    if (!filter) return 'gap';
    if (isCaller(stream) && delivery.seq - filter.prefix > limits.callerWindow) return 'ignored';
    if (delivery.seq === filter.next && this.#isFull()) return this.#turnAway(filter);
    switch (filter.offer(delivery.seq)) {
      case 'accept': {
        const receipt = new Receipt(filter, this.epoch, delivery);
        this.held += 1;
        this.heldBytes += delivery.bytes;
        if (delivery.message === spoiled) this.settled(receipt, true);
        else this.#port.deliver(delivery.message, delivery.sender, receipt);
        return 'accepted';
      }
      case 'duplicate':
        this.duplicates += 1;
        this.#touch(filter);
        return 'ignored';
      case 'gap': {
        const told = filter.gapTold;
        filter.gapTold = true;
        return told ? 'ignored' : 'gap';
      }
    }
  }

  #isFull(): boolean {
    return this.held >= limits.hostHeldMessages || this.heldBytes >= limits.hostHeldBytes;
  }

  #turnAway(filter: HostStream): 'full' {
    this.full += 1;
    if (!filter.waits) this.#waiting += 1;
    filter.waits = true;
    // What follows it on the same link is a gap, of which there is no news.
    filter.gapTold = true;
    return 'full';
  }

  /** Half of what may be held is gone: those that were turned away send again. */
  #makeRoom(): void {
    if (this.held > limits.hostHeldMessages / 2 || this.heldBytes > limits.hostHeldBytes / 2) return;
    this.#waiting = 0;
    for (const [uid, stream] of this.#streams) {
      if (!stream.waits) continue;
      stream.waits = false;
      this.#port.resume(uid);
    }
  }

  /** The handler of a delivered message has settled. */
  settled(receipt: Receipt, failed: boolean): void {
    this.handled += 1;
    if (failed) this.failed += 1;
    if (receipt.epoch === this.epoch) {
      this.held -= 1;
      this.heldBytes -= receipt.bytes;
      if (this.#waiting > 0) this.#makeRoom();
    }
    receipt.filter.processed(receipt.seq);
    this.#touch(receipt.filter);
  }

  /**
   * After a kill: a message that was neither handled to the end nor given back was in the middle of its handler. It counts as
   * handled and failed, since handling it again could double its effects.
   */
  interrupted(returned: readonly Receipt[]): void {
    const back = new Map<HostStream, Set<number>>();
    for (const { filter, seq } of returned) {
      const known = back.get(filter);
      if (known) known.add(seq);
      else back.set(filter, new Set([seq]));
    }
    for (const stream of this.#streams.values()) {
      for (let seq = stream.prefix + 1; seq < stream.next; seq += 1) {
        if (stream.exceptions.has(seq) || back.get(stream)?.has(seq)) continue;
        stream.processed(seq);
        this.failed += 1;
        this.#touch(stream);
      }
    }
  }

  #touch(filter: HostStream): void {
    if (filter.dirty) return;
    filter.dirty = true;
    if (this.#dirty.push(filter) === 1) this.#port.wantsFlush();
  }

  /** Tells senders what has been handled since the last time. */
  flush(): void {
    const dirty = this.#dirty;
    if (dirty.length === 0) return;
    this.#dirty = [];
    for (const filter of dirty) {
      filter.dirty = false;
      const others = filter.untold.filter((seq) => seq > filter.prefix);
      filter.untold = [];
      this.#port.acknowledge(filter.uid, filter.prefix, others);
    }
  }

  /** The sender's process is gone for good. */
  forget(stream: string): void {
    this.#streams.delete(stream);
  }
}
