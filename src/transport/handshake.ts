/**
 * How two nodes prove to each other that they hold the cluster's secret before anything else is decoded.
 *
 *     initiator                          responder
 *     hello (identity, nonce)     →
 *                                 ←      hello (identity, nonce)
 *     proof                       →
 *                                 ←      proof, and the link is open
 *
 * A proof is an HMAC-SHA-256 (RFC 2104) over the prover's role and both hellos as they were on the wire, so it covers
 * both nonces and both identities: it can neither be replayed nor reflected, and nothing in a hello can be changed on the
 * way. Challenge and response with both parties' names in the MAC follows SKID3 (Menezes et al., Handbook of Applied
 * Cryptography, 10.3.2). The initiator proves itself first, so that whoever merely connects gets nothing to guess the
 * secret from. Without a secret the same frames are exchanged under a public key, and prove nothing.
 *
 * With frame integrity, which is on when either hello says so, both sides also derive keys for the frames that follow. What a
 * hello says is in both proofs, so nobody in between can switch it off.
 *
 * This file is the pure part: the shell in `session.ts` feeds events one at a time and runs the effects.
 */
import type { PeerIdentity } from './contract.ts';
import { decodeHandshakeFrame, encodeHello, encodeProof, type Hello, protocolVersion, type Side } from './hello.ts';
import { noSecret, ownSecret } from './secret_keys.ts';

/** Why a handshake ended without a link; each has a WebSocket close code of its own. */
export type RejectCode =
  | 'malformed'
  | 'protocol'
  | 'cluster-name'
  | 'secret'
  | 'token'
  | 'not-ready'
  | 'self'
  | 'address-claimed'
  | 'wrong-address'
  | 'deadline'
  | 'too-many-connections';

export const rejectCloseCodes: Readonly<Record<RejectCode, number>> = {
  'malformed': 4400,
  'protocol': 4401,
  'cluster-name': 4402,
  'secret': 4403,
  'self': 4404,
  'address-claimed': 4405,
  'wrong-address': 4406,
  'token': 4407,
  'deadline': 4408,
  'not-ready': 4409,
  'too-many-connections': 4429,
};

/** The code a peer's close stands for, if it is a rejection. */
export function rejectCodeOf(closeCode: number): RejectCode | undefined {
  const entries = Object.entries(rejectCloseCodes) as [RejectCode, number][];
  return entries.find(([, code]) => code === closeCode)?.[0];
}

/** What a handshake knows from the start. */
export interface HandshakeSetup {
  readonly own: Hello;
  /** Addresses the initiator accepts as its peer's; undefined accepts any. */
  readonly dialled: string | undefined;
}

export type HandshakeState =
  | { readonly kind: 'awaiting-hello' }
  | { readonly kind: 'signing'; readonly peer: Hello; readonly transcript: Transcript }
  | { readonly kind: 'awaiting-proof'; readonly peer: Hello; readonly transcript: Transcript }
  | { readonly kind: 'verifying'; readonly peer: Hello; readonly transcript: Transcript }
  | { readonly kind: 'deriving'; readonly peer: Hello; readonly transcript: Transcript }
  | { readonly kind: 'ended' };

export type HandshakeEvent =
  | { readonly kind: 'opened' }
  | { readonly kind: 'frame'; readonly bytes: Uint8Array }
  | { readonly kind: 'signed'; readonly mac: Uint8Array }
  /** Which accepted secret the peer's proof was made with; `noSecret` for none. */
  | { readonly kind: 'verified'; readonly secret: number }
  | { readonly kind: 'derived' }
  | { readonly kind: 'deadline' };

export type HandshakeEffect =
  | { readonly kind: 'send'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'sign'; readonly message: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'verify'; readonly message: Uint8Array<ArrayBuffer>; readonly mac: Uint8Array }
  /** Keys for the frames of this connection, from the initiator's secret and these messages. */
  | { readonly kind: 'derive'; readonly secret: number; readonly messages: Transcript }
  | { readonly kind: 'established'; readonly peer: PeerIdentity }
  | { readonly kind: 'reject'; readonly code: RejectCode; readonly detail: string };

