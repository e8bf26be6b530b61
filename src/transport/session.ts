/** One socket from its upgrade to its end: first the handshake, then, once both sides have proved themselves, a link. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type { DialFailure, Link, LinkClose, PeerIdentity } from './contract.ts';
import type { FrameKeys } from './frame_keys.ts';
import {
  type HandshakeEffect,
  type HandshakeEvent,
  type HandshakeMachine,
  rejectCloseCodes,
  rejectCodeOf,
} from './handshake.ts';
import { ownerFailedCode } from './protocol.ts';
import type { Socket } from './runtime.ts';
import { brokenSealCode, SealedSocket } from './sealed_socket.ts';
import { noSecret, type SecretKeys } from './secret_keys.ts';

/** Frames and bytes that may wait behind a proof that is still being checked. */
const heldFrames = 256;
const heldBytes = 2 * limits.frameBytes;

/** Tells the peer that frames to it were lost: a loss on both sides, whoever sends the close. */
const droppedCode = 4500;
const droppedClose: LinkClose = { code: droppedCode, reason: 'the runtime dropped a frame', clean: false };

/** Closes that are a loss on both sides, though one of them sent them. */
const lossCodes: readonly number[] = [droppedCode, brokenSealCode];

export interface SessionOwner {
  /** Both sides have proved themselves. Frames follow only after this has returned. */
  established(session: Session, link: Link): void;
  /** There will be no link. Called once, instead of `established`. */
  failed(session: Session, failure: DialFailure): void;
  frame(link: Link, bytes: Uint8Array): void;
  closed(link: Link, close: LinkClose): void;
  /** The socket is gone, with or without a link before. */
  ended(session: Session): void;
}

export class Session {
  #socket: Socket;
  readonly #handshake: HandshakeMachine;
  readonly #keys: SecretKeys;
  readonly #environment: Environment;
  readonly #owner: SessionOwner;
  readonly #cancelDeadline: Cancel;
  /** Frames that came while a signature or check was running; in order. */
  #held: Uint8Array[] = [];
  #heldSize = 0;
  #busy = false;
  #frameKeys: FrameKeys | undefined;
  #link: SocketLink | undefined;
  /** No link and never will be, or the link is over: only the socket's end is still awaited. */
  #over = false;
  #ended = false;

  constructor(
    socket: Socket,
    handshake: HandshakeMachine,
    keys: SecretKeys,
    environment: Environment,
    owner: SessionOwner,
  ) {
    this.#socket = socket;
    this.#handshake = handshake;
    this.#keys = keys;
    this.#environment = environment;
    this.#owner = owner;
    this.#cancelDeadline = environment.timers.set(limits.handshakeMs, () => this.#feed({ kind: 'deadline' }));
    socket.onMessage = (bytes) => this.#received(bytes);
    socket.onClose = (close) => this.#socketClosed(close);
    this.#feed({ kind: 'opened' });
  }

  /** Ends it on purpose, in whatever state it is. The owner hears of a link's end, not of an unfinished handshake's. */
  close(code: number, reason: string): void {
    if (this.#link === undefined) this.#over = true;
    this.#cancelDeadline();
    this.#socket.close(code, reason);
  }

  #received(bytes: Uint8Array): void {
    if (this.#over) return;
    if (this.#busy || this.#held.length > 0) this.#hold(bytes);
    else if (this.#link !== undefined) this.#deliver(this.#link, bytes);
    else this.#feed({ kind: 'frame', bytes });
  }

  #hold(bytes: Uint8Array): void {
    this.#held.push(bytes);
    this.#heldSize += bytes.byteLength;
    if (this.#held.length <= heldFrames && this.#heldSize <= heldBytes) return;
    this.#run([{ kind: 'reject', code: 'malformed', detail: 'too many frames before the handshake was over' }]);
  }

  #deliver(link: SocketLink, bytes: Uint8Array): void {
    if (link.open) this.#guarded(link, () => this.#owner.frame(link, bytes));
  }

  /** A failing handler ends the connection it was called for, and nothing else. */
  #guarded(link: SocketLink, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#environment.log.error('link handler failed', { peer: link.peer.address, error: String(error) });
      this.#socket.close(ownerFailedCode, 'handler failed');
    }
  }

  #feed(event: HandshakeEvent): void {
    if (this.#over || this.#link !== undefined) return;
    this.#run(this.#handshake.feed(event));
  }

