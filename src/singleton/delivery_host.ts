/**
 * The host's side of delivery: takes numbered messages from sender streams, hands them to the instance in order, filters
 * duplicates, and acknowledges what has been handled (rules 12 to 14).
 */
import { limits } from '../limits.ts';
import { StreamFilter, type Watermark } from './delivery_filter.ts';
import type { Sender } from './in_flight.ts';
import type { OpenMessage } from './messages.ts';

/** What an accepted message carries until its handler has settled. */
export class Receipt {
  readonly filter: HostStream;
  readonly seq: number;
  constructor(filter: HostStream, seq: number) {
    this.filter = filter;
    this.seq = seq;
  }
}

class HostStream extends StreamFilter {
  readonly uid: string;
  dirty = false;
  gapTold = false;
  constructor(uid: string, prefix: number, exceptions: readonly number[] = []) {
    super(prefix, exceptions);
    this.uid = uid;
  }
}

export interface DeliveryHostPort {
  /** Hands a message to the instance. */
  deliver(message: unknown, sender: Sender, receipt: Receipt): void;
  acknowledge(stream: string, prefix: number, others: readonly number[]): void;
  /** Something must be acknowledged: call `flush` at the end of this turn. */
  wantsFlush(): void;
}

export type OpenOutcome = {
  readonly verdict: 'continued' | 'crash';
  readonly next: number;
  readonly prefix: number;
  readonly exceptions: readonly number[];
};

export class DeliveryHost {
  /** The epoch that deliveries must name; 0 while nothing runs here. */
  epoch = 0;
  plannedSince = 0;
  /** Messages handed to the instance, ever; and those turned away as repeats. */
  handled = 0;
  failed = 0;
  duplicates = 0;
  readonly #port: DeliveryHostPort;
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
    this.epoch = epoch;
    this.plannedSince = plannedSince;
  }

  /** The instance on this very node is replaced: what it had accepted and not handled will be sent again. */
  beginAgain(epoch: number): void {
    for (const stream of this.#streams.values()) stream.rewind();
    this.epoch = epoch;
  }

  /** Nothing is accepted any more; what was handled so far. */
  end(): Watermark[] {
    this.flush();
    this.epoch = 0;
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
    const continuous = message.base === message.next || message.lastSentEpoch >= this.plannedSince;
    const start = continuous || message.repeat ? message.base : message.next;
    let filter = this.#streams.get(stream);
    if (filter) {
      // Also where it is the same open once more, sent before the first was answered: what has come since stays accepted.
      filter.advance(start);
    } else {
      if (this.#streams.size >= limits.streams) return undefined;
      filter = new HostStream(stream, start - 1);
      this.#streams.set(stream, filter);
    }
    filter.gapTold = false;
    return this.#outcome(filter, continuous ? 'continued' : 'crash');
  }

  #outcome(filter: StreamFilter, verdict: 'continued' | 'crash'): OpenOutcome {
    const { prefix, exceptions } = filter.snapshot('');
    return { verdict, next: filter.next, prefix, exceptions };
  }

  /** `gap`: the sender must open again; `ignored`: a gap it was told of already, or a repeat. */
  offer(stream: string, seq: number, message: unknown, sender: Sender): 'accepted' | 'gap' | 'ignored' {
    const filter = this.#streams.get(stream);
    if (!filter) return 'gap';
    switch (filter.offer(seq)) {
      case 'accept':
        this.#port.deliver(message, sender, new Receipt(filter, seq));
        return 'accepted';
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

  /** The handler of a delivered message has settled. */
  settled(receipt: Receipt, failed: boolean): void {
    this.handled += 1;
    if (failed) this.failed += 1;
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
