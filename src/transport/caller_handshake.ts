/**
 * How a caller from outside and a node prove to each other that they know the same token, which itself never travels.
 *
 *     caller                                     node
 *     hello (nonce, session key, cluster)   →
 *                                           ←    hello (nonce, cluster)
 *     proof                                 →
 *                                           ←    proof, and the link is open
 *
 * Each hello has a second tag, which asks for frame integrity. When either side asks, every frame after the proofs is sealed,
 * see `sealed_socket.ts`, with keys from the token and both hellos. The tags are in both proofs, so nobody in between can
 * switch it off.
 *
 * The scheme is that of `handshake.ts`, with formats and labels of its own, so that no proof means anything there. A hello
 * is `tag, protocol u16, nonce 32` (and `key 16` from a caller), then the cluster's name in UTF-8; a caller that takes any
 * cluster leaves it empty. A proof is `tag, MAC 32`.
 */
import { coreLimits as limits } from '../limits.ts';
import type { Transcript } from './handshake.ts';
import { helloTags, macBytes, nonceBytes, protocolVersion } from './protocol.ts';

export const keyBytes = 16;

/** In the place of the address that a caller does not have. */
export const noAddress = 'outside:0';

type Bytes = Uint8Array<ArrayBuffer>;

export type CallerSide = 'caller' | 'node';
const sides = ['caller', 'node'] as const;

export const headBytes = 3 + nonceBytes;
const longestName = limits.typeNameChars * 4;

export function callerHello(nonce: Uint8Array, key: Uint8Array, clusterName = '', sealing = false): Bytes {
  return hello(sealing ? helloTags.sealingCaller : helloTags.caller, [nonce, key], clusterName);
}

export function nodeHello(nonce: Uint8Array, clusterName: string, sealing: boolean): Bytes {
  return hello(sealing ? helloTags.sealingNode : helloTags.node, [nonce], clusterName);
}

function hello(tag: number, parts: readonly Uint8Array[], clusterName: string): Bytes {
  return joined([Uint8Array.of(tag, protocolVersion >> 8, protocolVersion & 255), ...parts, encoded(clusterName)]);
}

export function helloProblem(bytes: Uint8Array, tags: readonly number[], head: number): string | undefined {
  if (!tags.includes(bytes[0]!) || bytes.length < head || bytes.length > head + longestName) return 'no hello';
  const protocol = bytes[1]! * 256 + bytes[2]!;
  return protocol === protocolVersion ? undefined : `protocol ${protocol} in the place of ${protocolVersion}`;
}

export function proofFrame(mac: Uint8Array): Bytes {
  return joined([Uint8Array.of(helloTags.proof), mac]);
}

/** The MAC in a proof; undefined for what is none. */
export function readProof(bytes: Uint8Array): Bytes | undefined {
  return bytes[0] === helloTags.proof && bytes.length === 1 + macBytes ? bytes.slice(1) : undefined;
}

/** What a side's MAC is over: its role, and both hellos as they were on the wire. */
export function proofText(side: CallerSide, fromCaller: Uint8Array, fromNode: Uint8Array): Bytes {
  return textOf('handshake', side, fromCaller, fromNode);
}

/** What the key of the frames that a side sends is made from. */
export function frameText(side: CallerSide, fromCaller: Uint8Array, fromNode: Uint8Array): Bytes {
  return textOf('frames', side, fromCaller, fromNode);
}

function textOf(purpose: string, side: CallerSide, fromCaller: Uint8Array, fromNode: Uint8Array): Bytes {
  const label = encoded(`singlet caller ${purpose} ${protocolVersion} ${side}\0`);
  const length = Uint8Array.of(fromCaller.length >> 8, fromCaller.length & 255);
  return joined([label, length, fromCaller, fromNode]);
}

function encoded(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function joined(parts: readonly Uint8Array[]): Bytes {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** What is made of both hellos. */
export interface CallerTexts {
  readonly caller: Bytes;
  readonly node: Bytes;
  /** With frame integrity, which one hello that asks for it is enough for: what the keys are made from. */
  readonly frames: Transcript | undefined;
}

export function callerTexts(fromCaller: Uint8Array, fromNode: Uint8Array): CallerTexts {
  const [caller, node] = sides.map((side) => proofText(side, fromCaller, fromNode));
  const sealing = fromCaller[0] === helloTags.sealingCaller || fromNode[0] === helloTags.sealingNode;
  const [initiator, responder] = sides.map((side) => frameText(side, fromCaller, fromNode));
  const frames = sealing
    ? { initiator: initiator!, responder: responder!, hellos: [fromCaller, fromNode] as const }
    : undefined;
  return { caller: caller!, node: node!, frames };
}
