/** How a caller reaches a node: one outbound WebSocket, and the handshake in which both prove that they know the token. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { coreLimits as limits } from '../limits.ts';
import { keyBytes } from '../transport/caller_handshake.ts';
import { anyNode, callerInitiator } from '../transport/caller_initiator.ts';
import type { DialFailure, Link, LinkClose } from '../transport/contract.ts';
import type { HandshakeEffect, HandshakeEvent, HandshakeMachine, Transcript } from '../transport/handshake.ts';
import { callerPath, callerSubprotocol, nonceBytes, ownerFailedCode, sealBytes } from '../transport/protocol.ts';
import type { Dialler, Socket } from '../transport/runtime.ts';
import type { SealedSocket } from '../transport/sealed_socket.ts';
import { noSecret } from '../transport/secret_keys.ts';

export interface CallerLinkEvents {
  opened(link: Link): void;
  failed(failure: DialFailure): void;
  frame(link: Link, bytes: Uint8Array): void;
  closed(link: Link, close: LinkClose): void;
}

/** Opens one connection to `url`. Cancelling an attempt means that neither `opened` nor `failed` is called. */
export type CallerDial = (url: string, events: CallerLinkEvents) => Cancel;

export interface WebSocketDialOptions {
  readonly runtime: Dialler;
  readonly environment: Environment;
  readonly token: CryptoKey;
  /** Undefined: any. */
  readonly clusterName: string | undefined;
  readonly ca: string | undefined;
  /** Asks the node for it; the node may ask too. */
  readonly frameIntegrity: boolean;
}

export function webSocketDial(options: WebSocketDialOptions): CallerDial {
  const { runtime, ca } = options;
  // Who knows the key is this caller; it is told to nodes only, and never logged.
  const key = runtime.randomBytes(keyBytes);
  return (url, events) => {
    let attempt: Attempt | undefined;
    let over = false;
    const cancel = runtime.dial({
      url,
      subprotocol: callerSubprotocol,
      timeoutMs: limits.dialMs,
      maxFrameBytes: limits.frameBytes + sealBytes,
      ...(ca === undefined ? {} : { tls: { ca } }),
    }, (outcome) => {
      if ('reason' in outcome) return over ? undefined : events.failed({ ...outcome, code: outcome.reason });
      if (over) return outcome.close(1000, 'cancelled');
      attempt = new Attempt(outcome, options, key, events);
    });
    return () => {
      over = true;
      cancel();
      attempt?.cancel();
    };
  };
}

/** Frames and bytes that may wait while a proof is checked. */
const heldFrames = 64;
const heldBytes = 2 * limits.frameBytes;

/** One socket: the caller's side of the handshake, then a link. */
class Attempt implements Link {
  readonly peer = anyNode;
  readonly dialled = true;
  #socket: Socket;
  readonly #options: WebSocketDialOptions;
  readonly #events: CallerLinkEvents;
  readonly #handshake: HandshakeMachine;
  readonly #deadline: Cancel;
  #state: 'handshake' | 'open' | 'over' = 'handshake';
  #seal: ((socket: Socket) => SealedSocket) | undefined;
  /** Background work for the handshake is under way; frames that come meanwhile wait, in order. */
  #busy = false;
  #held: Uint8Array[] = [];
  #heldSize = 0;

  constructor(socket: Socket, options: WebSocketDialOptions, key: Uint8Array, events: CallerLinkEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    const { runtime, environment, clusterName, frameIntegrity: sealing } = options;
    this.#handshake = callerInitiator({ nonce: runtime.randomBytes(nonceBytes), key, clusterName, sealing });
    this.#deadline = environment.timers.set(limits.handshakeMs, () => this.#feed({ kind: 'deadline' }));
    this.#listenTo(socket);
    this.#feed({ kind: 'opened' });
  }

