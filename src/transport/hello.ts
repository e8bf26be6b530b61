/**
 * The only two frames a node decodes before a peer has proved itself: `hello` and `proof`. Fixed shapes, big-endian,
 * strings and byte strings with a 16-bit length, nothing nested, and a bound on the whole.
 *
 *     hello: 1, protocol u16, side u8, flags u8 (1 secured, 2 frame integrity), cluster name, address, uid, runtime, role count u8, roles …, nonce
 *     proof: 2, MAC
 *
 * Every protocol version starts with `1, protocol u16`, so that any two versions can name each other.
 */
import { limits } from '../limits.ts';
import { parseAddress } from './address.ts';
import type { Address } from './contract.ts';
import { macBytes, nonceBytes, protocolVersion } from './protocol.ts';

export { macBytes, nonceBytes, protocolVersion } from './protocol.ts';
/** Bound of a `hello`, all roles and names at their longest. */
export const helloBytes = 16 * 1024;

const helloTag = 1;
const proofTag = 2;
const securedFlag = 1;
const integrityFlag = 2;

export type Side = 'initiator' | 'responder';

export interface Hello {
  readonly side: Side;
  /** True when this node has a secret configured. */
  readonly secured: boolean;
  /** True when this node wants a seal on every frame of the link; one side is enough. Only with a secret. */
  readonly integrity: boolean;
  readonly clusterName: string;
  readonly address: Address;
  readonly uid: string;
  readonly runtime: string;
  readonly roles: readonly string[];
  readonly nonce: Uint8Array;
}

export type HandshakeFrame =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'other-protocol'; readonly protocol: number }
  | { readonly kind: 'proof'; readonly mac: Uint8Array }
  | { readonly kind: 'malformed'; readonly why: string };

export function encodeHello(hello: Hello): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const texts = [hello.clusterName, hello.address, hello.uid, hello.runtime].map((text) => encoder.encode(text));
  const roles = hello.roles.map((role) => encoder.encode(role));
  const size = 6 + [...texts, ...roles, hello.nonce].reduce((sum, part) => sum + 2 + part.byteLength, 0);
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  bytes[0] = helloTag;
  view.setUint16(1, protocolVersion);
  bytes[3] = hello.side === 'initiator' ? 1 : 2;
  bytes[4] = (hello.secured ? securedFlag : 0) | (hello.integrity ? integrityFlag : 0);
  let at = 5;
  const put = (part: Uint8Array) => {
    view.setUint16(at, part.byteLength);
    bytes.set(part, at + 2);
    at += 2 + part.byteLength;
  };
  texts.forEach(put);
  bytes[at++] = roles.length;
  roles.forEach(put);
  put(hello.nonce);
  return bytes;
}

export function encodeProof(mac: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(1 + mac.byteLength);
  bytes[0] = proofTag;
  bytes.set(mac, 1);
  return bytes;
}

/** Never throws; whatever is not exactly one of the two shapes is `malformed`. */
export function decodeHandshakeFrame(bytes: Uint8Array): HandshakeFrame {
  if (bytes.byteLength > helloBytes) return malformed(`${bytes.byteLength} bytes, at most ${helloBytes}`);
  if (bytes[0] === proofTag) {
    if (bytes.byteLength !== 1 + macBytes) return malformed('a proof of the wrong length');
    return { kind: 'proof', mac: bytes.slice(1) };
  }
  if (bytes[0] !== helloTag || bytes.byteLength < 6) return malformed('neither hello nor proof');
  const protocol = (bytes[1] ?? 0) * 256 + (bytes[2] ?? 0);
  if (protocol !== protocolVersion) return { kind: 'other-protocol', protocol };
  return decodeHello(bytes);
}

function decodeHello(bytes: Uint8Array): HandshakeFrame {
  const reader = new Reader(bytes, 3);
  const side = reader.byte();
  const flags = reader.byte();
  const [clusterName, address, uid, runtime] = [reader.text(), reader.text(), reader.text(), reader.text()];
  const roleCount = reader.byte();
  if (roleCount > limits.roles) return malformed(`${roleCount} roles, at most ${limits.roles}`);
  const roles = Array.from({ length: roleCount }, () => reader.text());
  const nonce = reader.part();
  if (!reader.complete()) return malformed('a hello of the wrong length or with invalid UTF-8');
  if ((side !== 1 && side !== 2) || flags > 3 || flags === integrityFlag) return malformed('unknown side or flag');
  if (nonce.byteLength !== nonceBytes) return malformed('a nonce of the wrong length');
  const hello: Hello = {
    side: side === 1 ? 'initiator' : 'responder',
    secured: (flags & securedFlag) !== 0,
    integrity: (flags & integrityFlag) !== 0,
    clusterName,
    address,
    uid,
    runtime,
    roles,
    nonce,
  };
  const problem = helloProblem(hello);
  return problem === undefined ? { kind: 'hello', hello } : malformed(problem);
}

/** What a hello may say; also applied to one's own, so that no node starts that all others would refuse. */
export function helloProblem(hello: Omit<Hello, 'nonce' | 'side' | 'secured' | 'integrity'>): string | undefined {
  if (!isName(hello.clusterName, limits.typeNameChars)) return 'cluster name: 1 to 255 printable characters';
  if (!isName(hello.uid, 128)) return 'uid: 1 to 128 printable characters';
  if (!isName(hello.runtime, 32)) return 'runtime: 1 to 32 printable characters';
  if (parseAddress(hello.address) === undefined) return 'address: host:port with a port of 0 to 65535';
  if (hello.roles.length > limits.roles) return `roles: at most ${limits.roles}`;
  if (!hello.roles.every((role) => isName(role, limits.roleChars))) return 'roles: 1 to 64 printable characters each';
  return undefined;
}

function isName(text: string, maxChars: number): boolean {
  return text.length > 0 && text.length <= maxChars && !/[\p{Cc}\p{Cs}]/u.test(text);
}

function malformed(why: string): HandshakeFrame {
  return { kind: 'malformed', why };
}

/** Reads past the end as zeros and empty strings; `complete` tells whether that happened. */
class Reader {
  readonly #bytes: Uint8Array;
  #at: number;
  #ok = true;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  byte(): number {
    const value = this.#bytes[this.#at++];
    if (value === undefined) this.#ok = false;
    return value ?? 0;
  }

  part(): Uint8Array {
    const size = this.byte() * 256 + this.byte();
    const from = this.#at;
    this.#at += size;
    if (this.#at > this.#bytes.byteLength) this.#ok = false;
    return this.#bytes.slice(from, this.#at);
  }

  text(): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.part());
    } catch {
      this.#ok = false;
      return '';
    }
  }

  complete(): boolean {
    return this.#ok && this.#at === this.#bytes.byteLength;
  }
}
