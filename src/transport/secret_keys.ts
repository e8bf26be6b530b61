/** The cluster's secret as HMAC keys: one to prove with, several to accept, so that a secret can be changed in place. */
import { type FrameKeys, sealBytes } from './sealed_socket.ts';

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
  frameKeys(secret: number, messages: { readonly out: Bytes; readonly in: Bytes }): Promise<FrameKeys>;
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
      const [outgoing, incoming] = await Promise.all([messages.out, messages.in].map((each) => derive(key, each)));
      return frameKeysOf(outgoing!, incoming!);
    },
  };
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' };

export function importKey(text: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', new TextEncoder().encode(text), algorithm, false, ['sign', 'verify']);
}

async function derive(key: CryptoKey, message: Bytes): Promise<CryptoKey> {
  return await crypto.subtle.importKey('raw', await crypto.subtle.sign('HMAC', key, message), algorithm, false, [
    'sign',
  ]);
}

const numberBytes = 8;

function frameKeysOf(outgoing: CryptoKey, incoming: CryptoKey): FrameKeys {
  return {
    async seal(frame, number) {
      const whole = new Uint8Array(numberBytes + frame.byteLength + sealBytes);
      const body = putNumbered(whole, frame, number);
      whole.set(new Uint8Array(await crypto.subtle.sign('HMAC', outgoing, body), 0, sealBytes), body.byteLength);
      return whole.subarray(numberBytes);
    },
    async open(sealed, number) {
      const frame = sealed.subarray(0, sealed.byteLength - sealBytes);
      const body = putNumbered(new Uint8Array(numberBytes + frame.byteLength), frame, number);
      const mac = new Uint8Array(await crypto.subtle.sign('HMAC', incoming, body));
      let difference = 0;
      for (let i = 0; i < sealBytes; i++) difference |= mac[i]! ^ sealed[frame.byteLength + i]!;
      return difference === 0 ? frame : undefined;
    },
  };
}

/** The part of `into` that the seal covers: the number as 64 bits, then the frame. */
function putNumbered(into: Bytes, frame: Uint8Array, number: number): Bytes {
  const view = new DataView(into.buffer);
  view.setUint32(0, Math.floor(number / 2 ** 32));
  view.setUint32(4, number >>> 0);
  into.set(frame, numberBytes);
  return into.subarray(0, numberBytes + frame.byteLength);
}
