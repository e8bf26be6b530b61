/** Bytes as text, for parameters that every client passes on unchanged. */

interface Native {
  toBase64?(): string;
}

const chunk = 0x8000;

export function base64(bytes: Uint8Array): string {
  const native = (bytes as Native).toBase64?.();
  if (native !== undefined) return native;
  let binary = '';
  for (let at = 0; at < bytes.length; at += chunk) binary += String.fromCharCode(...bytes.subarray(at, at + chunk));
  return btoa(binary);
}
