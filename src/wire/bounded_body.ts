/** Bodies of requests and answers, as far as they may go: in bytes, and in pieces. */
import { limits } from '../limits.ts';

/**
 * What really arrives, whatever the headers say. Undefined, with the rest refused, when that is more than `maxBytes`, or when it
 * comes in so many pieces that reading it would keep the process from everything else: each costs a turn of the reader.
 */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (body === null) return new Uint8Array(0);
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(pieces, size);
    pieces.push(value);
    size += value.length;
    if (size <= maxBytes && pieces.length <= limits.bodyPieces + size / limits.bodyPieceBytes) continue;
    // Not awaited: on some runtimes it waits for the peer.
    reader.cancel().catch(() => {});
    return undefined;
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
