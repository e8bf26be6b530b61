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
import type { HandshakeEffect, HandshakeEvent, HandshakeMachine, RejectCode, Transcript } from './handshake.ts';
import { helloTags, macBytes, nonceBytes, protocolVersion } from './protocol.ts';
import { noSecret } from './secret_keys.ts';

export const keyBytes = 16;

/** In the place of the address that a caller does not have. */
export const noAddress = 'outside:0';

type Bytes = Uint8Array<ArrayBuffer>;

export type CallerSide = 'caller' | 'node';

const headBytes = 3 + nonceBytes;
const longestName = limits.typeNameChars * 4;

export function callerHello(nonce: Uint8Array, key: Uint8Array, clusterName: string, sealing = false): Bytes {
  return hello(sealing ? helloTags.sealingCaller : helloTags.caller, [nonce, key], clusterName);
}

function nodeHello(nonce: Uint8Array, clusterName: string, sealing: boolean): Bytes {
  return hello(sealing ? helloTags.sealingNode : helloTags.node, [nonce], clusterName);
}

/** Frames after these hellos are sealed. */
export function asksForSeals(fromCaller: Uint8Array, fromNode: Uint8Array): boolean {
  return fromCaller[0] === helloTags.sealingCaller || fromNode[0] === helloTags.sealingNode;
}

function hello(tag: number, parts: readonly Uint8Array[], clusterName: string): Bytes {
  return joined([Uint8Array.of(tag, protocolVersion >> 8, protocolVersion & 255), ...parts, encoded(clusterName)]);
}

/** The cluster's name in a node's hello; a text that starts with `!` says what is wrong with it. */
export function readNodeHello(bytes: Uint8Array): string {
  const problem = helloProblem(bytes, [helloTags.node, helloTags.sealingNode], headBytes);
  return problem === undefined ? new TextDecoder().decode(bytes.subarray(headBytes)) : `!${problem}`;
}

function helloProblem(bytes: Uint8Array, tags: readonly number[], head: number): string | undefined {
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
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

type State =
  | { readonly kind: 'hello' }
  | { readonly kind: 'proof' | 'verifying' | 'deriving' | 'signing'; readonly key: string; readonly texts: Texts }
  | { readonly kind: 'ended' };

interface Texts {
  readonly caller: Bytes;
  readonly node: Bytes;
  /** With frame integrity: what the keys are made from. */
  readonly frames: Transcript | undefined;
}

function textsOf(fromCaller: Uint8Array, own: Bytes): Texts {
  const [caller, node] = [proofText('caller', fromCaller, own), proofText('node', fromCaller, own)];
  if (!asksForSeals(fromCaller, own)) return { caller, node, frames: undefined };
  const [initiator, responder] = [frameText('caller', fromCaller, own), frameText('node', fromCaller, own)];
  return { caller, node, frames: { initiator, responder, hellos: [fromCaller, own] } };
}

/** The node's side, for the shell in `session.ts`. */
export function callerResponder(clusterName: string, nonce: Uint8Array, sealing = false): HandshakeMachine {
  let state: State = { kind: 'hello' };
  const own = nodeHello(nonce, clusterName, sealing);
  const step = (next: State, ...effects: HandshakeEffect[]): readonly HandshakeEffect[] => {
    state = next;
    return effects;
  };
  const reject = (code: RejectCode, detail: string) => step({ kind: 'ended' }, { kind: 'reject', code, detail });
  const onHello = (bytes: Uint8Array) => {
    const head = headBytes + keyBytes;
    const problem = helloProblem(bytes, [helloTags.caller, helloTags.sealingCaller], head);
    if (problem !== undefined) return reject(problem === 'no hello' ? 'malformed' : 'protocol', problem);
    const wanted = new TextDecoder().decode(bytes.subarray(head));
    if (wanted !== '' && wanted !== clusterName) {
      return reject('cluster-name', `this is cluster '${clusterName.slice(0, 40)}'`);
    }
    const key = Array.from(bytes.subarray(headBytes, head), (byte) => byte.toString(16).padStart(2, '0')).join('');
    return step({ kind: 'proof', key, texts: textsOf(bytes, own) }, { kind: 'send', bytes: own });
  };
  const onFrame = (bytes: Uint8Array) => {
    if (state.kind === 'hello') return onHello(bytes);
    const mac = state.kind === 'proof' ? readProof(bytes) : undefined;
    if (state.kind !== 'proof' || mac === undefined) return reject('malformed', 'no proof in its turn');
    return step({ ...state, kind: 'verifying' }, { kind: 'verify', message: state.texts.caller, mac });
  };
  const onVerified = (secret: number) => {
    if (state.kind !== 'verifying') return [];
    if (secret === noSecret) return reject('token', 'the token is not one that this node accepts');
    const { frames } = state.texts;
    if (frames === undefined) return onTrusted();
    return step({ ...state, kind: 'deriving' }, { kind: 'derive', secret, messages: frames });
  };
  const onTrusted = () => {
    if (state.kind !== 'verifying' && state.kind !== 'deriving') return [];
    return step({ ...state, kind: 'signing' }, { kind: 'sign', message: state.texts.node });
  };
  const onSigned = (mac: Uint8Array) => {
    if (state.kind !== 'signing') return [];
    const peer = { address: noAddress, uid: state.key, clusterName, roles: [], runtime: 'caller' };
    return step({ kind: 'ended' }, { kind: 'send', bytes: proofFrame(mac) }, { kind: 'established', peer });
  };
  return {
    dialled: false,
    feed(event: HandshakeEvent) {
      if (state.kind === 'ended') return [];
      switch (event.kind) {
        case 'opened':
          return [];
        case 'frame':
          return onFrame(event.bytes);
        case 'verified':
          return onVerified(event.secret);
        case 'signed':
          return onSigned(event.mac);
        case 'derived':
          return onTrusted();
        case 'deadline':
          return reject('deadline', 'the handshake took too long');
        default:
          return event satisfies never;
      }
    },
  };
}
