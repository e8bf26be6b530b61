/**
 * What a WebSocket client writes (RFC 6455, sections 5.1 to 5.3): frames go masked into a few large chunks, so that one
 * write carries all that was sent while the last one was under way. No I/O.
 */
import { controlBytes, noCloseCode, opcodes } from './ws_client_frames.ts';

/** One write carries at most this much. */
export const chunkBytes = 256 * 1024;
/** Chunks kept for reuse, over all connections of the process; a connection at rest holds none. */
const maxSpareChunks = 16;
/** The longest header: two bytes, a 64-bit length, the key. */
const maxHeaderBytes = 14;
const keysAtOnce = 1024;

interface Chunk {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly words: Uint32Array<ArrayBuffer>;
  used: number;
}

const spareChunks: Chunk[] = [];

function takeChunk(): Chunk {
  const spare = spareChunks.pop();
  if (spare !== undefined) return spare;
  const buffer = new ArrayBuffer(chunkBytes);
  return { bytes: new Uint8Array(buffer), words: new Uint32Array(buffer), used: 0 };
}

function giveBack(chunk: Chunk): void {
  if (spareChunks.length >= maxSpareChunks) return;
  chunk.used = 0;
  spareChunks.push(chunk);
}

/** A fresh key for every frame, drawn from a strong source in batches. */
export class MaskKeys {
  readonly #fill: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly #bytes = new Uint8Array(keysAtOnce * 4);
  #next = this.#bytes.length;

  constructor(fill: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#fill = fill;
  }

  /** Valid until the next call. */
  next(): Uint8Array<ArrayBuffer> {
    if (this.#next === this.#bytes.length) {
      this.#fill(this.#bytes);
      this.#next = 0;
    }
    this.#next += 4;
    return this.#bytes.subarray(this.#next - 4, this.#next);
  }
}

const turnedBytes = new Uint8Array(4);
const turnedWord = new Uint32Array(turnedBytes.buffer);

/**
 * Masks `bytes[start, end)` in place, a word at a time. `offset` is the place of `start` within the payload; `words` views
 * the same memory. The word is put together in memory, so the byte order of the machine does not matter.
 */
export function maskInPlace(
  { bytes, words }: { readonly bytes: Uint8Array; readonly words: Uint32Array },
  start: number,
  end: number,
  key: Uint8Array,
  offset: number,
): void {
  let at = start;
  const turn = offset - start;
  while (at < end && (at & 3) !== 0) {
    bytes[at] = (bytes[at] as number) ^ (key[(turn + at) & 3] as number);
    at += 1;
  }
  for (let i = 0; i < 4; i += 1) turnedBytes[i] = key[(turn + at + i) & 3] as number;
  const word = turnedWord[0] as number;
  const lastWord = end >> 2;
  xorWords(words, at >> 2, lastWord, word);
  for (at = Math.max(at, lastWord << 2); at < end; at += 1) {
    bytes[at] = (bytes[at] as number) ^ (key[(turn + at) & 3] as number);
  }
}

/** Unrolled: twice as fast as the plain loop. */
function xorWords(words: Uint32Array, start: number, end: number, word: number): void {
  let i = start;
  for (const unrolled = end - 7; i < unrolled; i += 8) {
    words[i] = (words[i] as number) ^ word;
    words[i + 1] = (words[i + 1] as number) ^ word;
    words[i + 2] = (words[i + 2] as number) ^ word;
    words[i + 3] = (words[i + 3] as number) ^ word;
    words[i + 4] = (words[i + 4] as number) ^ word;
    words[i + 5] = (words[i + 5] as number) ^ word;
    words[i + 6] = (words[i + 6] as number) ^ word;
    words[i + 7] = (words[i + 7] as number) ^ word;
  }
  for (; i < end; i += 1) words[i] = (words[i] as number) ^ word;
}

export class FrameOutput {
  readonly #keys: MaskKeys;
  #waiting: Chunk[] = [];
  /** The chunk that is being written; nothing is added to it any more. */
  #writing: { readonly chunk: Chunk; from: number } | undefined;
  #bytes = 0;

  constructor(keys: MaskKeys) {
    this.#keys = keys;
  }

  /** Bytes added and not yet written, headers included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Copies `payload` as one frame. */
  add(opcode: number, payload: Uint8Array): void {
    const size = payload.length;
    const key = this.#keys.next();
    const chunk = this.#room(maxHeaderBytes);
    const before = chunk.used;
    writeHeader(chunk, opcode, size, key);
    this.#bytes += chunk.used - before + size;
    for (let from = 0; from < size;) {
      const { bytes, words, used } = this.#room(1);
      const part = Math.min(chunkBytes - used, size - from);
      bytes.set(part === size ? payload : payload.subarray(from, from + part), used);
      maskInPlace({ bytes, words }, used, used + part, key, from);
      (this.#waiting.at(-1) as Chunk).used += part;
      from += part;
    }
  }

  addClose(code: number, reason: string): void {
    if (code === noCloseCode) return this.add(opcodes.close, new Uint8Array(0));
    const payload = new Uint8Array(controlBytes);
    new DataView(payload.buffer).setUint16(0, code);
    const { written } = new TextEncoder().encodeInto(reason, payload.subarray(2));
    this.add(opcodes.close, payload.subarray(0, 2 + written));
  }

  /** What to write next, oldest first; the same again until `wrote` says it is written. Undefined: nothing waits. */
  next(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#writing === undefined) {
      const chunk = this.#waiting.shift();
      if (chunk === undefined) return undefined;
      this.#writing = { chunk, from: 0 };
    }
    const { chunk, from } = this.#writing;
    return chunk.bytes.subarray(from, chunk.used);
  }

  /** The first `count` bytes of `next()` are written. */
  wrote(count: number): void {
    if (this.#writing === undefined) return;
    this.#bytes -= count;
    this.#writing.from += count;
    if (this.#writing.from < this.#writing.chunk.used) return;
    giveBack(this.#writing.chunk);
    this.#writing = undefined;
  }

  /** Forgets what waits. A chunk under way is not reused: the write may still be looking at it. */
  clear(): void {
    this.#waiting.forEach(giveBack);
    this.#waiting = [];
    this.#writing = undefined;
    this.#bytes = 0;
  }

  #room(size: number): Chunk {
    const last = this.#waiting.at(-1);
    if (last !== undefined && chunkBytes - last.used >= size) return last;
    const chunk = takeChunk();
    this.#waiting.push(chunk);
    return chunk;
  }
}

function writeHeader(chunk: Chunk, opcode: number, size: number, key: Uint8Array): void {
  const { bytes } = chunk;
  let at = chunk.used;
  const byte = (value: number) => {
    bytes[at] = value;
    at += 1;
  };
  byte(0x80 | opcode);
  if (size < 126) byte(0x80 | size);
  else if (size < 2 ** 16) {
    byte(0x80 | 126);
    byte(size >> 8);
    byte(size & 0xff);
  } else {
    byte(0x80 | 127);
    for (let shift = 7; shift >= 0; shift -= 1) byte(Math.floor(size / 256 ** shift) & 0xff);
  }
  for (let i = 0; i < 4; i += 1) byte(key[i] as number);
  chunk.used = at;
}