/** One message for each side: what its proof is made of, or the key of the frames that it sends. */
export interface Transcript {
  readonly initiator: Uint8Array<ArrayBuffer>;
  readonly responder: Uint8Array<ArrayBuffer>;
  /** Both hellos as they were on the wire. */
  readonly hellos: readonly [initiator: Uint8Array, responder: Uint8Array];
}

export interface HandshakeStep {
  readonly state: HandshakeState;
  readonly effects: readonly HandshakeEffect[];
}

/** One handshake under way, for the shell in `session.ts`. */
export interface HandshakeMachine {
  readonly dialled: boolean;
  feed(event: HandshakeEvent): readonly HandshakeEffect[];
}

export function nodeHandshake(setup: HandshakeSetup): HandshakeMachine {
  let state: HandshakeState = initialHandshake;
  return {
    dialled: setup.own.side === 'initiator',
    feed(event) {
      const step = stepHandshake(setup, state, event);
      state = step.state;
      return step.effects;
    },
  };
}

export const initialHandshake: HandshakeState = { kind: 'awaiting-hello' };

export function stepHandshake(setup: HandshakeSetup, state: HandshakeState, event: HandshakeEvent): HandshakeStep {
  if (state.kind === 'ended') return { state, effects: [] };
  switch (event.kind) {
    case 'opened':
      if (setup.own.side === 'responder') return { state, effects: [] };
      return { state, effects: [{ kind: 'send', bytes: encodeHello(setup.own) }] };
    case 'deadline':
      return reject('deadline', 'the handshake took too long');
    case 'frame':
      return onFrame(setup, state, event.bytes);
    case 'signed':
      return onSigned(setup, state, event.mac);
    case 'verified':
      return onVerified(setup, state, event.secret);
    case 'derived':
      return state.kind === 'deriving' ? onTrusted(setup, state) : { state, effects: [] };
    default:
      return event satisfies never;
  }
}

function onFrame(setup: HandshakeSetup, state: HandshakeState, bytes: Uint8Array): HandshakeStep {
  const frame = decodeHandshakeFrame(bytes);
  switch (frame.kind) {
    case 'malformed':
      return reject('malformed', frame.why);
    case 'other-protocol':
      return reject('protocol', `this node speaks protocol ${protocolVersion}, the peer ${frame.protocol}`);
    case 'hello':
      if (state.kind !== 'awaiting-hello') return reject('malformed', 'a second hello');
      return onHello(setup, frame.hello, bytes);
    case 'proof':
      if (state.kind !== 'awaiting-proof') return reject('malformed', 'a proof out of turn');
      return {
        state: { ...state, kind: 'verifying' },
        effects: [{ kind: 'verify', message: state.transcript[otherSide(setup.own.side)], mac: frame.mac }],
      };
    default:
      return frame satisfies never;
  }
}

function onHello(setup: HandshakeSetup, peer: Hello, bytes: Uint8Array): HandshakeStep {
  const mismatch = mismatchOf(setup, peer);
  if (mismatch !== undefined) return mismatch;
  const ownBytes = encodeHello(setup.own);
  const initiates = setup.own.side === 'initiator';
  const transcript = initiates
    ? transcriptOf('handshake', ownBytes, bytes)
    : transcriptOf('handshake', bytes, ownBytes);
  if (!initiates) {
    return { state: { kind: 'awaiting-proof', peer, transcript }, effects: [{ kind: 'send', bytes: ownBytes }] };
  }
  const sign: HandshakeEffect = { kind: 'sign', message: transcript.initiator };
  return { state: { kind: 'signing', peer, transcript }, effects: [sign] };
}

