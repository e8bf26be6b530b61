/** Bytes as text, for parameters that every client passes on unchanged. */

interface Native {
  toBase64?(): string;
}

/** Where there is no `toBase64`, there is Node's. `btoa` takes seconds for megabytes. */
const { Buffer: buffer } = globalThis as unknown as {
  Buffer?: { from(bytes: ArrayBufferLike, offset: number, length: number): { toString(encoding: 'base64'): string } };
};

const chunk = 0x8000;

export function base64(bytes: Uint8Array): string {
  const native = (bytes as Native).toBase64?.();
  if (native !== undefined) return native;
  if (buffer !== undefined) return buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  let binary = '';
  for (let at = 0; at < bytes.length; at += chunk) binary += String.fromCharCode(...bytes.subarray(at, at + chunk));
  return btoa(binary);
}
