/** Tags of CBOR that both halves of `lean_codec.ts` know. */
export const SET_TAG = 258;
export const MAP_TAG = 259;
/** Little-endian, RFC 8746. */
export const arrayTags: readonly (readonly [tag: number, type: any])[] = [
  [64, Uint8Array],
  [68, Uint8ClampedArray],
  [69, Uint16Array],
  [70, Uint32Array],
  [71, BigUint64Array],
  [72, Int8Array],
  [77, Int16Array],
  [78, Int32Array],
  [79, BigInt64Array],
  [85, Float32Array],
  [86, Float64Array],
];
