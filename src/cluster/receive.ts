/** Gossip that arrives: who may say what about whom, the merge, and who has seen the result. */
import { fastPaths } from '../fast_paths.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import { checkSelfClaims } from './claims_about_self.ts';
import { isActiveUid } from './convergence.ts';
import type { DigestMessage, GossipMessage } from './gossip_codec.ts';
import { digestOf, type GossipState, mergeGossip, withRecord } from './gossip_state.ts';
import {
  arrive,
  arriveAgain,
  end,
  type Membership,
  type MembershipEffect,
  selfRecord,
  type Step,
} from './membership_state.ts';
import { promotes } from './gossip_delta.ts';
import { withKnownRecords } from './same_record.ts';
import { seenIn } from './seen.ts';
import { isActive } from './transitions.ts';

export function receiveGossip(state: Membership, from: PeerIdentity, message: GossipMessage): Step {
  if (state.phase === 'outside') {
    return message.digest === undefined ? adopt(state, from, message) : { state, effects: [] };
  }
  const stranger = refuseStranger(state, from, message.state.clusterId);
  if (stranger !== undefined) return { state, effects: stranger };
  const theirs = fastPaths.knownRecords ? withKnownRecords(message.state, state.gossip) : message.state;
  const why = forgery(state, theirs);
  if (why !== undefined) return refuse(state, from, 'gossip', why);

  const claims = checkSelfClaims(state.gossip, theirs, selfRecord(state));
  if (claims.kind === 'leaves') return end(state, `${from.address} says that this node leaves: forged`, true, true);
  const mine = claims.kind === 'refuted' ? claims.gossip : state.gossip;
  const merged = mergeGossip(mine, theirs, limits.tombstones);
  if (!merged.records.has(state.selfUid)) return removedByOthers(state);
  const [before, after] = [digestOf(state.gossip), digestOf(merged)];
  const offered = message.digest ?? digestOf(theirs);
  const isDelta = message.digest !== undefined;
  if (isDelta && after !== offered && promotes(state.gossip, theirs)) {
    return { state, effects: [{ kind: 'ask', to: from.address }] };
  }
  const effects: MembershipEffect[] = claims.kind === 'refuted' ? [refused(from, 'claim', claims.why)] : [];
  let next: Membership = merged === state.gossip ? state : { ...state, gossip: merged };
  if (after === before && after === offered) {
    next = arriveAgain(next, after, message.seen);
  } else if (after === offered) {
    next = arrive(next, after, message.seen);
    // A delta goes on from node to node; a whole state is what somebody lacked.
    effects.push({ kind: isDelta ? 'push' : 'progress' });
  } else if (after === before) {
    if (!isDelta) effects.push({ kind: 'reply', to: from.address, about: entombed(merged, theirs) });
  } else {
    next = arrive(next, after, []);
    effects.push({ kind: 'push' });
    const about = entombed(merged, theirs);
    if (about.length > 0 && !isDelta) effects.push({ kind: 'reply', to: from.address, about });
  }
  if (selfRecord(next).status !== 'down') return { state: next, effects };
  const ended = end(next, 'this node was downed', true, true);
  return { state: ended.state, effects: [...effects, ...ended.effects] };
}

export function receiveDigest(
  state: Membership,
  from: PeerIdentity,
  message: DigestMessage,
  repair: boolean | 'whole',
): Step {
  if (state.phase !== 'member') return { state, effects: [] };
  const stranger = refuseStranger(state, from, message.clusterId);
  if (stranger !== undefined) return { state, effects: stranger };
  const digest = digestOf(state.gossip);
  if (digest === message.digest) {
    const seen = seenIn(state.gossip, message.seen);
    return { state: arriveAgain(state, digest, seen), effects: [] };
  }
  const heard = new Map(state.heard).set(from.uid, { digest: message.digest, seen: message.seen });
  const next = { ...state, heard };
  if (repair === 'whole') return { state: next, effects: [{ kind: 'reply', to: from.address, about: [] }] };
  return { state: next, effects: repair ? [{ kind: 'repair', to: from.address }] : [] };
}

