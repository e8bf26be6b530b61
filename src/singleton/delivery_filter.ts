/**
 * The host's side of exactly-once delivery over planned moves: per sender stream, a contiguous prefix of processed
 * sequence numbers plus the processed ones above it. The same idea as TCP's cumulative and selective acknowledgement
 * (RFC 2018), kept until the next host has taken it over.
 */

/** Processed messages of one stream, as they travel between hosts. Everything up to `prefix` is processed. */
export interface Watermark {
  readonly stream: string;
  readonly prefix: number;
  /** Processed sequence numbers above `prefix`, ascending. */
  readonly exceptions: readonly number[];
}

/** One sender stream at its host. Mutable: it is touched for every message. */
export class StreamFilter {
  /** Everything up to here is processed. */
  prefix: number;
  /** The next sequence number to accept. */
  next: number;
  readonly exceptions: Set<number> = new Set();
  /** Processed numbers above the prefix that the sender has not been told of. */
  untold: number[] = [];

  constructor(prefix: number, exceptions: readonly number[] = []) {
    this.prefix = prefix;
    this.next = prefix + 1;
    for (const seq of exceptions) this.exceptions.add(seq);
  }

  /** `accept`: hand it to the instance; `duplicate`: had it already; `gap`: something before it is missing. */
  offer(seq: number): 'accept' | 'duplicate' | 'gap' {
    if (seq < this.next) return 'duplicate';
    if (seq > this.next) return 'gap';
    this.next = seq + 1;
    return this.exceptions.has(seq) ? 'duplicate' : 'accept';
  }

  /** The handler for `seq` has settled. */
  processed(seq: number): void {
    if (seq === this.prefix + 1) {
      this.prefix = seq;
      if (this.exceptions.size > 0) this.#absorb();
    } else if (seq > this.prefix) {
      this.exceptions.add(seq);
      this.untold.push(seq);
    }
  }

  /** The sender gave up on everything below `base`. */
  advance(base: number): void {
    if (base - 1 <= this.prefix) return;
    this.prefix = base - 1;
    for (const seq of this.exceptions) if (seq <= this.prefix) this.exceptions.delete(seq);
    this.#absorb();
  }

  /** Everything accepted and not processed was lost with the instance: it will be sent again. */
  rewind(): void {
    this.next = this.prefix + 1;
  }

  snapshot(stream: string): Watermark {
    return { stream, prefix: this.prefix, exceptions: [...this.exceptions].sort((a, b) => a - b) };
  }

  #absorb(): void {
    while (this.exceptions.delete(this.prefix + 1)) this.prefix += 1;
    if (this.next <= this.prefix) this.next = this.prefix + 1;
  }
}

/**
 * Was something that was last sent to the instance of `lastSentEpoch` sent to this instance or to one before it in its line
 * of planned moves? A higher epoch is none of them: it was given on another side, in a cluster that has fallen apart.
 */
export function inOneLine(
  lastSentEpoch: number,
  { plannedSince, epoch }: { readonly plannedSince: number; readonly epoch: number },
): boolean {
  return lastSentEpoch >= plannedSince && lastSentEpoch <= epoch;
}
