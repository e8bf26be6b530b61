/**
 * One node's membership as a pure machine: `(state, event, now) → { state, effects }`. It owns the gossip state, who has
 * seen it, and what the leader does on convergence; sockets, timers and listeners belong to the shell (`node.ts`).
 */
import { limits } from '../limits.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import { isConverged } from './convergence.ts';
import type { DigestMessage, GossipMessage } from './gossip_codec.ts';
import {
  digestOf,
  emptyGossip,
  type GossipState,
  isNewerEntry,
  type MemberRecord,
  mergeRecord,
  pruneTombstones,
  withRecord,
} from './gossip_state.ts';
import { lead } from './leader.ts';
import type { HostingClaim, MemberStatus, StartedRecord } from './member.ts';
import { receiveDigest, receiveGossip } from './receive.ts';
import { isActive, isLater, mayMove } from './transitions.ts';

export interface MembershipRules {
  /** M of rule 1 for a cluster of so many members, in milliseconds. */
  readonly marginMs: (members: number) => number;
  /** Nobody is numbered before the cluster has this many members, once. */
  readonly minMembers: number;
}

export type Phase = 'outside' | 'member' | 'ended';

export interface Membership {
  readonly phase: Phase;
  readonly selfUid: string;
  readonly rules: MembershipRules;
  /** Contains this node's own record, also before it has joined. */
  readonly gossip: GossipState;
  /** uids known to hold exactly this gossip state. */
  readonly seen: ReadonlySet<string>;
  /** The last digest heard from each peer while it differed from ours: it may be where we are about to arrive. */
  readonly heard: ReadonlyMap<string, { readonly digest: string; readonly seen: readonly string[] }>;
  /** As leader: when each down member may be removed. A new leader starts again (rule 1). */
  readonly margins: ReadonlyMap<string, number>;
  /** Joiners that wait until the previous member at their address is down, by address. */
  readonly waiting: ReadonlyMap<Address, { readonly record: MemberRecord; readonly until: number }>;
}

/** A joiner that has not asked again for this long has gone, in milliseconds. */
const waitingForMs = 5_000;

export type MembershipEvent =
  | {
    readonly kind: 'form';
    readonly clusterId: string;
    readonly formedAt: number;
    readonly founders: readonly MemberRecord[];
  }
  | { readonly kind: 'gossip'; readonly from: PeerIdentity; readonly message: GossipMessage }
  | { readonly kind: 'digest'; readonly from: PeerIdentity; readonly message: DigestMessage; readonly repair: boolean }
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

/** The transition. After the event itself the leader's duties run, as far as this node leads. */
export function step(state: Membership, event: MembershipEvent, now: number): Step {
  if (state.phase === 'ended') return { state, effects: [] };
  const first = apply(state, event, now);
  if (first.state.phase !== 'member') return first;
  const admitted = admitWaiting(first.state, now);
  const led = lead(admitted, now);
  const push: readonly MembershipEffect[] = admitted.gossip === first.state.gossip ? [] : [{ kind: 'push' }];
  return { state: led.state, effects: [...first.effects, ...push, ...led.effects] };
}

function apply(state: Membership, event: MembershipEvent, now: number): Step {
  switch (event.kind) {
    case 'form':
      return form(state, event.clusterId, event.formedAt, event.founders);
    case 'gossip':
      return receiveGossip(state, event.from, event.message);
    case 'digest':
      return receiveDigest(state, event.from, event.message, event.repair);
    case 'join':
      return join(state, event.record, now);
    case 'observed':
      return observed(state, event.uid, event.unreachable);
    case 'down':
      return down(state, event.uids, event.terminated, event.why);
    case 'publish':
      return publish(state, event.started, event.hosting);
    case 'entry':
      return writeEntry(state, event.key, event.value);
    case 'leaving':
      return moveSelf(state, 'leaving');
    case 'exiting':
      return moveSelf(state, 'exiting');
    case 'tick':
      return { state: { ...state, gossip: pruneTombstones(state.gossip, now - limits.tombstoneMs) }, effects: [] };
    case 'end':
      return end(state, event.why, event.selfDown, event.rejoin, event.via);
    default:
      return event satisfies never;
  }
}

/** Replaces the gossip state with a locally changed one: nobody else has seen that, except who said so already. */
export function changed(state: Membership, gossip: GossipState): Membership {
  const digest = digestOf(gossip);
  if (digest === digestOf(state.gossip)) return { ...state, gossip };
  return arrive({ ...state, gossip }, digest, [state.selfUid]);
}

/** `seen` plus everyone who has reported the same digest before. */
export function arrive(state: Membership, digest: string, seen: Iterable<string>): Membership {
  const all = new Set<string>([state.selfUid]);
  for (const uid of seen) if (state.gossip.records.has(uid)) all.add(uid);
  const heard = new Map(state.heard);
  for (const [peer, report] of state.heard) {
    if (!state.gossip.records.has(peer)) heard.delete(peer);
    if (report.digest !== digest) continue;
    heard.delete(peer);
    for (const uid of report.seen) if (state.gossip.records.has(uid)) all.add(uid);
  }
  return { ...state, seen: all, heard };
}

function form(state: Membership, clusterId: string, formedAt: number, founders: readonly MemberRecord[]): Step {
  if (state.phase !== 'outside') return { state, effects: [] };
  let gossip = withRecord(emptyGossip(clusterId, formedAt), selfRecord(state));
  for (const founder of founders) if (founder.uid !== state.selfUid) gossip = withRecord(gossip, founder);
  return { state: changed({ ...state, phase: 'member' }, gossip), effects: [{ kind: 'push' }] };
}

