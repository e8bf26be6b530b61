/** Envelopes over one link that is nobody's peer: two lanes, batches by turn, a bounded queue. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { coreLimits as limits } from '../limits.ts';
import { MessageTooLargeError, SerializationError } from '../wire/errors.ts';
import { batchFrame, type Envelope, type Lane } from '../wire/batch.ts';
import type { Link } from './contract.ts';

export interface PipeOptions {
  readonly environment: Environment;
  /** @throws SerializationError */
  readonly encode: (envelope: Envelope) => Uint8Array;
  /** Of what waits here for a slow reader. */
  readonly maxMessages: number;
  readonly maxBytes: number;
  /** Bytes handed to the socket and not yet sent, above which the user lane waits; the system lane waits at twice that. */
  readonly socketBytes: number;
  /** There is room again. */
  readonly onDrain?: () => void;
}

const pollMs = 5;

export class EnvelopePipe {
  readonly link: Link;
  readonly #options: PipeOptions;
  readonly #queues: Record<Lane, Uint8Array[]> = { system: [], user: [] };
  #bytes = 0;
  #booked = false;
  #polling: Cancel | undefined;
  #closed = false;

  constructor(link: Link, options: PipeOptions) {
    this.link = link;
    this.#options = options;
  }

  /** More would only wait here. */
  get congested(): boolean {
    return this.#closed || this.#polling !== undefined || this.link.bufferedBytes() > this.#options.socketBytes;
  }

  /**
   * `full`: the other side reads too slowly, nothing was queued.
   * @throws SerializationError
   */
  send(lane: Lane, envelope: Envelope): 'queued' | 'full' | 'closed' {
    if (this.#closed) return 'closed';
    const { maxMessages, maxBytes, environment } = this.#options;
    const bytes = this.#options.encode(envelope);
    const { system, user } = this.#queues;
    const waiting = system.length + user.length;
    if (waiting >= maxMessages || (waiting > 0 && this.#bytes + bytes.length > maxBytes)) return 'full';
    this.#queues[lane].push(bytes);
    this.#bytes += bytes.length;
    if (this.#booked || this.#polling !== undefined) return 'queued';
    this.#booked = true;
    environment.turns.schedule(() => {
      this.#booked = false;
      this.#flush();
    });
    return 'queued';
  }

  #flush(): void {
    if (this.#closed || this.#polling !== undefined) return;
    const { socketBytes, environment, onDrain } = this.#options;
    this.#send('system', socketBytes * 2);
    this.#send('user', socketBytes);
    if (this.#bytes === 0) return;
    this.#polling = environment.timers.set(pollMs, () => {
      this.#polling = undefined;
      this.#flush();
      if (this.#polling === undefined) onDrain?.();
    });
  }

  #send(lane: Lane, maxBuffered: number): void {
    const queue = this.#queues[lane];
    let at = 0;
    while (at < queue.length && this.link.bufferedBytes() <= maxBuffered) {
      const from = at;
      let size = 0;
      while (at < queue.length && (at === from || size + queue[at]!.length <= limits.batchBytes)) {
        size += queue[at]!.length;
        at += 1;
      }
      this.link.send(batchFrame(lane, queue.slice(from, at), size));
      this.#bytes -= size;
    }
    queue.splice(0, at);
  }

  /** What is queued goes to the socket, whatever it has unsent, and the link ends. */
  close(code: number, reason: string): void {
    if (this.#closed) return;
    this.#send('system', Infinity);
    this.#send('user', Infinity);
    this.ended();
    this.link.close(code, reason);
  }

  /** The link is gone. */
  ended(): void {
    this.#closed = true;
    this.#polling?.();
    this.#polling = undefined;
  }
}

/** Why a value cannot be sent, in the words of the ledger. */
export function encodingFailure(error: unknown): { readonly reason: 'unserializable' | 'too-large'; detail: string } {
  if (!(error instanceof SerializationError)) throw error;
  const reason = error instanceof MessageTooLargeError ? 'too-large' : 'unserializable';
  return { reason, detail: error.message };
}