  #run(effects: readonly HandshakeEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'send':
          this.#socket.send(effect.bytes);
          break;
        case 'sign':
          this.#await(this.#keys.sign(effect.message), (mac) => ({ kind: 'signed', mac }));
          break;
        case 'verify':
          this.#await(this.#keys.verify(effect.message, effect.mac), (secret) => ({ kind: 'verified', secret }));
          break;
        case 'derive':
          this.#await(this.#derive(effect), () => ({ kind: 'derived' }));
          break;
        case 'established':
          this.#establish(effect.peer);
          break;
        case 'reject':
          this.#reject(effect.code, effect.detail);
          break;
        default:
          effect satisfies never;
      }
    }
  }

  #await<T>(work: Promise<T>, event: (result: T) => HandshakeEvent): void {
    this.#busy = true;
    const resume = (next: HandshakeEvent) => {
      this.#busy = false;
      this.#feed(next);
      this.#drain();
    };
    work.then((result) => resume(event(result)), () => resume({ kind: 'verified', secret: noSecret }));
  }

  /** What was held goes the way it would have gone, until the next check starts or the owner closes the link. */
  #drain(): void {
    while (!this.#busy && !this.#over && this.#held.length > 0) {
      const bytes = this.#held.shift() as Uint8Array;
      this.#heldSize -= bytes.byteLength;
      if (this.#link !== undefined) this.#deliver(this.#link, bytes);
      else this.#feed({ kind: 'frame', bytes });
    }
  }

  #establish(peer: PeerIdentity): void {
    this.#cancelDeadline();
    const sealed = this.#frameKeys && this.#sealed(this.#frameKeys);
    const link = new SocketLink(peer, this.#handshake.dialled, this.#socket, () => this.#dropped());
    this.#link = link;
    this.#guarded(link, () => this.#owner.established(this, link));
    if (sealed === undefined) return;
    // What has come already waits for its check too. Not earlier: one that is no frame at all ends the link, and the owner
    // must know of a link before it hears of its end.
    this.#heldSize = 0;
    for (const bytes of this.#held.splice(0)) sealed.received(bytes);
  }

  async #derive({ secret, messages }: Extract<HandshakeEffect, { readonly kind: 'derive' }>): Promise<void> {
    const [out, incoming] = this.#handshake.dialled
      ? [messages.initiator, messages.responder]
      : [messages.responder, messages.initiator];
    this.#frameKeys = await this.#keys.frameKeys(secret, { out, in: incoming });
  }

  /** From here on frames are sealed. */
  #sealed(keys: FrameKeys): SealedSocket {
    const sealed = new SealedSocket(this.#socket, keys, () => this.#dropped());
    this.#socket = sealed;
    sealed.onMessage = (bytes) => this.#received(bytes);
    sealed.onClose = (close) => this.#socketClosed(close);
    return sealed;
  }

  #reject(code: keyof typeof rejectCloseCodes, detail: string): void {
    this.#fail({ reason: code === 'deadline' ? 'timeout' : 'rejected', code, detail });
    this.#socket.close(rejectCloseCodes[code], `${code}: ${detail}`);
  }

  #fail(failure: DialFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.#held = [];
    this.#cancelDeadline();
    // A reject can come up inside the caller's own turn; its owner is told in another one.
    this.#environment.turns.schedule(() => this.#owner.failed(this, failure));
  }

  /** A frame was lost on the way out: the link is worth nothing any more, and the peer may not answer a close. */
  #dropped(): void {
    this.#socket.close(droppedCode, droppedClose.reason);
    this.#environment.turns.schedule(() => this.#linkClosed(droppedClose));
  }

  #socketClosed(close: LinkClose): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#link !== undefined) this.#linkClosed(lossCodes.includes(close.code) ? { ...close, clean: false } : close);
    else this.#fail(failureOf(close));
    this.#owner.ended(this);
  }

  #linkClosed(close: LinkClose): void {
    if (this.#over || this.#link === undefined) return;
    this.#over = true;
    this.#held = [];
    const link = this.#link;
    link.open = false;
    this.#guarded(link, () => this.#owner.closed(link, close));
  }
}

/** The peer closed before there was a link: with a code of ours it said why. */
function failureOf(close: LinkClose): DialFailure {
  const code = close.clean ? rejectCodeOf(close.code) : undefined;
  // Text of a stranger, on its way into logs.
  const text = close.reason.replace(/\p{Cc}/gu, ' ');
  if (code === undefined) {
    return { reason: 'reset', code: 'closed', detail: `closed during the handshake (${close.code} ${text})` };
  }
  const reason = text.startsWith(`${code}: `) ? text.slice(code.length + 2) : text;
  return { reason: code === 'deadline' ? 'timeout' : 'rejected', code, detail: `refused by the peer: ${reason}` };
}

class SocketLink implements Link {
  readonly peer: PeerIdentity;
  readonly dialled: boolean;
  readonly copies: boolean;
  open = true;
  onDrain: () => void = () => {};
  readonly #socket: Socket;
  readonly #dropped: () => void;

  constructor(peer: PeerIdentity, dialled: boolean, socket: Socket, dropped: () => void) {
    this.peer = peer;
    this.dialled = dialled;
    this.copies = socket.copies === true;
    this.#socket = socket;
    this.#dropped = dropped;
    socket.onDrain = () => this.onDrain();
  }

  send(frame: Uint8Array): void {
    if (!this.open || this.#socket.send(frame)) return;
    this.open = false;
    this.#dropped();
  }

  bufferedBytes(): number {
    return this.open ? this.#socket.bufferedBytes() : 0;
  }

  close(code: number, reason: string): void {
    if (!this.open) return;
    this.open = false;
    this.#socket.close(code, reason);
  }
}
