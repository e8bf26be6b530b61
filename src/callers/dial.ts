/** How a caller reaches a node: one outbound WebSocket, and the handshake in which both prove that they know the token. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { coreLimits as limits } from '../limits.ts';
import {
  asksForSeals,
  callerHello,
  frameText,
  keyBytes,
  noAddress,
  proofFrame,
  proofText,
  readNodeHello,
  readProof,
} from '../transport/caller_handshake.ts';
import type { DialFailure, Link, LinkClose } from '../transport/contract.ts';
import { callerPath, callerSubprotocol, nonceBytes, sealBytes } from '../transport/protocol.ts';
import type { Dialler, Socket } from '../transport/runtime.ts';

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

/** One socket: the caller's side of the handshake, then a link. */
class Attempt implements Link {
  readonly peer = { address: noAddress, uid: '', clusterName: '', roles: [], runtime: 'node' };
  readonly dialled = true;
  #socket: Socket;
  readonly #options: WebSocketDialOptions;
  readonly #events: CallerLinkEvents;
  readonly #hello: Uint8Array<ArrayBuffer>;
  readonly #deadline: Cancel;
  #state: 'hello' | 'signing' | 'proof' | 'checking' | 'open' | 'over' = 'hello';
  #nodeHello: Uint8Array = new Uint8Array();
  /** Frames that came while the proof was being checked. */
  #early: Uint8Array[] = [];

  constructor(socket: Socket, options: WebSocketDialOptions, key: Uint8Array, events: CallerLinkEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    const { runtime, environment, clusterName = '', frameIntegrity } = options;
    this.#hello = callerHello(runtime.randomBytes(nonceBytes), key, clusterName, frameIntegrity);
    this.#deadline = environment.timers.set(limits.handshakeMs, () => this.#fail('deadline', 'no handshake in time'));
    this.#listenTo(socket);
    socket.send(this.#hello);
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
    this.#socket.close(1000, 'cancelled');
  }

  #received(bytes: Uint8Array): void {
    switch (this.#state) {
      case 'open':
        return this.#events.frame(this, bytes);
      case 'hello':
        return void this.#prove(bytes);
      case 'proof':
        return void this.#check(bytes);
      case 'checking':
        if (this.#early.push(bytes) > 64) this.#fail('malformed', 'too many frames too early');
        return;
      case 'signing':
        return this.#fail('malformed', 'a frame out of turn');
      case 'over':
        return;
    }
  }

  async #prove(bytes: Uint8Array): Promise<void> {
    const { clusterName, token } = this.#options;
    const name = readNodeHello(bytes);
    if (name.startsWith('!')) return this.#fail('protocol', name.slice(1));
    if (clusterName !== undefined && name !== clusterName) return this.#fail('cluster-name', 'this is another cluster');
    this.#state = 'signing';
    this.#nodeHello = bytes;
    const mac = await crypto.subtle.sign('HMAC', token, proofText('caller', this.#hello, bytes));
    if (this.#state !== 'signing') return;
    this.#state = 'proof';
    this.#socket.send(proofFrame(new Uint8Array(mac)));
  }

  async #check(bytes: Uint8Array): Promise<void> {
    const mac = readProof(bytes);
    if (mac === undefined) return this.#fail('malformed', 'no proof in its turn');
    this.#state = 'checking';
    const { token } = this.#options;
    const hellos = [this.#hello, this.#nodeHello] as const;
    const [valid, sealing] = await Promise.all([
      crypto.subtle.verify('HMAC', token, mac, proofText('node', ...hellos)),
      asksForSeals(...hellos) ? sealingOf(token, hellos) : undefined,
    ]);
    if (this.#state !== 'checking') return;
    if (!valid) return this.#fail('token', 'the node does not know the token');
    const sealed = sealing?.(this.#socket, () => this.#dropped());
    if (sealed !== undefined) this.#listenTo(this.#socket = sealed);
    this.#state = 'open';
    this.#deadline();
    this.#events.opened(this);
    for (const early of this.#early.splice(0)) {
      if (sealed === undefined) this.#received(early);
      else sealed.received(early);
    }
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

type Hellos = readonly [fromCaller: Uint8Array, fromNode: Uint8Array];

/** Loaded when it is needed: few callers have frame integrity. */
async function sealingOf(token: CryptoKey, hellos: Hellos) {
  const { frameKeysFrom, SealedSocket } = await import('./sealing.ts');
  const keys = await frameKeysFrom(token, { out: frameText('caller', ...hellos), in: frameText('node', ...hellos) });
  return (socket: Socket, dropped: () => void) => new SealedSocket(socket, keys, dropped);
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
