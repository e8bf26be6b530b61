/** From the membership state to what other parts compute with, and what changed between two of these views. */
import type { MemberChange } from './contract.ts';
import { byAge, isActiveUid, leaderOf } from './convergence.ts';
import type { GossipState, MemberRecord } from './gossip_state.ts';
import type { Member, MembershipView } from './member.ts';
import { converged, type Membership } from './membership_state.ts';

/** This node's own verdicts on the members that it watches. */
export type OwnVerdicts = ReadonlyMap<string, { readonly reachable: boolean }>;

const cache = new WeakMap<MemberRecord, { readonly reachable: Member; readonly unreachable: Member }>();

interface Origin {
  readonly records: readonly MemberRecord[];
  readonly lost: ReadonlySet<string>;
}

/** What the members of a view were made from, in the same order. */
const origins = new WeakMap<readonly Member[], Origin>();

/** `previous`: the view before; the same members are the same objects, and the same list where all of them are the same. */
export function buildView(
  state: Membership,
  revision: number,
  verdicts: OwnVerdicts,
  previous?: MembershipView,
): MembershipView {
  const { gossip, selfUid } = state;
  const self = gossip.records.get(selfUid);
  if (self === undefined) throw new Error('membership: the own record is missing');
  const lost = unreachable(gossip, verdicts);
  lost.delete(selfUid);
  const inside = state.phase !== 'outside';
  const leader = inside ? leaderOf(gossip.records) : undefined;
  return {
    revision,
    clusterId: inside ? gossip.clusterId : undefined,
    self: memberOf(self, true),
    leader: leader && memberOf(leader, !lost.has(leader.uid)),
    members: membersOf({ records: byAge(gossip.records), lost }, previous?.members),
    converged: converged(state),
    entries: gossip.entries,
  };
}

function membersOf(origin: Origin, before: readonly Member[] = []): readonly Member[] {
  const { records, lost } = origin;
  const known = origins.get(before);
  if (known?.records === records && lost.size === 0 && known.lost.size === 0) return before;
  let same = records.length === before.length;
  const members = records.map((record, i) => {
    const reachable = lost.size === 0 || !lost.has(record.uid);
    const member = before[i];
    if (known?.records[i] === record && member?.reachable === reachable) return member;
    same = false;
    return memberOf(record, reachable);
  });
  if (same) return before;
  origins.set(members, origin);
  return members;
}

/** What active observers report that this node can reach itself, unless it knows better: others never override what it sees (R99). */
function unreachable(gossip: GossipState, verdicts: OwnVerdicts): Set<string> {
  const lost = new Set<string>();
  for (const [uid, { reachable }] of verdicts) if (!reachable) lost.add(uid);
  for (const [observer, row] of gossip.reachability) {
    if (!isActiveUid(gossip, observer) || verdicts.get(observer)?.reachable === false) continue;
    for (const [subject, { unreachable }] of row) {
      if (unreachable && verdicts.get(subject)?.reachable !== true) lost.add(subject);
    }
  }
  return lost;
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
    a.entries === b.entries && (a.members === b.members ||
      (a.members.length === b.members.length && a.members.every((member, i) => member === b.members[i])));
}

/** In this order: members that are gone, members that changed or are new (in age order), leader, entries. */
export function diffViews(before: MembershipView, after: MembershipView): MemberChange[] {
  const changes: MemberChange[] = [];
  const [from, to] = changedParts(before.members, after.members);
  const old = new Map(from.map((member) => [member.uid, member]));
  const present = new Set(to.map((member) => member.uid));
  for (const member of from) {
    if (!present.has(member.uid)) {
      changes.push({ kind: 'member', before: member, member: { ...member, status: 'removed' } });
    }
  }
  for (const member of to) {
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

/** Without what is the same at the beginning of both, and at the end. */
function changedParts(a: readonly Member[], b: readonly Member[]): [readonly Member[], readonly Member[]] {
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
}

/** Changed in anything but reachability. */
function isOtherRecord(a: Member, b: Member): boolean {
  return a.status !== b.status || a.upNumber !== b.upNumber || a.terminated !== b.terminated ||
    a.started !== b.started || a.hosting !== b.hosting || a.roles !== b.roles || a.appVersion !== b.appVersion;
}
