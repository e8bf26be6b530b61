/** The two ends of a link of the in-memory network. */
import type { Environment } from '../actor/environment.ts';
import type { Address, Link, LinkClose, PeerIdentity } from './contract.ts';

/** Carries calls from one address to another, in order. */
export interface MemoryWire {
  send(from: Address, to: Address, run: () => void, environment: Environment): void;
}

export interface MemoryLinkOwner {
  readonly environment: Environment;
  readonly identity: PeerIdentity;
  frameArrived(link: Link, bytes: Uint8Array): void;
  linkClosed(link: MemoryLink, close: LinkClose): void;
}

/** The two ends of one link; the first belongs to the side that dialled. */
export function linkPair(wire: MemoryWire, near: MemoryLinkOwner, far: MemoryLinkOwner): [MemoryLink, MemoryLink] {
  const a = new MemoryLink(wire, near, far.identity, true);
  const b = new MemoryLink(wire, far, near.identity, false);
  a.other = b;
  b.other = a;
  return [a, b];
}

export class MemoryLink implements Link {
  readonly peer: PeerIdentity;
  readonly dialled: boolean;
  readonly copies = true;
  other: MemoryLink | undefined;
  readonly #wire: MemoryWire;
  readonly #owner: MemoryLinkOwner;
  readonly #address: Address;
  #buffered = 0;
  #state: 'open' | 'closing' | 'closed' = 'open';

  constructor(wire: MemoryWire, owner: MemoryLinkOwner, peer: PeerIdentity, dialled: boolean) {
    this.peer = peer;
    this.dialled = dialled;
    this.#wire = wire;
    this.#owner = owner;
    this.#address = owner.identity.address;
  }

  send(frame: Uint8Array): void {
    if (this.#state !== 'open') return;
    const bytes = frame.slice();
    this.#buffered += bytes.byteLength;
    this.#toOther((other) => {
      this.#buffered -= bytes.byteLength;
      other.#receive(bytes);
    });
  }

  bufferedBytes(): number {
    return this.#buffered;
  }

  close(code: number, reason: string): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    const close: LinkClose = { code, reason, clean: true };
    this.#toOther((other) => other.#end(close));
    this.#owner.environment.turns.schedule(() => this.#end(close));
  }

  /** This end's process is gone; the other end finds out. */
  lose(): void {
    this.#state = 'closed';
    this.#toOther((other) => other.#end({ code: 1006, reason: 'connection lost', clean: false }));
  }

  #receive(bytes: Uint8Array): void {
    if (this.#state === 'open') this.#owner.frameArrived(this, bytes);
  }

  #end(close: LinkClose): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#owner.linkClosed(this, close);
  }

  #toOther(run: (other: MemoryLink) => void): void {
    const other = this.other;
    if (other === undefined) return;
    this.#wire.send(this.#address, this.peer.address, () => run(other), other.#owner.environment);
  }
}
