/**
 * A network in memory, for tests: the contract of `Transport` without sockets, handshakes or promises in its way. Every
 * event is delivered in a turn of its own (or after a delay) of the environment, so that a virtual clock can drive it.
 * Identities are taken as given.
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { formatAddress, parseAddress } from './address.ts';
import type {
  Address,
  CallerGateEvents,
  DialFailure,
  Link,
  LinkClose,
  PeerIdentity,
  ProbeOutcome,
  SeedAnswer,
  Transport,
  TransportEvents,
} from './contract.ts';
import { ListenError } from './errors.ts';
import { linkPair, type MemoryLink, type MemoryLinkOwner } from './memory_link.ts';

export interface MemoryNetworkOptions {
  readonly environment: Environment;
  /** One-way delay in milliseconds; 0 (the default) is the next turn. */
  readonly delayMs?: (from: Address, to: Address) => number;
}

export interface MemoryTransportOptions {
  /** A port of 0 becomes a free one. */
  readonly address: Address;
  readonly uid: string;
  readonly clusterName: string;
  readonly roles?: readonly string[];
  /** Default: a node in no cluster. */
  readonly seedAnswer?: () => SeedAnswer;
  /** The environment its events are delivered in; default: the network's. */
  readonly environment?: Environment;
}

/** What travels from one node to another waits here, in order: for its time, and for a cut to heal. */
interface Lane {
  readonly queue: { readonly run: () => void; ready: boolean }[];
  blocked: boolean;
}

export class MemoryNetwork {
  readonly environment: Environment;
  readonly #delayMs: (from: Address, to: Address) => number;
  readonly #nodes = new Map<Address, MemoryTransport>();
  readonly #lanes = new Map<string, Lane>();
  #nextPort = 20_000;

  constructor(options: MemoryNetworkOptions) {
    this.environment = options.environment;
    this.#delayMs = options.delayMs ?? (() => 0);
  }

  transport(options: MemoryTransportOptions): MemoryTransport {
    return new MemoryTransport(this, options);
  }

  /** From now on nothing gets from one to the other, in both directions; what is under way waits for `heal`. */
  cut(a: Address, b: Address): void {
    this.cutOneWay(a, b);
    this.cutOneWay(b, a);
  }

  cutOneWay(from: Address, to: Address): void {
    this.#lane(from, to).blocked = true;
  }

  heal(a: Address, b: Address): void {
    for (const [from, to] of [[a, b], [b, a]] as const) {
      const lane = this.#lane(from, to);
      lane.blocked = false;
      this.#release(lane);
    }
  }

  /** The process at `address` is gone: its peers lose their links, and it hears and says nothing more. */
  crash(address: Address): void {
    const node = this.#nodes.get(address);
    this.#nodes.delete(address);
    node?.die();
  }

  /** For transports: the node that listens at an address. */
  at(address: Address): MemoryTransport | undefined {
    return this.#nodes.get(address);
  }

  bind(address: Address, node: MemoryTransport): Address {
    const target = parseAddress(address);
    if (target === undefined) throw new ListenError(address, 0, 'no-such-address');
    const bound = target.port === 0 ? formatAddress(target.host, this.#nextPort++) : address;
    if (this.#nodes.has(bound)) throw new ListenError(target.host, target.port, 'port-in-use');
    this.#nodes.set(bound, node);
    return bound;
  }

  unbind(address: Address, node: MemoryTransport): void {
    if (this.#nodes.get(address) === node) this.#nodes.delete(address);
  }

  /** Runs `run` at the other end, after everything sent that way before. */
  send(from: Address, to: Address, run: () => void, environment: Environment): void {
    const lane = this.#lane(from, to);
    const item = { run, ready: false };
    lane.queue.push(item);
    const arrive = () => {
      item.ready = true;
      this.#release(lane);
    };
    const delay = this.#delayMs(from, to);
    if (delay > 0) environment.timers.set(delay, arrive);
    else environment.turns.schedule(arrive);
  }

  #release(lane: Lane): void {
    while (!lane.blocked && lane.queue[0]?.ready === true) lane.queue.shift()?.run();
  }

  #lane(from: Address, to: Address): Lane {
    const key = `${from} ${to}`;
    const lane = this.#lanes.get(key) ?? { queue: [], blocked: false };
    this.#lanes.set(key, lane);
    return lane;
  }
}

export class MemoryTransport implements Transport {
  readonly #network: MemoryNetwork;
  readonly #options: MemoryTransportOptions;
  readonly #links = new Set<MemoryLink>();
  #address: Address;
  #events: TransportEvents | undefined;
  #callers: CallerGateEvents | undefined;
  #bound = false;
  #dead = false;

  constructor(network: MemoryNetwork, options: MemoryTransportOptions) {
    this.#network = network;
    this.#options = options;
    this.#address = options.address;
  }

  get environment(): Environment {
    return this.#options.environment ?? this.#network.environment;
  }

