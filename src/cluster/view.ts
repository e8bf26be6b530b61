/** From the membership state to what other parts compute with, and what changed between two of these views. */
import type { MemberChange } from './contract.ts';
import { byAge, isActiveUid, leaderOf } from './convergence.ts';
import type { GossipState, MemberRecord } from './gossip_state.ts';
import type { Member, MembershipView } from './member.ts';
import { converged, type Membership } from './membership_state.ts';

/** This node's own verdict on a member; undefined when it does not watch it. */
export type OwnVerdict = (uid: string) => boolean | undefined;

const cache = new WeakMap<MemberRecord, { readonly reachable: Member; readonly unreachable: Member }>();

export function buildView(state: Membership, revision: number, verdict: OwnVerdict): MembershipView {
  const reported = reportedUnreachable(state.gossip, verdict);
  const members = byAge(state.gossip.records).map((record) => {
    const own = record.uid === state.selfUid ? true : verdict(record.uid);
    return memberOf(record, own ?? !reported.has(record.uid));
  });
  const self = members.find((member) => member.uid === state.selfUid);
  if (self === undefined) throw new Error('membership: the own record is missing');
  const inside = state.phase !== 'outside';
  const leader = inside ? leaderOf(state.gossip.records) : undefined;
  return {
    revision,
    clusterId: inside ? state.gossip.clusterId : undefined,
    self,
    leader: leader === undefined ? undefined : members.find((member) => member.uid === leader.uid),
    members,
    converged: converged(state),
    entries: state.gossip.entries,
  };
}

/** By observers that are active and that this node can reach itself: what others say never overrides what it sees (R99). */
function reportedUnreachable(gossip: GossipState, verdict: OwnVerdict): ReadonlySet<string> {
  const reported = new Set<string>();
  for (const [observer, row] of gossip.reachability) {
    if (!isActiveUid(gossip, observer) || verdict(observer) === false) continue;
    for (const [subject, { unreachable }] of row) if (unreachable) reported.add(subject);
  }
  return reported;
}

/** The same object for the same record and reachability. */
function memberOf(record: MemberRecord, reachable: boolean): Member {
  let pair = cache.get(record);
  if (pair === undefined) {
    const { selfVersion: _, ...member } = record;
    pair = { reachable: { ...member, reachable: true }, unreachable: { ...member, reachable: false } };
    cache.set(record, pair);
  }
  return reachable ? pair.reachable : pair.unreachable;
}

export function sameView(a: MembershipView, b: MembershipView): boolean {
  return a.clusterId === b.clusterId && a.leader === b.leader && a.converged === b.converged &&
    a.entries === b.entries &&
    a.members.length === b.members.length && a.members.every((member, i) => member === b.members[i]);
}

/** In this order: members that are gone, members that changed or are new (in age order), leader, entries. */
export function diffViews(before: MembershipView, after: MembershipView): MemberChange[] {
  const changes: MemberChange[] = [];
  const old = new Map(before.members.map((member) => [member.uid, member]));
  const present = new Set(after.members.map((member) => member.uid));
  for (const member of before.members) {
    if (!present.has(member.uid)) {
      changes.push({ kind: 'member', before: member, member: { ...member, status: 'removed' } });
    }
  }
  for (const member of after.members) {
    const known = old.get(member.uid);
    if (known === member) continue;
    if (known === undefined || isOtherRecord(known, member)) changes.push({ kind: 'member', before: known, member });
    if ((known?.reachable ?? true) !== member.reachable) {
      changes.push({ kind: 'reachability', member, reachable: member.reachable });
    }
    if (member.uid === after.self.uid && member.status === 'up' && known?.status !== 'up') {
      changes.push({ kind: 'self-up' });
    }
  }
  if (before.leader?.uid !== after.leader?.uid) changes.push({ kind: 'leader', leader: after.leader });
  if (before.entries !== after.entries) {
    for (const [key, entry] of after.entries) {
      if (before.entries.get(key) !== entry) changes.push({ kind: 'entry', key });
    }
  }
  return changes;
}

/** Changed in anything but reachability. */
function isOtherRecord(a: Member, b: Member): boolean {
  return a.status !== b.status || a.upNumber !== b.upNumber || a.terminated !== b.terminated ||
    a.started !== b.started || a.hosting !== b.hosting || a.roles !== b.roles || a.appVersion !== b.appVersion;
}
