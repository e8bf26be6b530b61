/**
 * The seam between a cluster node and the network. A `Transport` gives authenticated links between nodes; the WebSocket
 * transport proves identities with the cluster's secret, the in-memory one (tests, simulator) takes them as given.
 * Everything is callbacks: nothing here waits on a promise once started, so that a virtual clock can drive it.
 */
import type { Cancel } from '../actor/environment.ts';

/** `host:port`, the address a node advertises. */
export type Address = string;

/** Who is at the other end of a link, as proved by the handshake and never by a payload. */
export interface PeerIdentity {
  readonly address: Address;
  /** Random per process start. */
  readonly uid: string;
  readonly clusterName: string;
  readonly roles: readonly string[];
  /** 'bun', 'deno', 'node', 'edge', 'memory'. */
  readonly runtime: string;
}

export type DialReason = 'refused' | 'timeout' | 'reset' | 'rejected' | 'other';

/** Why a dial gave no link. `rejected`: the other side answered and said no (wrong secret, name, version, …). */
export interface DialFailure {
  readonly reason: DialReason;
  readonly code: string;
  readonly detail: string;
}

export interface LinkClose {
  readonly code: number;
  readonly reason: string;
  /** True when one side closed it on purpose. */
  readonly clean: boolean;
}

/** One authenticated, ordered, message-framed connection. */
export interface Link {
  readonly peer: PeerIdentity;
  /** True on the side that dialled. */
  readonly dialled: boolean;
  /** Hands a frame over (at most `limits.frameBytes`). Never throws, never blocks; after a close it does nothing. */
  send(frame: Uint8Array): void;
  /** True where `send` has its own copy when it returns: the memory of the frame may then be used again. */
  readonly copies?: boolean;
  /** Bytes handed over that have not left this process yet. */
  bufferedBytes(): number;
  /** Assigned by the owner: some of them have left. Called where the runtime can tell, on others never. */
  onDrain?: () => void;
  /** `code` is 1000 or in 4000 … 4999. */
  close(code: number, reason: string): void;
}

/** What a transport tells its owner. All are called in a turn of their own, never from inside a call to the transport. */
export interface TransportEvents {
  /** A peer dialled us and proved its identity. */
  accepted(link: Link): void;
  frame(link: Link, bytes: Uint8Array): void;
  /** Once per link that was accepted or dialled, after its last frame. */
  closed(link: Link, close: LinkClose): void;
  /** The listener died without being asked to: the owner must treat this as its own death. */
  listenerLost(why: string): void;
}

/** The part of `GET /cluster/seed` that a joiner decides on. */
export interface SeedAnswer {
  readonly clusterName: string;
  readonly protocol: number;
  readonly fingerprint: string;
  readonly address: Address;
  readonly uid: string;
  /** Set once the answering node is in a cluster. */
  readonly clusterId: string | undefined;
  /** Order of formation, for healing across cluster ids (wall milliseconds, then the id; only ever compared as data). */
  readonly formedAt: number | undefined;
  /** Addresses of `up` members, oldest first. */
  readonly members: readonly Address[];
  /** False where the answering node will never found a cluster: others need not wait for it to do so. Default true. */
  readonly founds?: boolean;
}

/** What a transport tells of callers from outside, who are no peers. */
export interface CallerGateEvents {
  /** Why no caller is served now; undefined when they are. */
  unready(): string | undefined;
  /**
   * A caller proved the token of grant `owner`. Its uid is the key of its session, or its id where that is taken as given.
   * False: there are too many of them, or what they may send is used up for the moment.
   */
  accepted(link: Link, owner: number): boolean;
  frame(link: Link, bytes: Uint8Array): void;
  closed(link: Link, close: LinkClose): void;
}

export type ProbeOutcome = 'open' | 'refused' | 'timeout' | 'other';

export interface Transport {
  /** Numbers for the metrics, by name; `inbound` is the present one, all others only grow. */
  readonly counters?: object;
  /** Starts to listen. Resolves with the advertised address (port 0 has become a real one). */
  start(events: TransportEvents): Promise<Address>;
  /** Opens a link to the node at `address`; `done` is called once, in a later turn. Cancelling means `done` is not called. */
  dial(address: Address, done: (outcome: Link | DialFailure) => void): Cancel;
  /** Asks whether anything accepts connections at `address`, without a handshake. */
  probe(address: Address, done: (outcome: ProbeOutcome) => void): Cancel;
  /** Asks the seed at `address` (`host:port` or an http(s) URL) who it is. */
  seed(address: string, done: (answer: SeedAnswer | DialFailure) => void): Cancel;
  /** Takes callers from outside beside peers, where the transport does so by itself. */
  serveCallers?(events: CallerGateEvents): void;
  /** Stops listening, closes every link. The listener closes last. */
  stop(): Promise<void>;
}

export function isLink(outcome: Link | DialFailure): outcome is Link {
  return 'peer' in outcome;
}