  get identity(): PeerIdentity {
    const { uid, clusterName, roles = [] } = this.#options;
    return { address: this.#address, uid, clusterName, roles, runtime: 'memory' };
  }

  async start(events: TransportEvents): Promise<Address> {
    if (this.#events !== undefined) throw new Error('this transport has been started before');
    this.#address = this.#network.bind(this.#address, this);
    this.#events = events;
    this.#bound = true;
    return this.#address;
  }

  dial(address: Address, done: (outcome: Link | DialFailure) => void): Cancel {
    let link: MemoryLink | undefined;
    return this.#call<Link | DialFailure>(address, timedOut, (node, answer) => {
      if (node === undefined) return answer(refused);
      const refusal = refusalOf(this.identity, node.identity);
      if (refusal !== undefined) return answer(refusal);
      const [near, far] = linkPair(this.#network, this, node);
      link = near;
      // The answer sets off first, so that frames of an eager accepter come behind it.
      answer(near);
      node.#adopt(far);
      node.#events?.accepted(far);
    }, (outcome) => {
      if (link !== undefined && 'peer' in outcome) this.#adopt(link);
      done(outcome);
    }, () => link?.close(1000, 'cancelled'));
  }

  probe(address: Address, done: (outcome: ProbeOutcome) => void): Cancel {
    return this.#call<ProbeOutcome>(
      address,
      'timeout',
      (node, answer) => answer(node === undefined ? 'refused' : 'open'),
      done,
    );
  }

  seed(address: string, done: (answer: SeedAnswer | DialFailure) => void): Cancel {
    const target = address.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
    return this.#call<SeedAnswer | DialFailure>(target, timedOut, (node, answer) => {
      answer(node === undefined ? refused : node.#seedAnswer());
    }, done);
  }

  async stop(): Promise<void> {
    for (const link of [...this.#links]) link.close(1000, 'node stopped');
    this.#network.unbind(this.#address, this);
    this.#bound = false;
  }

  /** The listener dies by itself. */
  loseListener(why: string): void {
    if (!this.#bound) return;
    this.#bound = false;
    this.#network.unbind(this.#address, this);
    this.environment.turns.schedule(() => this.#events?.listenerLost(why));
  }

  /** For the network: the process is gone. */
  die(): void {
    this.#dead = true;
    for (const link of [...this.#links]) link.lose();
    this.#links.clear();
  }

  serveCallers(events: CallerGateEvents): void {
    this.#callers = events;
  }

  /** For the network: the caller's end of a new link, unless callers are not served. */
  called(caller: MemoryLinkOwner, owner: number): MemoryLink | undefined {
    const events = this.#callers;
    if (events === undefined || events.unready() !== undefined || this.#dead || !this.#bound) return undefined;
    const own: MemoryLinkOwner = {
      environment: this.environment,
      identity: this.identity,
      frameArrived: (link, bytes) => this.#dead ? undefined : events.frame(link, bytes),
      linkClosed: (link, close) => {
        if (this.#links.delete(link) && !this.#dead) events.closed(link, close);
      },
    };
    const [near, far] = linkPair(this.#network, caller, own);
    this.#adopt(far);
    if (!events.accepted(far, owner)) far.close(4429, 'too-many-connections: refused');
    return near;
  }

  /** For links. */
  frameArrived(link: Link, bytes: Uint8Array): void {
    if (!this.#dead) this.#events?.frame(link, bytes);
  }

  linkClosed(link: MemoryLink, close: LinkClose): void {
    // A link whose dial was cancelled or timed out was never handed over.
    if (this.#links.delete(link) && !this.#dead) this.#events?.closed(link, close);
  }

  #adopt(link: MemoryLink): void {
    this.#links.add(link);
  }

  #seedAnswer(): SeedAnswer {
    const { clusterName, uid } = this.#options;
    return this.#options.seedAnswer?.() ?? {
      clusterName,
      protocol: 1,
      fingerprint: '',
      address: this.#address,
      uid,
      clusterId: undefined,
      formedAt: undefined,
      members: [],
    };
  }

  /** There and back: `ask` runs at the other end, `done` here. Nobody listening there still answers (with a reset). */
  #call<T>(
    address: Address,
    onTimeout: T,
    ask: (node: MemoryTransport | undefined, answer: (value: T) => void) => void,
    done: (value: T) => void,
    onLate: () => void = () => {},
  ): Cancel {
    let over = false;
    const finish = (value: T) => {
      if (over || this.#dead) return onLate();
      over = true;
      cancelTimer();
      done(value);
    };
    const cancelTimer = this.environment.timers.set(limits.dialMs, () => over ? undefined : finish(onTimeout));
    this.#network.send(this.#address, address, () => {
      const node = this.#network.at(address);
      const answer = (value: T) => {
        this.#network.send(address, this.#address, () => finish(value), this.environment);
      };
      if (!this.#dead) ask(node, answer);
    }, this.#network.at(address)?.environment ?? this.environment);
    return () => {
      over = true;
      cancelTimer();
    };
  }
}

const timedOut: DialFailure = { reason: 'timeout', code: 'timeout', detail: `no answer within ${limits.dialMs} ms` };
export const refused: DialFailure = { reason: 'refused', code: 'refused', detail: 'connection refused' };

function refusalOf(own: PeerIdentity, peer: PeerIdentity): DialFailure | undefined {
  const rejected = (code: string, detail: string): DialFailure => ({ reason: 'rejected', code, detail });
  if (own.clusterName !== peer.clusterName) {
    return rejected('cluster-name', `this node is in cluster '${own.clusterName}', the peer in '${peer.clusterName}'`);
  }
  if (own.uid === peer.uid) return rejected('self', `${own.address} is this node itself`);
  return own.address === peer.address ? rejected('address-claimed', `two nodes claim ${own.address}`) : undefined;
}
