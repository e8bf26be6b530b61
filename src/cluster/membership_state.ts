/** The state of one node's membership, and what can happen to it. See `membership.ts`. */
import { fastPaths } from '../fast_paths.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import { isConverged } from './convergence.ts';
import type { DigestMessage, GossipMessage } from './gossip_codec.ts';
import { digestOf, emptyGossip, type GossipState, type MemberRecord, withRecord } from './gossip_state.ts';
import type { HostingClaim, MemberStatus, StartedRecord } from './member.ts';
import { type Seen, seenIn } from './seen.ts';
import { isLater } from './transitions.ts';

export interface MembershipRules {
  /** M of rule 1 for a cluster of so many members, in milliseconds. */
  readonly marginMs: (members: number) => number;
  /** Nobody is numbered before the cluster has this many members, once. */
  readonly minMembers: number;
}

export type Phase = 'outside' | 'member' | 'ended';

export interface HeardDigest {
  readonly digest: string;
  readonly seen: Seen;
}

export interface Membership {
  readonly phase: Phase;
  readonly selfUid: string;
  readonly rules: MembershipRules;
  /** Contains this node's own record, also before it has joined. */
  readonly gossip: GossipState;
  /** uids known to hold exactly this gossip state. */
  readonly seen: ReadonlySet<string>;
  /** The last digest heard from each peer while it differed from ours: it may be where we are about to arrive. */
  readonly heard: ReadonlyMap<string, HeardDigest>;
  /** As leader: when each down member may be removed. A new leader starts again (rule 1). */
  readonly margins: ReadonlyMap<string, number>;
  /** Joiners that wait until the previous member at their address is down, by address. */
  readonly waiting: ReadonlyMap<Address, { readonly record: MemberRecord; readonly until: number }>;
}

export type MembershipEvent =
  | {
    readonly kind: 'form';
    readonly clusterId: string;
    readonly formedAt: number;
    readonly founders: readonly MemberRecord[];
  }
  | { readonly kind: 'gossip'; readonly from: PeerIdentity; readonly message: GossipMessage }
  | {
    readonly kind: 'digest';
    readonly from: PeerIdentity;
    readonly message: DigestMessage;
    readonly repair: boolean | 'whole';
  }
  | { readonly kind: 'join'; readonly record: MemberRecord }
  | { readonly kind: 'observed'; readonly uid: string; readonly unreachable: boolean }
  | { readonly kind: 'down'; readonly uids: readonly string[]; readonly terminated: boolean; readonly why: string }
  | {
    readonly kind: 'publish';
    readonly started: ReadonlyMap<string, StartedRecord> | undefined;
    readonly hosting: ReadonlyMap<string, HostingClaim> | undefined;
  }
  | { readonly kind: 'entry'; readonly key: string; readonly value: unknown }
  | { readonly kind: 'leaving' }
  | { readonly kind: 'exiting' }
  /** This node stood still: what it hears next may be old. */
  | { readonly kind: 'woke' }
  | { readonly kind: 'tick' }
  | {
    readonly kind: 'end';
    readonly why: string;
    readonly selfDown: boolean;
    readonly rejoin: boolean;
    readonly via?: readonly Address[];
  };

