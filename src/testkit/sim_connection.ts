/**
 * A simulated connection: two ends, each direction ordered and reliable like TCP. What is sent into a cut is held and
 * comes through after the heal; a hung connection swallows everything without telling anybody.
 */
import type { Link, LinkClose, PeerIdentity } from '../transport/contract.ts';
import type { SimNetwork } from './sim_network.ts';
import type { SimPath } from './sim_path.ts';
import type { SimProcess } from './sim_process.ts';

export type Item =
  /** The handshake is complete for the receiving side. */
  | { readonly kind: 'open' }
  | { readonly kind: 'frame'; readonly bytes: Uint8Array }
  | { readonly kind: 'close'; readonly close: LinkClose };

/** What an end tells its transport. */
export interface EndOwner {
  opened(end: SimEnd): void;
  frame(end: SimEnd, bytes: Uint8Array): void;
  closed(end: SimEnd, close: LinkClose): void;
  /** The end was lost before its handshake was complete. */
  failed(end: SimEnd, why: string): void;
}

/** Two frames of one direction never arrive at the same instant. */
const spacingMs = 0.0005;
/** What the kernels of both sides take before bytes stay in the sender's process. */
const kernelBufferBytes = 512 * 1024;

export class SimEnd implements Link {
  readonly peer: PeerIdentity;
  readonly dialled: boolean;
  readonly process: SimProcess;
  readonly owner: EndOwner;
  readonly connection: SimConnection;
  readonly out: SimPath;
  state: 'opening' | 'open' | 'closed' = 'opening';
  /** Items sent and not yet through to the other side, because of a cut. */
  held: Item[] = [];
  other: SimEnd | undefined = undefined;
  /** On a dialling end before the handshake: the process that should answer. */
  awaits: SimProcess | undefined = undefined;
  /** Changes when everything in flight from this end is lost. */
  generation = 0;
  #lastArrival = 0;
  #unread = 0;

  constructor(options: {
    peer: PeerIdentity;
    dialled: boolean;
    process: SimProcess;
    owner: EndOwner;
    connection: SimConnection;
    out: SimPath;
  }) {
    this.peer = options.peer;
    this.dialled = options.dialled;
    this.process = options.process;
    this.owner = options.owner;
    this.connection = options.connection;
    this.out = options.out;
  }

  send(frame: Uint8Array): void {
    if (this.state !== 'open' || !this.process.alive) return;
    const bytes = frame.slice();
    this.#unread += bytes.length;
    this.transmit({ kind: 'frame', bytes });
  }

  bufferedBytes(): number {
    return Math.max(0, this.#unread - kernelBufferBytes);
  }

  close(code: number, reason: string): void {
    if (this.state === 'closed') return;
    const close: LinkClose = { code, reason, clean: true };
    this.transmit({ kind: 'close', close });
    this.finish(close);
  }

  /** Local end of the connection: nothing arrives any more, and the owner hears of it in a turn of its own. */
  finish(close: LinkClose): void {
    if (this.state === 'closed') return;
    const wasOpen = this.state === 'open';
    this.state = 'closed';
    this.connection.network.forget(this);
    const tell = () => wasOpen ? this.owner.closed(this, close) : this.owner.failed(this, close.reason);
    this.process.world.schedule(this.process.world.now, this.process, 'io', tell);
  }

  /** Puts an item on its way to the other side. */
  transmit(item: Item): void {
    const to = this.other;
    if (to === undefined || this.connection.hung) return;
    const world = this.process.world;
    let arrival = world.now + this.out.delay();
    if (arrival < this.#lastArrival + spacingMs) arrival = this.#lastArrival + spacingMs;
    this.#lastArrival = arrival;
    const generation = this.generation;
    const event = world.schedule(arrival, to.process, 'io', () => to.deliver(item, this));
    event.admit = () => this.#admit(item, generation, to);
  }

  /** After a heal: what was held arrives, in order, once TCP's retransmission timer of `delayMs` has run out. */
  release(delayMs: number): void {
    if (this.held.length === 0) return;
    const world = this.process.world;
    world.at(world.now + delayMs, () => {
      const to = this.other;
      if (to === undefined || !this.out.open || this.connection.hung) return;
      const items = this.held;
      this.held = [];
      for (const item of items) {
        if (this.#arrive(item, to)) world.schedule(world.now, to.process, 'io', () => to.deliver(item, this));
      }
      if (this.state === 'closed') this.connection.network.forget(this);
    });
  }

  deliver(item: Item, from: SimEnd): void {
    switch (item.kind) {
      case 'open':
        if (this.state === 'opening') {
          this.state = 'open';
          this.owner.opened(this);
        } else if (this.state === 'closed') {
          from.reset('the other side gave up');
        }
        return;
      case 'frame':
        from.#unread -= item.bytes.length;
        if (this.state === 'open') this.owner.frame(this, item.bytes);
        return;
      case 'close':
        if (this.state === 'open') {
          this.state = 'closed';
          this.connection.network.forget(this);
          this.owner.closed(this, item.close);
        } else {
          this.finish(item.close);
        }
        return;
      default:
        return item satisfies never;
    }
  }

  /** This end learns, without a close frame, that the connection is gone. */
  reset(reason: string): void {
    this.finish({ code: 1006, reason, clean: false });
  }

  /** The packet would be at the other machine now: is it? */
  #admit(item: Item, generation: number, to: SimEnd): boolean {
    if (generation !== this.generation || this.connection.hung) return false;
    if (!this.out.open || this.held.length > 0) {
      this.held.push(item);
      this.connection.network.remember(this);
      return false;
    }
    return this.#arrive(item, to);
  }

  /** The packet has reached the other machine: does it get into that process? */
  #arrive(item: Item, to: SimEnd): boolean {
    const network = this.connection.network;
    if (to.process.alive && to.state !== 'closed') {
      if (item.kind === 'frame') network.observed(this, item.bytes);
      return true;
    }
    if (item.kind !== 'close' && to.process.host.machineUp) {
      network.resetLater(this, to, 'the peer does not know this connection');
    }
    return false;
  }
}

export class SimConnection {
  readonly network: SimNetwork;
  readonly id: number;
  /** Both directions swallow everything, as after a router forgot the connection. */
  hung = false;
  /** Which side has its link first: handshakes differ, and code must stand both. */
  readonly dialledOpensFirst: boolean;

  constructor(network: SimNetwork, id: number, dialledOpensFirst: boolean) {
    this.dialledOpensFirst = dialledOpensFirst;
    this.network = network;
    this.id = id;
  }
}