  #listenTo(socket: Socket): void {
    socket.onMessage = (bytes) => this.#received(bytes);
    socket.onClose = (close) => this.#closed(close);
  }

  send(frame: Uint8Array): void {
    if (this.#state === 'open' && !this.#socket.send(frame)) this.#dropped();
  }

  #dropped(): void {
    this.#socket.close(4500, 'the runtime dropped a frame');
  }

  bufferedBytes(): number {
    return this.#state === 'open' ? this.#socket.bufferedBytes() : 0;
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cancel(): void {
    this.#state = 'over';
    this.#deadline();
    this.#held = [];
    this.#socket.close(1000, 'cancelled');
  }

  #received(bytes: Uint8Array): void {
    if (this.#state === 'open') return this.#events.frame(this, bytes);
    if (!this.#busy) return this.#feed({ kind: 'frame', bytes });
    this.#held.push(bytes);
    this.#heldSize += bytes.length;
    if (this.#held.length > heldFrames || this.#heldSize > heldBytes) {
      this.#fail('malformed', 'too many frames too early');
    }
  }

  #feed(event: HandshakeEvent): void {
    if (this.#state !== 'handshake') return;
    for (const effect of this.#handshake.feed(event)) this.#run(effect);
  }

  #run(effect: HandshakeEffect): void {
    const { token } = this.#options;
    const { subtle } = crypto;
    switch (effect.kind) {
      case 'send':
        return void this.#socket.send(effect.bytes);
      case 'sign':
        return this.#await(subtle.sign('HMAC', token, effect.message), (mac) => {
          return { kind: 'signed', mac: new Uint8Array(mac) };
        });
      case 'verify':
        return this.#await(
          subtle.verify('HMAC', token, Uint8Array.from(effect.mac), effect.message),
          (valid) => ({ kind: 'verified', secret: valid ? 0 : noSecret }),
        );
      case 'derive':
        return this.#await(sealingOf(token, effect.messages, () => this.#dropped()), (seal) => {
          this.#seal = seal;
          return { kind: 'derived' };
        });
      case 'established':
        return this.#established();
      case 'reject':
        return this.#fail(effect.code, effect.detail);
      default:
        return effect satisfies never;
    }
  }

  #await<T>(work: Promise<T>, event: (result: T) => HandshakeEvent): void {
    this.#busy = true;
    work.then((result) => {
      this.#busy = false;
      this.#feed(event(result));
      while (!this.#busy && this.#state !== 'over' && this.#held.length > 0) this.#received(this.#held.shift()!);
    }).catch((error) => {
      if (this.#state === 'open') this.close(ownerFailedCode, 'handler failed');
      else this.#fail('failed', `${error}`);
    });
  }

  #established(): void {
    const sealed = this.#seal?.(this.#socket);
    if (sealed !== undefined) this.#listenTo(this.#socket = sealed);
    this.#state = 'open';
    this.#deadline();
    this.#events.opened(this);
    if (sealed !== undefined) { for (const bytes of this.#held.splice(0)) sealed.received(bytes); }
  }

  #fail(code: string, detail: string): void {
    if (this.#state === 'over') return;
    this.cancel();
    this.#events.failed({ reason: code === 'deadline' ? 'timeout' : 'rejected', code, detail });
  }

  #closed(close: LinkClose): void {
    const { code, reason } = close;
    const before = this.#state;
    if (before === 'over') return;
    this.#state = 'over';
    this.#deadline();
    if (before === 'open') return this.#events.closed(this, close);
    // A refusal says `code: why`, in the words of whoever answered.
    const text = reason.replace(/\p{Cc}/gu, ' ');
    const refusal = code >= 4400 && code < 4500 ? /^([a-z-]+): (.*)$/.exec(text) : null;
    if (refusal !== null) this.#events.failed({ reason: 'rejected', code: refusal[1]!, detail: refusal[2]! });
    else this.#events.failed({ reason: 'reset', code: 'closed', detail: `closed in the handshake (${code} ${text})` });
  }
}

/** Loaded when it is needed: few callers have frame integrity. */
async function sealingOf(token: CryptoKey, { initiator, responder }: Transcript, dropped: () => void) {
  const { frameKeysFrom, SealedSocket } = await import('./sealing.ts');
  const keys = await frameKeysFrom(token, { out: initiator, in: responder });
  return (socket: Socket) => new SealedSocket(socket, keys, dropped);
}

/** The WebSocket address of a node's callers for what the user wrote; undefined for what is none. */
export function callerUrl(text: string): string | undefined {
  const spelled = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `ws://${text}`;
  if (!URL.canParse(spelled)) return undefined;
  const url = new URL(spelled);
  const scheme = ({ 'ws:': 'ws:', 'http:': 'ws:', 'wss:': 'wss:', 'https:': 'wss:' } as const)[url.protocol];
  if (scheme === undefined || url.hostname === '' || url.username !== '' || url.password !== '') return undefined;
  if (url.search !== '' || url.hash !== '' || url.port === '0') return undefined;
  const path = url.pathname === '/' ? callerPath : url.pathname;
  // Like between nodes: `localhost` may mean two different listeners.
  const host = scheme === 'ws:' && url.hostname.toLowerCase() === 'localhost' ? '127.0.0.1' : url.hostname;
  return `${scheme}//${host}${url.port === '' ? '' : `:${url.port}`}${path}`;
}
