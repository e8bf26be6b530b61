/**
 * A network for tests of what sits on links: each connection has delays of its own in each direction, so that two
 * connections between the same nodes overtake each other as they do in life. Either side may have its link first.
 */
import type { Environment } from '../../src/actor/environment.ts';
import type {
  Address,
  DialFailure,
  Link,
  LinkClose,
  PeerIdentity,
  Transport,
  TransportEvents,
} from '../../src/transport/contract.ts';

export interface FakeNetOptions {
  /** One-way delay of one packet; default 0. */
  readonly delay?: () => number;
  /** Whether the dialling side of the next connection has its link first; default: no. */
  readonly diallerFirst?: () => boolean;
}

export class FakeNet {
  readonly env: Environment;
  readonly options: FakeNetOptions;
  readonly nodes = new Map<Address, FakeTransport>();
  readonly wires = new Set<Wire>();
  private readonly blocked = new Set<string>();

  constructor(env: Environment, options: FakeNetOptions = {}) {
    this.env = env;
    this.options = options;
  }

  transport(address: Address, uid: string): FakeTransport {
    return new FakeTransport(this, { address, uid, clusterName: 'test', roles: [], runtime: 'memory' });
  }

  isBlocked(from: Address, to: Address): boolean {
    return this.blocked.has(`${from}>${to}`);
  }

  /** What is sent that way waits for `heal`. */
  cut(from: Address, to: Address): void {
    this.blocked.add(`${from}>${to}`);
  }

  heal(from: Address, to: Address): void {
    this.blocked.delete(`${from}>${to}`);
    for (const wire of [...this.wires]) if (wire.from === from && wire.to === to) wire.release();
  }

  /** Open connections between the two swallow everything from now on, and nobody is told. */
  hang(a: Address, b: Address): void {
    for (const wire of this.wires) if ([wire.from, wire.to].sort().join() === [a, b].sort().join()) wire.hung = true;
  }

  /** The process dies; its peers hear of it, unless its connections hang. */
  crash(address: Address): void {
    const node = this.nodes.get(address);
    this.nodes.delete(address);
    node?.die();
  }

  newWire(from: Address, to: Address): Wire {
    const wire = new Wire(this, from, to);
    this.wires.add(wire);
    return wire;
  }
}

/** One direction of one connection. */
class Wire {
  readonly from: Address;
  readonly to: Address;
  hung = false;
  private readonly net: FakeNet;
  private readonly queue: (() => void)[] = [];
  private arrived = 0;
  private last = 0;

  constructor(net: FakeNet, from: Address, to: Address) {
    this.net = net;
    this.from = from;
    this.to = to;
  }

  send(run: () => void): void {
    if (this.hung) return;
    this.queue.push(run);
    const { clock, timers, turns } = this.net.env;
    const at = Math.max(this.last, clock.now() + (this.net.options.delay?.() ?? 0));
    this.last = at;
    const arrive = () => {
      this.arrived++;
      this.release();
    };
    if (at > clock.now()) timers.set(at - clock.now(), arrive);
    else turns.schedule(arrive);
  }

  release(): void {
    while (this.arrived > 0 && !this.net.isBlocked(this.from, this.to)) {
      this.arrived--;
      const run = this.queue.shift();
      if (!this.hung) run?.();
    }
  }
}

class FakeLink implements Link {
  readonly peer: PeerIdentity;
  readonly dialled: boolean;
  readonly owner: FakeTransport;
  readonly wire: Wire;
  other: FakeLink | undefined = undefined;
  state: 'opening' | 'open' | 'closed' = 'opening';
  private unsent = 0;

  constructor(owner: FakeTransport, peer: PeerIdentity, dialled: boolean, wire: Wire) {
    this.owner = owner;
    this.peer = peer;
    this.dialled = dialled;
    this.wire = wire;
    owner.links.add(this);
  }

  send(frame: Uint8Array): void {
    if (this.state !== 'open') return;
    const bytes = frame.slice();
    this.unsent += bytes.length;
    this.wire.send(() => {
      this.unsent -= bytes.length;
      if (this.other!.state === 'open') this.other!.owner.events?.frame(this.other!, bytes);
    });
  }

  bufferedBytes(): number {
    return this.unsent;
  }

  close(code: number, reason: string): void {
    if (this.state === 'closed') return;
    this.wire.send(() => this.other?.end({ code, reason, clean: true }));
    this.state = 'closed';
    this.owner.links.delete(this);
    this.owner.net.env.turns.schedule(() => this.owner.events?.closed(this, { code, reason, clean: true }));
  }

  end(close: LinkClose): void {
    if (this.state === 'closed') return;
    const wasOpen = this.state === 'open';
    this.state = 'closed';
    this.owner.links.delete(this);
    if (wasOpen) this.owner.events?.closed(this, close);
  }
}

const refused: DialFailure = { reason: 'refused', code: 'refused', detail: 'nobody listens there' };

export class FakeTransport implements Transport {
  readonly net: FakeNet;
  readonly identity: PeerIdentity;
  readonly links = new Set<FakeLink>();
  events: TransportEvents | undefined = undefined;

  constructor(net: FakeNet, identity: PeerIdentity) {
    this.net = net;
    this.identity = identity;
  }

  start(events: TransportEvents): Promise<Address> {
    this.events = events;
    this.net.nodes.set(this.identity.address, this);
    return Promise.resolve(this.identity.address);
  }

  dial(address: Address, done: (outcome: Link | DialFailure) => void): () => void {
    let over = false;
    const out = this.net.newWire(this.identity.address, address);
    const back = this.net.newWire(address, this.identity.address);
    let near: FakeLink | undefined;
    const opened = () => {
      if (near === undefined || near.state !== 'opening') return;
      near.state = 'open';
      over = true;
      done(near);
    };
    out.send(() => {
      const node = this.net.nodes.get(address);
      if (node === undefined) return back.send(() => over || ((over = true), done(refused)));
      if (over) return;
      const far = new FakeLink(node, this.identity, false, back);
      near = new FakeLink(this, node.identity, true, out);
      near.other = far;
      far.other = near;
      const accept = () => {
        if (far.state !== 'opening') return;
        far.state = 'open';
        node.events?.accepted(far);
      };
      if (this.net.options.diallerFirst?.() !== true) {
        back.send(opened);
        return accept();
      }
      back.send(() => {
        if (near!.state !== 'opening') return;
        out.send(accept);
        opened();
      });
    });
    return () => {
      if (over) return;
      over = true;
      near?.close(1000, 'cancelled');
    };
  }

  probe(): () => void {
    return () => {};
  }

  seed(): () => void {
    return () => {};
  }

  stop(): Promise<void> {
    for (const link of [...this.links]) link.close(1000, 'stopped');
    this.net.nodes.delete(this.identity.address);
    return Promise.resolve();
  }

  die(): void {
    this.events = undefined;
    for (const link of [...this.links]) {
      link.state = 'closed';
      link.wire.send(() => link.other?.end({ code: 1006, reason: 'connection lost', clean: false }));
    }
    this.links.clear();
  }
}
