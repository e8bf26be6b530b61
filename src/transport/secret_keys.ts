/** The cluster's secret as HMAC keys: one to prove with, several to accept, so that a secret can be changed in place. */
import { type FrameKeys, frameKeysFrom, type FrameMessages } from './frame_keys.ts';

/**
 * Rotation in three rolling restarts: `{ current: old, also: [new] }`, then `{ current: new, also: [old] }`, then `new`.
 * The strength is that of the secret: use at least 16 random bytes, since a peer that is dialled sees one proof.
 */
export type Secret = string | { readonly current: string; readonly also: readonly string[] };

/** The key of clusters without a secret. It is public: both sides run the same exchange and prove nothing. */
const publicKey = 'singlet: no secret configured';

/** The secret that proves this node itself. */
export const ownSecret = 0;
export const noSecret = -1;

export interface SecretKeys {
  /** With the own secret. */
  sign(message: Uint8Array<ArrayBuffer>): Promise<Uint8Array>;
  /**
   * Which accepted secret the MAC was made with; `noSecret` for none. Constant time in the MAC, and all accepted secrets are
   * tried in every case.
   */
  verify(message: Uint8Array<ArrayBuffer>, mac: Uint8Array): Promise<number>;
  /** Keys for the frames of one connection, each derived from one accepted secret and a message of the handshake. */
  frameKeys(secret: number, messages: FrameMessages): Promise<FrameKeys>;
}

type Bytes = Uint8Array<ArrayBuffer>;

export async function importSecret(secret: Secret | undefined): Promise<SecretKeys> {
  const current = await importKey(
    secret === undefined ? publicKey : typeof secret === 'string' ? secret : secret.current,
  );
  const also = typeof secret === 'object' ? await Promise.all(secret.also.map(importKey)) : [];
  const accepted = [current, ...also];
  return {
    sign: async (message) => new Uint8Array(await crypto.subtle.sign('HMAC', current, message)),
    async verify(message, mac) {
      const copy = Uint8Array.from(mac);
      const results = await Promise.all(
        accepted.map((key) => crypto.subtle.verify('HMAC', key, copy, message)),
      );
      return results.indexOf(true);
    },
    async frameKeys(secret, messages) {
      const key = accepted[secret];
      if (key === undefined) throw new Error('no such secret');
      return await frameKeysFrom(key, messages);
    },
  };
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' };

export function importKey(text: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', new TextEncoder().encode(text), algorithm, false, ['sign', 'verify']);
}
