/**
 * What sits between a node's parts and its links: one connection per pair of nodes, dialled on demand, with a system lane
 * that never waits behind the user lane, and batching by event-loop turn.
 */
import type { Address, DialFailure, PeerIdentity } from './contract.ts';

/**
 * One message between nodes: a tuple that starts with its code (an integer, see `wire/codes.ts`). What follows is plain
 * data that the codec can carry; the owner of the code validates it.
 */
export type Envelope = readonly [code: number, ...fields: unknown[]];

/** Thrown by `sendUser` for a message that cannot be sent: nothing was queued and the link is not affected. */
export interface SendFailure {
  readonly reason: 'unserializable' | 'too-large' | 'queue-full' | 'closed';
  readonly detail: string;
}

/** Told the encoded size of a message. */
export type Sized = (bytes: number) => void;

/** What the links would make of a message, for one that stays on this node. */
export interface MessageCheck {
  /** About how many bytes a message takes; or why it could not be sent to anybody. */
  weigh(message: unknown): number | SendFailure;
  /** A message as a receiver would have it; or why it could not be sent to anybody. */
  copy(message: unknown): { readonly value: unknown } | SendFailure;
}

export interface PeersEvents {
  /** A link to this peer is open (again). `uid` may be new: a restart at the same address. */
  connected(peer: PeerIdentity): void;
  /** The last link to this peer is gone. `clean` when one side closed it on purpose. */
  disconnected(peer: PeerIdentity, clean: boolean, why: string): void;
  dialFailed(address: Address, failure: DialFailure): void;
  /**
   * `envelope[0]` is a safe integer; all else is unchecked. Frames that do not decode never get here. `bytes`: its share of
   * the frame it came in.
   */
  message(peer: PeerIdentity, envelope: Envelope, bytes: number): void;
  listenerLost(why: string): void;
}

export interface Peers extends MessageCheck {
  readonly address: Address;
  /**
   * Dials when there is no link; bounded queue until it opens; dropped (counted) when the dial fails. Never throws.
   * With `uid` it goes to that process only, never to a later one at the same address.
   */
  sendSystem(address: Address, envelope: Envelope, uid?: string): void;
  /** Undefined when queued; otherwise why not. `uid` as above. `sized` is told the encoded size of what is queued. */
  sendUser(address: Address, envelope: Envelope, uid?: string, sized?: Sized): SendFailure | undefined;
  /** Makes sure a link to `address` exists or is being dialled. */
  connect(address: Address): void;
  connected(address: Address): PeerIdentity | undefined;
  /** Closes the link to `address`, if any, after its queues are flushed. */
  disconnect(address: Address, code: number, reason: string): void;
  /** True while the user lane to `address` is above its high-water mark. */
  congested(address: Address): boolean;
  /** Runs `run` once before the queues are next sent, after the present callback: what it sends leaves with them. */
  beforeFlush(run: () => void): void;
  /** Sends what is queued now instead of at the end of the turn. */
  flush(): void;
  stop(): Promise<void>;
}