/** Everything that can be wrong with a hello before any proof. Details may name public facts only, never the secret. */
function mismatchOf(setup: HandshakeSetup, peer: Hello): HandshakeStep | undefined {
  const { own, dialled } = setup;
  if (peer.side === own.side) return reject('malformed', `both sides claim to be the ${own.side}`);
  if (peer.clusterName !== own.clusterName) {
    const names = `this node is in cluster ${quoted(own.clusterName)}, the peer in ${quoted(peer.clusterName)}`;
    return reject('cluster-name', names);
  }
  if (peer.uid === own.uid) return reject('self', `${own.address} is this node itself`);
  if (peer.address === own.address) {
    return reject('address-claimed', `two nodes claim ${own.address} (uids ${own.uid}, ${peer.uid})`);
  }
  if (peer.secured !== own.secured) {
    const [has, lacks] = own.secured ? ['this node', 'the peer'] : ['the peer', 'this node'];
    return reject('secret', `${has} has a secret configured, ${lacks} has none`);
  }
  if (dialled !== undefined && peer.address.toLowerCase() !== dialled.toLowerCase()) {
    return reject('wrong-address', `dialled ${dialled}, the node there advertises ${peer.address}`);
  }
  return undefined;
}

function onSigned(setup: HandshakeSetup, state: HandshakeState, mac: Uint8Array): HandshakeStep {
  if (state.kind !== 'signing') return { state, effects: [] };
  const send: HandshakeEffect = { kind: 'send', bytes: encodeProof(mac) };
  if (setup.own.side === 'initiator') return { state: { ...state, kind: 'awaiting-proof' }, effects: [send] };
  return { state: { kind: 'ended' }, effects: [send, { kind: 'established', peer: identityOf(state.peer) }] };
}

function onVerified(setup: HandshakeSetup, state: HandshakeState, secret: number): HandshakeStep {
  if (state.kind !== 'verifying') return { state, effects: [] };
  if (secret === noSecret) return reject('secret', 'the secrets of the two nodes differ');
  const { peer, transcript } = state;
  if (!setup.own.integrity && !peer.integrity) return onTrusted(setup, state);
  // While a secret is being changed the two proofs may be made with different ones: the initiator's counts.
  const initiators = setup.own.side === 'initiator' ? ownSecret : secret;
  const messages = transcriptOf('frames', ...transcript.hellos);
  return { state: { kind: 'deriving', peer, transcript }, effects: [{ kind: 'derive', secret: initiators, messages }] };
}

/** The peer has proved itself: the initiator is done, the responder proves itself in turn. */
function onTrusted(
  setup: HandshakeSetup,
  state: Extract<HandshakeState, { readonly peer: Hello }>,
): HandshakeStep {
  if (setup.own.side === 'initiator') {
    return { state: { kind: 'ended' }, effects: [{ kind: 'established', peer: identityOf(state.peer) }] };
  }
  const sign: HandshakeEffect = { kind: 'sign', message: state.transcript.responder };
  return { state: { ...state, kind: 'signing' }, effects: [sign] };
}

function identityOf(hello: Hello): PeerIdentity {
  const { address, uid, clusterName, roles, runtime } = hello;
  return { address, uid, clusterName, roles, runtime };
}

function otherSide(side: Side): Side {
  return side === 'initiator' ? 'responder' : 'initiator';
}

function transcriptOf(
  purpose: 'handshake' | 'frames',
  initiatorHello: Uint8Array,
  responderHello: Uint8Array,
): Transcript {
  const build = (side: Side) => {
    const label = new TextEncoder().encode(`singlet ${purpose} ${protocolVersion} ${side}\0`);
    const bytes = new Uint8Array(label.byteLength + 8 + initiatorHello.byteLength + responderHello.byteLength);
    const view = new DataView(bytes.buffer);
    bytes.set(label, 0);
    let at = label.byteLength;
    for (const hello of [initiatorHello, responderHello]) {
      view.setUint32(at, hello.byteLength);
      bytes.set(hello, at + 4);
      at += 4 + hello.byteLength;
    }
    return bytes;
  };
  const hellos = [initiatorHello, responderHello] as const;
  return { initiator: build('initiator'), responder: build('responder'), hellos };
}

function reject(code: RejectCode, detail: string): HandshakeStep {
  return { state: { kind: 'ended' }, effects: [{ kind: 'reject', code, detail }] };
}

/** Short enough for two of them in a close reason. */
function quoted(name: string): string {
  return `'${name.length > 20 ? `${name.slice(0, 19)}…` : name}'`;
}
