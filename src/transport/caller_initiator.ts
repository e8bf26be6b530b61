/** The caller's side of the handshake in `caller_handshake.ts`: part of what a page loads. */
import {
  callerHello,
  type CallerTexts,
  callerTexts,
  headBytes,
  helloProblem,
  noAddress,
  proofFrame,
  readProof,
} from './caller_handshake.ts';
import type { HandshakeEffect, HandshakeEvent, HandshakeMachine, RejectCode } from './handshake.ts';
import { helloTags } from './protocol.ts';
import { noSecret } from './secret_keys.ts';

export interface CallerIdentity {
  readonly nonce: Uint8Array;
  /** Of the session that its connections share. */
  readonly key: Uint8Array;
  /** Undefined: any. */
  readonly clusterName: string | undefined;
  /** Asks for frame integrity. */
  readonly sealing: boolean;
}

/** The frame, or the event, that it waits for. */
type Phase = 'hello' | 'signed' | 'proof' | 'verified' | 'derived' | 'ended';

/** Whom a caller talks to is of no interest to it: any node of the cluster that knows the token. */
export const anyNode = { address: noAddress, uid: '', clusterName: '', roles: [], runtime: 'node' };

/** For the shell in `src/callers/dial.ts`. */
export function callerInitiator({ nonce, key, clusterName, sealing }: CallerIdentity): HandshakeMachine {
  const own = callerHello(nonce, key, clusterName, sealing);
  let phase: Phase = 'hello';
  let texts: CallerTexts;
  const step = (next: Phase, ...effects: HandshakeEffect[]): HandshakeEffect[] => {
    phase = next;
    return effects;
  };
  const reject = (code: RejectCode, detail: string) => step('ended', { kind: 'reject', code, detail });
  const established = () => step('ended', { kind: 'established', peer: anyNode });
  const onHello = (bytes: Uint8Array) => {
    const problem = helloProblem(bytes, [helloTags.node, helloTags.sealingNode], headBytes);
    if (problem !== undefined) return reject('protocol', problem);
    if (clusterName !== undefined && new TextDecoder().decode(bytes.subarray(headBytes)) !== clusterName) {
      return reject('cluster-name', 'this is another cluster');
    }
    texts = callerTexts(own, bytes);
    return step('signed', { kind: 'sign', message: texts.caller });
  };
  const onProof = (bytes: Uint8Array) => {
    const mac = phase === 'proof' ? readProof(bytes) : undefined;
    if (mac === undefined) return reject('malformed', 'no proof in its turn');
    return step('verified', { kind: 'verify', message: texts.node, mac });
  };
  const onVerified = (secret: number) => {
    if (secret === noSecret) return reject('token', 'the node does not know the token');
    return texts.frames ? step('derived', { kind: 'derive', secret, messages: texts.frames }) : established();
  };
  return {
    dialled: true,
    feed(event: HandshakeEvent) {
      if (phase === 'ended') return [];
      if (event.kind === 'opened') return [{ kind: 'send', bytes: own }];
      if (event.kind === 'frame') return phase === 'hello' ? onHello(event.bytes) : onProof(event.bytes);
      if (event.kind === 'deadline') return reject(event.kind, 'no handshake in time');
      if (event.kind !== phase) return [];
      if (event.kind === 'signed') return step('proof', { kind: 'send', bytes: proofFrame(event.mac) });
      return event.kind === 'verified' ? onVerified(event.secret) : established();
    },
  };
}
