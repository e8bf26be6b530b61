/** The node's side of the handshake in `caller_handshake.ts`. */
import {
  type CallerTexts,
  callerTexts,
  headBytes,
  helloProblem,
  keyBytes,
  noAddress,
  nodeHello,
  proofFrame,
  readProof,
} from './caller_handshake.ts';
import type { HandshakeEffect, HandshakeEvent, HandshakeMachine, RejectCode } from './handshake.ts';
import { helloTags } from './protocol.ts';
import { noSecret } from './secret_keys.ts';

type State =
  | { readonly kind: 'hello' }
  | { readonly kind: 'proof' | 'verifying' | 'deriving' | 'signing'; readonly key: string; readonly texts: CallerTexts }
  | { readonly kind: 'ended' };

/** For the shell in `session.ts`. */
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
    return step({ kind: 'proof', key, texts: callerTexts(bytes, own) }, { kind: 'send', bytes: own });
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