/** The welcome: the first gossip that knows this very uid. */
function adopt(state: Membership, from: PeerIdentity, { state: theirs, seen }: GossipMessage): Step {
  const self = selfRecord(state);
  const known = theirs.records.get(self.uid);
  if (known === undefined || known.address !== self.address || !isActiveUid(theirs, from.uid)) {
    return refuse(state, from, 'gossip', 'not in a cluster');
  }
  const gossip = mergeGossip(theirs, withRecord({ ...theirs, records: new Map() }, self), limits.tombstones);
  const [offered, after] = [digestOf(theirs), digestOf(gossip)];
  const next = arrive({ ...state, phase: 'member', gossip }, after, after === offered ? seen : []);
  if (selfRecord(next).status === 'down') return end(next, 'this node was downed', true, true);
  return { state: next, effects: [{ kind: after === offered ? 'progress' : 'push' }] };
}

/** Only active members are believed. A removed or downed one is told so. */
function refuseStranger(
  state: Membership,
  from: PeerIdentity,
  clusterId: string,
): readonly MembershipEffect[] | undefined {
  const { gossip } = state;
  const record = gossip.records.get(from.uid);
  const expected = (why: string): MembershipEffect => ({ kind: 'refused', what: 'gossip', why, from, expected: true });
  if (clusterId !== gossip.clusterId) {
    return [expected('another cluster id'), { kind: 'notice', to: from, otherCluster: true }];
  }
  if (record === undefined) return [expected('not from a member'), { kind: 'notice', to: from, otherCluster: false }];
  if (record.address !== from.address) return [refused(from, 'gossip', 'from another address than the member has')];
  if (!isActive(record.status)) return [{ kind: 'reply', to: from.address, about: [] }];
  return undefined;
}

/** What no honest member can say. */
function forgery(state: Membership, theirs: GossipState): string | undefined {
  const mine = state.gossip;
  if (theirs.formedAt !== mine.formedAt) return 'another formation stamp';
  if (theirs.lastNumber > mine.lastNumber + limits.counterJump) return 'lastNumber jumps too far';
  for (const [uid, record] of theirs.records) {
    const known = mine.records.get(uid);
    if (record.selfVersion > (known?.selfVersion ?? 0) + limits.counterJump) {
      return `selfVersion of ${uid} jumps too far`;
    }
    if (known === undefined) continue;
    if (known.address !== record.address) return `another address for ${uid}`;
    if (known.upNumber !== 0 && record.upNumber !== 0 && known.upNumber !== record.upNumber) {
      return `another number for ${uid}`;
    }
    if (!sameList(known.roles, record.roles)) return `other roles for ${uid} than it joined with`;
  }
  for (const [observer, row] of theirs.reachability) {
    const known = mine.reachability.get(observer);
    for (const [subject, { version }] of row) {
      const present = known?.get(subject);
      if (version > (present?.version ?? 0) + limits.counterJump) return 'a reachability version jumps too far';
    }
  }
  for (const [key, { version }] of theirs.entries) {
    if (version > (mine.entries.get(key)?.version ?? 0) + limits.counterJump) return 'an entry version jumps too far';
  }
  return undefined;
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((item, index) => item === b[index]));
}

/** A tombstone for this node: the end of a leave, or the news that it was removed while it could not hear. */
function removedByOthers(state: Membership): Step {
  const left = selfRecord(state).status === 'exiting';
  return end(state, left ? 'left' : 'this node was removed', !left, !left);
}

/** Members of theirs that are tombstones here. */
function entombed(merged: GossipState, theirs: GossipState): string[] {
  return [...theirs.records.keys()].filter((uid) => merged.tombstones.has(uid));
}

function refuse(state: Membership, from: PeerIdentity, what: string, why: string): Step {
  return { state, effects: [refused(from, what, why)] };
}

function refused(from: PeerIdentity, what: string, why: string): MembershipEffect {
  return { kind: 'refused', what, why, from };
}
