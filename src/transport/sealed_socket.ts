/**
 * A socket whose frames each carry a proof of who sent them and as the how-manieth: for links without TLS, where somebody on
 * the path could otherwise change, drop, repeat or invent frames after the handshake.
 *
 * A frame goes out as itself followed by the first 16 bytes of HMAC-SHA-256 over its number on this connection and itself,
 * under a key of its direction that both sides have derived from the secret and the whole handshake. Numbers are counted,
 * never sent. The first frame that does not fit ends the connection. Nothing is hidden: that takes TLS.
 *
 * The HMAC of the platform works in the background; frames keep their order on both sides all the same.
 */
import { RingQueue } from '../actor/ring_queue.ts';
import { coreLimits as limits } from '../limits.ts';
import type { LinkClose } from './contract.ts';
import type { FrameKeys } from './frame_keys.ts';
import { ownerFailedCode, sealBytes } from './protocol.ts';
import type { Socket } from './runtime.ts';

/** Tells the peer that a frame did not fit: a loss on both sides. */
export const brokenSealCode = 4502;

interface Job {
  readonly bytes: number;
  /** Set when its turn may come. */
  result: Uint8Array | undefined;
}

/** Background work whose results come in the order in which it was given. */
class InOrder {
  #jobs = new RingQueue<Job>();
  /** The oldest job, taken from the queue. */
  #head: Job | undefined;
  readonly #done: (result: Uint8Array) => void;
  readonly #failed: () => void;
  bytes = 0;

  constructor(done: (result: Uint8Array) => void, failed: () => void) {
    this.#done = done;
    this.#failed = failed;
  }

  get count(): number {
    return this.#jobs.length + (this.#head === undefined ? 0 : 1);
  }

  add(bytes: number, work: Promise<Uint8Array | undefined>): void {
    const job: Job = { bytes, result: undefined };
    if (this.#head === undefined) this.#head = job;
    else this.#jobs.push(job);
    this.bytes += bytes;
    work.then((result) => {
      if (result === undefined) return this.#failed();
      job.result = result;
      this.#flush();
    }, () => this.#failed());
  }

  clear(): void {
    this.#jobs = new RingQueue();
    this.#head = undefined;
    this.bytes = 0;
  }

  #flush(): void {
    for (let head = this.#head; head?.result !== undefined; head = this.#head) {
      this.#head = this.#jobs.shift();
      this.bytes -= head.bytes;
      this.#done(head.result);
    }
  }
}

export class SealedSocket implements Socket {
  onMessage: (bytes: Uint8Array) => void = () => {};
  onClose: (close: LinkClose) => void = () => {};
  onDrain: () => void = () => {};
  readonly #raw: Socket;
  readonly #keys: FrameKeys;
  /** A frame was lost on its way out. */
  readonly #dropped: () => void;
  readonly #outgoing: InOrder;
  readonly #incoming: InOrder;
  #sent = 0;
  #received = 0;
  /** Our own close, which waits for the frames before it. */
  #closing: { readonly code: number; readonly reason: string } | undefined;
  /** The connection's end, which waits for the frames before it. */
  #closed: LinkClose | undefined;
  #over = false;

  /** Takes over the events of `raw`. */
  constructor(raw: Socket, keys: FrameKeys, dropped: () => void) {
    this.#raw = raw;
    this.#keys = keys;
    this.#dropped = dropped;
    this.#outgoing = new InOrder((sealed) => this.#write(sealed), () => this.#lost());
    this.#incoming = new InOrder(
      (frame) => this.#deliver(frame),
      () => this.#broken('frame integrity: a forged frame'),
    );
    raw.onMessage = (bytes) => this.received(bytes);
    raw.onClose = (close) => this.#rawClosed(close);
    raw.onDrain = () => this.onDrain();
  }

  send(bytes: Uint8Array): boolean {
    if (this.#over || this.#closing !== undefined || this.#closed !== undefined) return true;
    this.#outgoing.add(bytes.byteLength + sealBytes, this.#keys.seal(bytes, this.#sent++));
    return true;
  }

  bufferedBytes(): number {
    return this.#outgoing.bytes + this.#raw.bufferedBytes();
  }

  close(code: number, reason: string): void {
    if (this.#over || this.#closing !== undefined) return;
    this.#closing = { code, reason };
    if (this.#outgoing.count === 0) this.#raw.close(code, reason);
  }

  /** Also for frames that came before there was a sealed socket to take them. */
  received(sealed: Uint8Array): void {
    if (this.#over) return;
    if (sealed.byteLength < sealBytes) return this.#broken('frame integrity: a frame without a seal');
    const { integrityBacklogBytes, integrityBacklogFrames } = limits;
    if (this.#incoming.bytes > integrityBacklogBytes || this.#incoming.count >= integrityBacklogFrames) {
      return this.#broken('frame integrity: too many frames wait for their check');
    }
    this.#incoming.add(sealed.byteLength, this.#keys.open(sealed, this.#received++));
  }

  #write(sealed: Uint8Array): void {
    if (this.#over || this.#closed !== undefined) return;
    if (!this.#raw.send(sealed)) return this.#lost();
    if (this.#closing !== undefined && this.#outgoing.count === 0) {
      this.#raw.close(this.#closing.code, this.#closing.reason);
    }
  }

  #lost(): void {
    if (this.#over || this.#closed !== undefined) return;
    this.#outgoing.clear();
    // A close of our own waits for nothing any more.
    if (this.#closing !== undefined) this.#raw.close(this.#closing.code, this.#closing.reason);
    this.#dropped();
  }

  /** Called from background work: nobody else catches what the owner throws. It costs the connection alone. */
  #deliver(frame: Uint8Array): void {
    if (this.#over) return;
    try {
      this.onMessage(frame);
    } catch (error) {
      const reason = `handler failed: ${error instanceof Error ? error.message : String(error)}`;
      this.#raw.close(ownerFailedCode, 'handler failed');
      return this.#end({ code: ownerFailedCode, reason, clean: false });
    }
    if (this.#closed !== undefined && this.#incoming.count === 0) this.#end(this.#closed);
  }

  #broken(reason: string): void {
    if (this.#over) return;
    this.#raw.close(brokenSealCode, reason);
    this.#end({ code: brokenSealCode, reason, clean: false });
  }

  #rawClosed(close: LinkClose): void {
    if (this.#over) return;
    this.#outgoing.clear();
    this.#closed = close;
    if (this.#incoming.count === 0) this.#end(close);
  }

  #end(close: LinkClose): void {
    this.#over = true;
    this.#outgoing.clear();
    this.#incoming.clear();
    this.onClose(close);
  }
}
