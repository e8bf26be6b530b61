/**
 * A place to decode short messages from. A small typed array has no buffer of its own until somebody asks for it, as the codec
 * library does with all that it decodes; then it gets memory outside the heap, and that takes longer than decoding the message.
 */

const bytesKept = 512;
const whole = new Uint8Array(bytesKept);
/** By length. The library caches what it needs on each of them. */
const views: (Uint8Array | undefined)[] = [];

/** A copy of `bytes[start … end − 1]` that the next call overwrites; undefined when it is too long for that. */
export function scratchCopy(bytes: Uint8Array, start: number, end: number): Uint8Array | undefined {
  const length = end - start;
  if (length > bytesKept) return undefined;
  for (let i = 0; i < length; i++) whole[i] = bytes[start + i]!;
  return views[length] ??= new Uint8Array(whole.buffer, 0, length);
}
