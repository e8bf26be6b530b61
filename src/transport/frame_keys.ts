/** The keys of frame integrity: one for each direction of one connection, see `sealed_socket.ts`. */
import { sealBytes } from './protocol.ts';

type Bytes = Uint8Array<ArrayBuffer>;

export interface FrameKeys {
  /** `frame` and its seal, in memory of its own. */
  seal(frame: Uint8Array, number: number): Promise<Uint8Array>;
  /** The frame in `sealed`, or undefined when it is not the one that was sent as `number`. */
  open(sealed: Uint8Array, number: number): Promise<Uint8Array | undefined>;
}

/** What the keys of the frames that a side sends and receives are made from. */
export interface FrameMessages {
  readonly out: Bytes;
  readonly in: Bytes;
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' };

/** Keys for the frames of one connection. */
export async function frameKeysFrom(key: CryptoKey, messages: FrameMessages): Promise<FrameKeys> {
  const [outgoing, incoming] = await Promise.all([messages.out, messages.in].map((each) => derive(key, each)));
  return frameKeysOf(outgoing!, incoming!);
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