export type MembershipEffect =
  /** The state changed: tell everyone who needs it. */
  | { readonly kind: 'push' }
  /** This node now holds what somebody else made: tell the leader that it has seen it. */
  | { readonly kind: 'progress' }
  /** Send the whole state to one node; `about` are tombstones it seems not to know. */
  | { readonly kind: 'reply'; readonly to: Address; readonly about: readonly string[] }
  /** The same to one whose digest differs, unless that is about to change anyway. */
  | { readonly kind: 'repair'; readonly to: Address }
  /** What changed elsewhere cannot be taken alone: send us the whole. */
  | { readonly kind: 'ask'; readonly to: Address }
  /** Somebody who is no member here talks as if it were. */
  | { readonly kind: 'notice'; readonly to: PeerIdentity; readonly otherCluster: boolean }
  /** Members just removed: their last message from us says so. */
  | { readonly kind: 'farewell'; readonly members: readonly MemberRecord[] }
  /** Somebody new asks for an address that an older member still holds. */
  | { readonly kind: 'contested'; readonly joiner: MemberRecord; readonly holder: MemberRecord }
  /** `expected`: happens in sound clusters too. */
  | {
    readonly kind: 'refused';
    readonly what: string;
    readonly why: string;
    readonly from: PeerIdentity | undefined;
    readonly expected?: boolean;
  }
  /** `final`: this uid can never join. */
  | { readonly kind: 'refuse-join'; readonly to: Address; readonly why: string; readonly final: boolean }
  /** Come back with a `tick` at this monotonic time. */
  | { readonly kind: 'wake'; readonly at: number }
  | { readonly kind: 'downed'; readonly record: MemberRecord; readonly why: string }
  /** `via`: addresses of the side that lives on, where a new incarnation should ask as well. */
  | {
    readonly kind: 'ended';
    readonly why: string;
    readonly selfDown: boolean;
    readonly rejoin: boolean;
    readonly via: readonly Address[];
  };

export interface Step {
  readonly state: Membership;
  readonly effects: readonly MembershipEffect[];
}

export function createMembership(self: MemberRecord, rules: MembershipRules): Membership {
  return {
    phase: 'outside',
    selfUid: self.uid,
    rules,
    gossip: withRecord(emptyGossip('', 0), self),
    seen: new Set([self.uid]),
    heard: new Map(),
    margins: new Map(),
    waiting: new Map(),
  };
}

export function selfRecord(state: Membership): MemberRecord {
  const record = state.gossip.records.get(state.selfUid);
  if (record === undefined) throw new Error('membership: the own record is missing');
  return record;
}

/** Replaces the gossip state with a locally changed one: nobody else has seen that, except who said so already. */
export function changed(state: Membership, gossip: GossipState): Membership {
  const digest = digestOf(gossip);
  if (digest === digestOf(state.gossip)) return { ...state, gossip };
  return arrive({ ...state, gossip }, digest, [state.selfUid]);
}

/** `seen` plus everyone who has reported the same digest before. Returns `state` itself when that is nothing new. */
export function arrive(state: Membership, digest: string, seen: Iterable<string>): Membership {
  const { gossip: { records }, heard } = state;
  const all = new Set<string>([state.selfUid]);
  for (const uid of seen) if (records.has(uid)) all.add(uid);
  let kept: Map<string, HeardDigest> | undefined;
  for (const [peer, report] of heard) {
    const arrived = report.digest === digest;
    if (records.has(peer) && !arrived) continue;
    (kept ??= new Map(heard)).delete(peer);
    if (arrived) { for (const uid of seenIn(state.gossip, report.seen)) if (records.has(uid)) all.add(uid); }
  }
  if (kept === undefined && sameItems(all, state.seen)) return state;
  return { ...state, seen: all, heard: kept ?? heard };
}

/** The same where the state stays as it was: whoever has seen it has seen it. Nearly always that is nothing new. */
export function arriveAgain(state: Membership, digest: string, seen: readonly string[]): Membership {
  const { gossip: { records }, heard } = state;
  let news = seen.some((uid) => !state.seen.has(uid) && records.has(uid));
  for (const [peer, report] of heard) if (report.digest === digest || !records.has(peer)) news = true;
  return news || !fastPaths.carriedIndex ? arrive(state, digest, [...state.seen, ...seen]) : state;
}

function sameItems(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a.size !== b.size) return false;
  for (const item of a) if (!b.has(item)) return false;
  return true;
}

/** Nothing after this changes the state any more. */
export function end(
  state: Membership,
  why: string,
  selfDown: boolean,
  rejoin: boolean,
  via: readonly Address[] = [],
): Step {
  return { state: { ...state, phase: 'ended' }, effects: [{ kind: 'ended', why, selfDown, rejoin, via }] };
}

/** Has this node's own record got as far as `status`? */
export function selfReached(state: Membership, status: MemberStatus): boolean {
  const { status: present } = selfRecord(state);
  return present === status || isLater(present, status);
}

export function converged(state: Membership): boolean {
  return state.phase === 'member' && isConverged(state.gossip, state.seen);
}
