/** Warm state on its way between hosts: cut into chunks, put together again, verified. */
import { limits } from '../limits.ts';
import { crc32 } from '../wire/crc32.ts';

export function chunksOf(state: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < state.length; at += limits.handOverChunkBytes) {
    chunks.push(state.subarray(at, at + limits.handOverChunkBytes));
  }
  return chunks;
}

/** The state that one peer is sending for one attempt. Chunks come in order; a first chunk starts anew. */
export class StateAssembly {
  readonly nonce: string;
  /** When the last chunk came, on the monotonic clock. */
  lastAt: number;
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(nonce: string, maxBytes: number, now: number) {
    this.nonce = nonce;
    this.#maxBytes = maxBytes;
    this.lastAt = now;
  }

  add(index: number, bytes: Uint8Array, now: number): void {
    this.lastAt = now;
    if (index === 0) {
      this.#chunks = [];
      this.#bytes = 0;
    }
    if (index !== this.#chunks.length || this.#bytes + bytes.length > this.#maxBytes) return;
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
  }

  /** `incomplete`: parts are missing, it must be sent again; `damaged`: all there, and not what was sent. */
  finish(bytes: number, checksum: number): Uint8Array | 'incomplete' | 'damaged' | 'too-large' {
    if (bytes > this.#maxBytes) return 'too-large';
    if (bytes !== this.#bytes) return 'incomplete';
    const state = new Uint8Array(bytes);
    let at = 0;
    for (const chunk of this.#chunks) {
      state.set(chunk, at);
      at += chunk.length;
    }
    return crc32(state) === checksum ? state : 'damaged';
  }
}
