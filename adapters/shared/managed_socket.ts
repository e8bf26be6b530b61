/**
 * One behaviour for the sockets of every runtime: events wait until the owner listens, the close comes exactly once and
 * within a bound, abnormal closes look alike, and oversized frames end the connection.
 */
import type { LinkClose } from '../../src/transport/contract.ts';
import type { Socket } from '../../src/transport/runtime.ts';

/** How long a peer may take to answer a close before the connection is dropped. */
export const closeAnswerMs = 1_000;

/** Close code for a peer that broke the framing rules (a text frame, a frame above the limit). */
const badFrameCode = 4400;

/** Close code when the owner of the connection failed on a frame. */
const ownerFailedCode = 4501;

/** A WebSocket close reason holds at most 123 bytes of UTF-8. */
const reasonBytes = 123;

/** What a runtime's own socket can do. */
export interface RawSocket {
  /** False when the runtime dropped the frame; true on a connection that is closing (its close event is on the way). */
  send(bytes: Uint8Array): boolean;
  /** See `Socket`. */
  readonly copies?: boolean;
  bufferedBytes(): number;
  close(code: number, reason: string): void;
  /** Drops the connection without waiting for anybody. */
  terminate(): void;
}

type State = { kind: 'open' } | { kind: 'closing'; own: LinkClose } | { kind: 'closed' };

export class ManagedSocket implements Socket {
  readonly #raw: RawSocket;
  readonly #maxFrameBytes: number;
  readonly #waiting: (Uint8Array | LinkClose)[] = [];
  readonly #endListeners: (() => void)[] = [];
  onDrain: () => void = () => {};
  #state: State = { kind: 'open' };
  #onMessage: ((bytes: Uint8Array) => void) | undefined;
  #onClose: ((close: LinkClose) => void) | undefined;
  #flushing = false;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(raw: RawSocket, maxFrameBytes: number) {
    this.#raw = raw;
    this.#maxFrameBytes = maxFrameBytes;
  }

  get onMessage(): (bytes: Uint8Array) => void {
    return this.#onMessage ?? (() => {});
  }

  set onMessage(listener: (bytes: Uint8Array) => void) {
    this.#onMessage = listener;
    this.#flushLater();
  }

  get onClose(): (close: LinkClose) => void {
    return this.#onClose ?? (() => {});
  }

  set onClose(listener: (close: LinkClose) => void) {
    this.#onClose = listener;
    this.#flushLater();
  }

  send(bytes: Uint8Array): boolean {
    if (this.#state.kind !== 'open') return true;
    try {
      return this.#raw.send(bytes);
    } catch {
      return false;
    }
  }

  get copies(): boolean {
    return this.#raw.copies === true;
  }

  bufferedBytes(): number {
    return this.#state.kind === 'open' ? this.#raw.bufferedBytes() : 0;
  }

  close(code: number, reason: string): void {
    this.#closeAs({ code, reason: fittingReason(reason), clean: true });
  }

  /** Drops the connection now; the close event follows. */
  terminate(): void {
    if (this.#state.kind === 'closed') return;
    const own = this.#state.kind === 'closing' ? this.#state.own : lost('terminated');
    this.#finish(own);
    attempt(() => this.#raw.terminate());
  }

  /** For the adapter: a frame came in. After a close of our own, what still arrives is dropped on every runtime alike. */
  received(bytes: Uint8Array): void {
    if (this.#state.kind !== 'open') return;
    if (bytes.byteLength > this.#maxFrameBytes) this.oversized(bytes.byteLength);
    else this.#emit(bytes);
  }

  /** For the adapter: some of what was sent has left the process. */
  drained(): void {
    if (this.#state.kind === 'open') this.onDrain();
  }

  /** For the adapter: a frame above the limit was announced, and not taken in. */
  oversized(byteLength: number): void {
    const reason = `frame of ${byteLength} bytes, limit ${this.#maxFrameBytes}`;
    this.#closeAs({ code: badFrameCode, reason, clean: false });
  }

  receivedText(): void {
    this.#closeAs({ code: badFrameCode, reason: 'text frame on a binary connection', clean: false });
  }

  /** For the adapter: the connection is gone. `code` is whatever the runtime says. */
  ended(code: number, reason: string): void {
    if (this.#state.kind === 'closed') return;
    if (this.#state.kind === 'closing') this.#finish(this.#state.own);
    else if (code === 1000 || (code >= 4000 && code <= 4999)) this.#finish({ code, reason, clean: true });
    else this.#finish(lost(reason));
  }

  /** Runs once when the connection has ended, before the owner hears of it. */
  whenEnded(run: () => void): void {
    if (this.#state.kind === 'closed') run();
    else this.#endListeners.push(run);
  }

  /** The owner is told `detail`, the peer only `own.reason`. */
  #closeAs(own: LinkClose, detail = own.reason): void {
    if (this.#state.kind !== 'open') return;
    this.#state = { kind: 'closing', own: { ...own, reason: detail } };
    this.#closeTimer = setTimeout(() => this.terminate(), closeAnswerMs);
    attempt(() => this.#raw.close(own.code, own.reason));
  }

  #finish(close: LinkClose): void {
    this.#state = { kind: 'closed' };
    clearTimeout(this.#closeTimer);
    for (const run of this.#endListeners.splice(0)) run();
    this.#emit(close);
  }

  /** Straight through once the owner listens and nothing older waits. */
  #emit(event: Uint8Array | LinkClose): void {
    const direct = event instanceof Uint8Array && this.#waiting.length === 0 && this.#onMessage !== undefined &&
      this.#onClose !== undefined;
    if (direct) return this.#tell(event);
    this.#waiting.push(event);
    this.#flushLater();
  }

  /** A close also takes this way, so that it never runs inside the owner's own call to `close` or `terminate`. */
  #flushLater(): void {
    if (this.#flushing || this.#waiting.length === 0) return;
    if (this.#onMessage === undefined || this.#onClose === undefined) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      for (const event of this.#waiting.splice(0)) this.#tell(event);
      this.#flushLater();
    });
  }

  /** An owner that throws costs its own connection; on some runtimes it would otherwise end the process. */
  #tell(event: Uint8Array | LinkClose): void {
    try {
      if (event instanceof Uint8Array) this.#onMessage?.(event);
      else this.#onClose?.(event);
    } catch (error) {
      const reason = `handler failed: ${error instanceof Error ? error.message : String(error)}`;
      this.#closeAs({ code: ownerFailedCode, reason: 'handler failed', clean: false }, reason);
    }
  }
}

function lost(reason: string): LinkClose {
  return { code: 1006, reason: reason === '' ? 'connection lost' : reason, clean: false };
}

function attempt(run: () => void): void {
  try {
    run();
  } catch {
    // The connection is being given up; there is nobody to tell.
  }
}

/** Cuts a reason to what a close frame can carry, at a character boundary. */
export function fittingReason(reason: string): string {
  const encoder = new TextEncoder();
  let bytes = 0;
  let text = '';
  for (const character of reason) {
    bytes += encoder.encode(character).byteLength;
    if (bytes > reasonBytes) break;
    text += character;
  }
  return text;
}