/** Any member admits joiners; an address still held by another uid must be given up first. */
function join(state: Membership, record: MemberRecord, now: number): Step {
  if (state.phase !== 'member') return { state, effects: [] };
  const { gossip } = state;
  if (gossip.tombstones.has(record.uid)) {
    return {
      state,
      effects: [{ kind: 'refuse-join', to: record.address, why: 'this uid has been removed', final: true }],
    };
  }
  if (gossip.records.has(record.uid)) return { state, effects: [{ kind: 'reply', to: record.address, about: [] }] };
  if (gossip.records.size >= limits.members) {
    const why = `the cluster has ${limits.members} members, its bound`;
    return { state, effects: [{ kind: 'refuse-join', to: record.address, why, final: false }] };
  }
  const holder = holderOf(gossip, record.address);
  if (holder === undefined) return { state: changed(state, withRecord(gossip, record)), effects: [{ kind: 'push' }] };
  if (state.waiting.size >= limits.members && !state.waiting.has(record.address)) return { state, effects: [] };
  const waiting = new Map(state.waiting).set(record.address, { record, until: now + waitingForMs });
  return { state: { ...state, waiting }, effects: [{ kind: 'contested', joiner: record, holder }] };
}

function holderOf(gossip: GossipState, address: Address): MemberRecord | undefined {
  for (const record of gossip.records.values()) {
    if (record.address === address && isActive(record.status)) return record;
  }
  return undefined;
}

/** Lets waiting joiners in whose address has become free. */
function admitWaiting(state: Membership, now: number): Membership {
  if (state.waiting.size === 0) return state;
  let { gossip } = state;
  const waiting = new Map(state.waiting);
  for (const [address, { record, until }] of state.waiting) {
    const known = gossip.records.has(record.uid) || gossip.tombstones.has(record.uid);
    const free = !known && holderOf(gossip, address) === undefined && gossip.records.size < limits.members;
    if (free && now < until) gossip = withRecord(gossip, record);
    if (known || free || now >= until) waiting.delete(address);
  }
  return waiting.size === state.waiting.size ? state : changed({ ...state, waiting }, gossip);
}

function observed(state: Membership, uid: string, unreachable: boolean): Step {
  const row = state.gossip.reachability.get(state.selfUid);
  const known = row?.get(uid);
  if (!state.gossip.records.has(uid) || (known?.unreachable ?? false) === unreachable) return { state, effects: [] };
  const cells = new Map(row).set(uid, { version: (known?.version ?? 0) + 1, unreachable });
  const reachability = new Map(state.gossip.reachability).set(state.selfUid, cells);
  return { state: changed(state, { ...state.gossip, reachability }), effects: [{ kind: 'push' }] };
}

function down(state: Membership, uids: readonly string[], terminated: boolean, why: string): Step {
  let { gossip } = state;
  const effects: MembershipEffect[] = [];
  for (const uid of uids) {
    const record = gossip.records.get(uid);
    if (record === undefined) continue;
    const next = mergeRecord(record, { ...record, status: 'down', terminated: record.terminated || terminated });
    if (next === record) continue;
    gossip = withRecord(gossip, next);
    if (record.status !== 'down') effects.push({ kind: 'downed', record, why });
  }
  if (gossip === state.gossip) return { state, effects };
  effects.push({ kind: 'push' });
  const next = changed(state, gossip);
  if (selfRecord(next).status !== 'down') return { state: next, effects };
  const ended = end(next, why, true, true);
  return { state: ended.state, effects: [...effects, ...ended.effects] };
}

function publish(
  state: Membership,
  started: ReadonlyMap<string, StartedRecord> | undefined,
  hosting: ReadonlyMap<string, HostingClaim> | undefined,
): Step {
  const self = selfRecord(state);
  return replaceSelf(state, {
    ...self,
    selfVersion: self.selfVersion + 1,
    started: started === undefined ? self.started : new Map(started),
    hosting: hosting === undefined ? self.hosting : new Map(hosting),
  });
}

function moveSelf(state: Membership, status: MemberStatus): Step {
  const self = selfRecord(state);
  if (!mayMove(self.status, status)) return { state, effects: [] };
  return replaceSelf(state, { ...self, status, selfVersion: self.selfVersion + 1 });
}

function replaceSelf(state: Membership, record: MemberRecord): Step {
  const next = changed(state, withRecord(state.gossip, record));
  return { state: next, effects: state.phase === 'member' ? [{ kind: 'push' }] : [] };
}

function writeEntry(state: Membership, key: string, value: unknown): Step {
  const known = state.gossip.entries.get(key);
  if (known === undefined && state.gossip.entries.size >= limits.entries) {
    return {
      state,
      effects: [{ kind: 'refused', what: 'entry', why: `more than ${limits.entries} entries`, from: undefined }],
    };
  }
  const entry = { key, version: (known?.version ?? 0) + 1, by: state.selfUid, value };
  if (known !== undefined && !isNewerEntry(entry, known)) return { state, effects: [] };
  const entries = new Map(state.gossip.entries).set(key, entry);
  const next = changed(state, { ...state.gossip, entries });
  return { state: next, effects: state.phase === 'member' ? [{ kind: 'push' }] : [] };
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
