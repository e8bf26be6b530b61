/**
 * A WebSocket client over a plain stream of bytes, from the answered upgrade to its end: what is sent in a turn, or while
 * a write is under way, goes out in one write; pings are answered; both closes are bounded in time.
 */
import { closeAnswerMs, ManagedSocket, type RawSocket } from './managed_socket.ts';
import { type FrameEvent, FrameReader, opcodes } from './ws_client_frames.ts';
import { FrameOutput, type MaskKeys } from './ws_client_output.ts';

/** A connected stream; `Deno.Conn` is one. */
export interface ByteStream {
  /** Resolves with how much was read, null at the end. */
  read(into: Uint8Array<ArrayBuffer>): Promise<number | null>;
  /** Resolves with how much was written, one byte at least. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<number>;
  /** Pending reads and writes end. */
  close(): void;
}

const readBytes = 64 * 1024;
/** A frame that would make more than this wait is dropped, which costs the connection. The layers above stop far below. */
const mostWaitingBytes = 256 * 1024 * 1024;
const protocolErrorCode = 1002;

/** `open` → `closing` (our close frame is on its way; only the peer's end is awaited, for a bounded time) → `ended`. */
type State = 'open' | 'closing' | 'ended';

export class ClientConnection implements RawSocket {
  readonly socket: ManagedSocket;
  readonly copies = true;
  readonly #stream: ByteStream;
  readonly #reader: FrameReader;
  readonly #output: FrameOutput;
  readonly #maxWaitingBytes: number;
  #state: State = 'open';
  #writing = false;
  #writable = true;
  #pong: Uint8Array | undefined;
  #endTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(stream: ByteStream, maxFrameBytes: number, keys: MaskKeys, maxWaitingBytes: number = mostWaitingBytes) {
    this.#maxWaitingBytes = maxWaitingBytes;
    this.#stream = stream;
    this.#output = new FrameOutput(keys);
    this.#reader = new FrameReader(maxFrameBytes, (event) => this.#onEvent(event));
    this.socket = new ManagedSocket(this, maxFrameBytes);
  }

  /** Reads until the end. `received` came in together with the answer to the upgrade. */
  async start(received: Uint8Array<ArrayBuffer>): Promise<void> {
    let why = '';
    try {
      this.#reader.push(received);
      const buffer = new Uint8Array(readBytes);
      while (this.#state !== 'ended') {
        const size = await this.#stream.read(buffer);
        if (size === null || this.#ended()) break;
        this.#reader.push(buffer.subarray(0, size));
      }
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    this.#end(why);
  }

  send(bytes: Uint8Array): boolean {
    if (this.#state !== 'open' || !this.#writable) return true;
    if (this.#output.bytes + bytes.byteLength > this.#maxWaitingBytes) return false;
    this.#output.add(opcodes.binary, bytes);
    this.#writeSoon();
    return true;
  }

  bufferedBytes(): number {
    return this.#output.bytes;
  }

  close(code: number, reason: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#endTimer ??= setTimeout(() => this.#end('no end after the close'), closeAnswerMs);
    if (!this.#writable) return;
    this.#output.addClose(code, reason);
    this.#writeSoon();
  }

  terminate(): void {
    this.#end('terminated');
  }

  #onEvent(event: FrameEvent): void {
    switch (event.kind) {
      case 'binary':
        return this.socket.received(event.bytes);
      case 'text':
        return this.socket.receivedText();
      case 'ping':
        // Only the latest one is answered (section 5.5.3 allows it), so a flood of pings cannot pile up.
        if (this.#state === 'open') this.#pong = event.bytes;
        return this.#writeSoon();
      case 'pong':
        return;
      case 'close':
        // The server ends the TCP connection first (section 7.1.1).
        this.close(event.code, '');
        return this.socket.ended(event.code, event.reason);
      case 'oversized':
        return this.socket.oversized(event.bytes);
      case 'violation':
        this.close(protocolErrorCode, event.detail);
        return this.socket.ended(protocolErrorCode, `protocol error: ${event.detail}`);
      default:
        return event satisfies never;
    }
  }

  /** At the end of the turn, so that whatever the turn sends shares a write. */
  #writeSoon(): void {
    if (this.#writing || !this.#writable) return;
    this.#writing = true;
    queueMicrotask(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    try {
      for (;;) {
        if (this.#pong !== undefined && this.#state === 'open') this.#output.add(opcodes.pong, this.#pong);
        this.#pong = undefined;
        const bytes = this.#output.next();
        if (bytes === undefined) break;
        const size = await this.#stream.write(bytes);
        if (this.#ended()) return;
        this.#output.wrote(size);
        this.socket.drained();
      }
    } catch {
      this.#stopWriting();
    }
    this.#writing = false;
  }

  /** What the peer said before it went may still be unread; reading finds its end, at the latest when the time is up. */
  #stopWriting(): void {
    this.#writable = false;
    this.#output.clear();
    if (this.#state !== 'ended') {
      this.#endTimer ??= setTimeout(() => this.#end('cannot write'), closeAnswerMs);
    }
  }

  #ended(): boolean {
    return this.#state === 'ended';
  }

  #end(why: string): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#writable = false;
    clearTimeout(this.#endTimer);
    this.#output.clear();
    try {
      this.#stream.close();
    } catch {
      // It has gone by itself.
    }
    this.socket.ended(1006, why);
  }
}
