/** The bearer token that a cluster's secret stands for, so that one secret is enough to run a cluster and operate it. */

const message = 'singlet bearer token';

/** The same on every node with this secret; the secret cannot be told from it. See `tokenRecipe` for a shell. */
export async function tokenOf(secret: string): Promise<string> {
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  const bytes = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(message)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Prints the token of the secret in `$SECRET`. */
export const tokenRecipe = `printf '${message}' | openssl dgst -sha256 -hmac "$SECRET" | sed 's/.* //'`;
