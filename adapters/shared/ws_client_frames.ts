/**
 * What a WebSocket client reads (RFC 6455, section 5): bytes in, events out, no I/O. No extension is ever negotiated, so
 * every reserved bit, opcode and mask is an error. Memory per connection is bounded by the size of one message.
 */

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** The payload of a control frame is at most this long. */
export const controlBytes = 125;

/** Stands for a close frame without a code; never on the wire. */
export const noCloseCode = 1005;

export type FrameEvent =
  | { readonly kind: 'binary'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'text' }
  | { readonly kind: 'ping'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'pong' }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }
  /** A message above the limit; `bytes` counts what its frames so far announce. */
  | { readonly kind: 'oversized'; readonly bytes: number }
  | { readonly kind: 'violation'; readonly detail: string };

interface Frame {
  readonly opcode: number;
  readonly final: boolean;
  left: number;
}

interface Message {
  readonly binary: boolean;
  buffer: Uint8Array<ArrayBuffer>;
  filled: number;
}

const maxHeaderBytes = 10;

/** Reads the frames of a server. After `close`, `oversized` or `violation` there are no more events. */
export class FrameReader {
  readonly #maxMessageBytes: number;
  readonly #sink: (event: FrameEvent) => void;
  readonly #header = new Uint8Array(maxHeaderBytes);
  #headerBytes = 0;
  #frame: Frame | undefined;
  #message: Message | undefined;
  #control: Message | undefined;
  #over = false;

  constructor(maxMessageBytes: number, sink: (event: FrameEvent) => void) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#sink = sink;
  }

  /** `bytes` may be reused afterwards: what events carry is copied. */
  push(bytes: Uint8Array<ArrayBuffer>): void {
    let at = 0;
    while (!this.#over) {
      if (this.#frame === undefined) {
        at = this.#takeHeader(bytes, at);
        if (this.#frame === undefined) return;
      }
      const frame: Frame = this.#frame;
      const size = Math.min(frame.left, bytes.length - at);
      this.#takePayload(frame, bytes, at, size);
      at += size;
      if (frame.left > 0) return;
      this.#frame = undefined;
      this.#complete(frame);
    }
  }

  /** Returns where it stopped: behind the header, which `#frame` then holds, or at the end of `bytes`. */
  #takeHeader(bytes: Uint8Array, start: number): number {
    const header = this.#header;
    for (let at = start; at < bytes.length;) {
      header[this.#headerBytes] = bytes[at] as number;
      this.#headerBytes += 1;
      at += 1;
      if (this.#headerBytes < 2) continue;
      const [first, second] = [header[0] as number, header[1] as number];
      if (this.#headerBytes === 2) {
        const problem = wrongStart(first, second, this.#message !== undefined);
        if (problem !== undefined) return this.#end({ kind: 'violation', detail: problem }, at);
      }
      if (this.#headerBytes < headerLength(second)) continue;
      this.#headerBytes = 0;
      const length = payloadLength(header);
      if (length === undefined) return this.#end({ kind: 'violation', detail: 'badly encoded length' }, at);
      this.#begin({ opcode: first & 0x0f, final: first >= 0x80, left: length }, at);
      return at;
    }
    return bytes.length;
  }

  #begin(frame: Frame, at: number): void {
    if (frame.opcode >= opcodes.close) {
      this.#control = { binary: true, buffer: new Uint8Array(frame.left), filled: 0 };
    } else {
      const total = frame.left + (this.#message?.filled ?? 0);
      if (total > this.#maxMessageBytes) return void this.#end({ kind: 'oversized', bytes: total }, at);
      if (this.#message !== undefined) reserve(this.#message, total, this.#maxMessageBytes);
      else {
        this.#message = { binary: frame.opcode === opcodes.binary, buffer: new Uint8Array(frame.left), filled: 0 };
      }
    }
    this.#frame = frame;
  }

  #takePayload(frame: Frame, bytes: Uint8Array<ArrayBuffer>, at: number, size: number): void {
    if (size === 0) return;
    const target = (frame.opcode >= opcodes.close ? this.#control : this.#message) as Message;
    target.buffer.set(bytes.subarray(at, at + size), target.filled);
    target.filled += size;
    frame.left -= size;
  }

  #complete(frame: Frame): void {
    if (frame.opcode >= opcodes.close) {
      const { buffer } = this.#control as Message;
      this.#control = undefined;
      if (frame.opcode === opcodes.ping) this.#sink({ kind: 'ping', bytes: buffer });
      else if (frame.opcode === opcodes.pong) this.#sink({ kind: 'pong' });
      else this.#end(closeEvent(buffer), 0);
      return;
    }
    if (!frame.final) return;
    const { binary, buffer, filled } = this.#message as Message;
    this.#message = undefined;
    if (!binary) this.#sink({ kind: 'text' });
    else this.#sink({ kind: 'binary', bytes: filled === buffer.length ? buffer : buffer.slice(0, filled) });
  }

  #end(event: FrameEvent, at: number): number {
    this.#over = true;
    this.#message = undefined;
    this.#sink(event);
    return at;
  }
}

/** Grows by doubling, so that many small fragments cost no more than one large frame. */
function reserve(message: Message, total: number, limit: number): void {
  if (total <= message.buffer.length) return;
  const buffer = new Uint8Array(Math.min(limit, Math.max(total, message.buffer.length * 2)));
  buffer.set(message.buffer.subarray(0, message.filled));
  message.buffer = buffer;
}

function wrongStart(first: number, second: number, within: boolean): string | undefined {
  const opcode = first & 0x0f;
  if ((first & 0x70) !== 0) return 'reserved bits are set';
  if ((second & 0x80) !== 0) return 'a server must not mask';
  if (opcode >= opcodes.close) {
    if (opcode > opcodes.pong) return `opcode ${opcode} is not defined`;
    if (first < 0x80) return 'a control frame is fragmented';
    return second > controlBytes ? 'a control frame is too long' : undefined;
  }
  if (opcode > opcodes.binary) return `opcode ${opcode} is not defined`;
  if (opcode === opcodes.continuation) return within ? undefined : 'a continuation without a message';
  return within ? 'a message inside another one' : undefined;
}

function headerLength(second: number): number {
  const length = second & 0x7f;
  if (length < 126) return 2;
  return length === 126 ? 4 : maxHeaderBytes;
}

/** Undefined when the length is not in its shortest form, or above 2^63. */
function payloadLength(header: Uint8Array): number | undefined {
  const view = new DataView(header.buffer, header.byteOffset);
  const short = view.getUint8(1) & 0x7f;
  if (short < 126) return short;
  if (short === 126) {
    const length = view.getUint16(2);
    return length < 126 ? undefined : length;
  }
  const high = view.getUint32(2);
  const length = high * 2 ** 32 + view.getUint32(6);
  return high >= 2 ** 31 || length < 2 ** 16 ? undefined : length;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function closeEvent(payload: Uint8Array<ArrayBuffer>): FrameEvent {
  if (payload.length === 0) return { kind: 'close', code: noCloseCode, reason: '' };
  if (payload.length === 1) return { kind: 'violation', detail: 'a close frame of one byte' };
  const code = new DataView(payload.buffer, payload.byteOffset).getUint16(0);
  const usable = (code >= 1000 && code <= 1014 && !(code >= 1004 && code <= 1006)) || (code >= 3000 && code <= 4999);
  if (!usable) return { kind: 'violation', detail: `close code ${code}` };
  try {
    return { kind: 'close', code, reason: utf8.decode(payload.subarray(2)) };
  } catch {
    return { kind: 'violation', detail: 'a close reason that is not UTF-8' };
  }
}
