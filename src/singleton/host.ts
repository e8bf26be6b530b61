/** Who hosts a singleton: one pure function of the view, so that every node computes the same answer. */
import { hashText } from '../cluster/canonical.ts';
import { retires } from '../cluster/full_shutdown.ts';
import type { Member, MembershipView, StartedRecord } from '../cluster/member.ts';

/** `oldest`: the oldest member that may host. `spread`: one drawn by the name, and then it stays there. */
export type Placement = 'oldest' | 'spread';

/** Key of the cluster entry that pins a singleton to a member (an operator's move). */
export function pinKey(name: string): string {
  return `pin:${name}`;
}

/** Key of the cluster entry that says where a spread singleton was hosted last. */
export function placeKey(name: string): string {
  return `place:${name}`;
}

/** The uid an operator pinned `name` to, if any. */
export function pinnedUid(view: MembershipView, name: string): string | undefined {
  return uidAt(view, pinKey(name));
}

/** The uid of the last host of `name`, where it is spread. */
export function placedUid(view: MembershipView, name: string): string | undefined {
  return uidAt(view, placeKey(name));
}

function uidAt(view: MembershipView, key: string): string | undefined {
  const value = view.entries.get(key)?.value;
  return typeof value === 'string' ? value : undefined;
}

/** What counts of the records of those that have started `name`: the oldest one's (of `up` members, else this node's own). */
function countingRecord(view: MembershipView, name: string): StartedRecord | undefined {
  for (const member of view.members) {
    if (member.status === 'up' && member.started.has(name)) return member.started.get(name);
  }
  return view.self.started.get(name);
}

/** The role that counts for `name`: that of its oldest starter (up members first, then anyone who says so). */
export function roleOf(view: MembershipView, name: string): string | undefined {
  return countingRecord(view, name)?.role;
}

export function placementOf(view: MembershipView, name: string): Placement {
  return countingRecord(view, name)?.placement ?? 'oldest';
}

/** It is spread, and neither a host nor an operator has ever given it a place. */
export function neverPlaced(view: MembershipView, name: string): boolean {
  return placementOf(view, name) === 'spread' && placedUid(view, name) === undefined &&
    pinnedUid(view, name) === undefined;
}

export function carriesRole(member: Member, role: string | undefined): boolean {
  return role === undefined || member.roles.includes(role);
}

/**
 * `up` members that have started `name` and carry its role, in the order in which they would host: an operator's pin, then
 * (if it is spread) the last host, then by age, or if it is spread by the draw.
 */
export function eligibleHosts(view: MembershipView, name: string): Member[] {
  const record = countingRecord(view, name);
  const eligible = eligibleByAge(view, name, record);
  if (record?.placement === 'spread') {
    sortByDraw(name, eligible);
    putFirst(eligible, placedUid(view, name));
  }
  putFirst(eligible, pinnedUid(view, name));
  return eligible;
}

function eligibleByAge(view: MembershipView, name: string, record: StartedRecord | undefined): Member[] {
  const able = view.members.filter((member) =>
    member.status === 'up' && member.started.has(name) && carriesRole(member, record?.role)
  );
  // Those that go down with the whole cluster come into it only while nobody else is there.
  const staying = able.filter((member) => !retires(view, member));
  return staying.length > 0 ? staying : able;
}

function putFirst(members: Member[], uid: string | undefined): void {
  const at = uid === undefined ? -1 : members.findIndex((member) => member.uid === uid);
  if (at > 0) members.unshift(...members.splice(at, 1));
}

/** Sorts by the draw; members of equal score (which no two addresses should have) stay in age order. */
function sortByDraw(name: string, members: Member[]): void {
  if (members.length < 2) return;
  const scores = new Map(members.map((member) => [member, drawOf(name, member)]));
  members.sort((a, b) => scores.get(b)! - scores.get(a)!);
}

/**
 * Rendezvous hashing (Thaler and Ravishankar 1998): every member has a score for every name, the highest hosts. When a
 * member goes, only what it hosted is drawn anew.
 */
function drawOf(name: string, { address }: Member): number {
  const [high, low] = hashText(`${address} ${name}`);
  return (high >>> 0) * 2 ** 20 + (low >>> 12);
}

/** The member that should host `name` in this view. Unreachability plays no part: it moves nothing. */
export function hostOf(view: MembershipView, name: string): Member | undefined {
  const record = countingRecord(view, name);
  const eligible = eligibleByAge(view, name, record);
  const pin = pinnedUid(view, name);
  const pinned = pin === undefined ? undefined : eligible.find((member) => member.uid === pin);
  if (pinned !== undefined || record?.placement !== 'spread') return pinned ?? eligible[0];
  const place = placedUid(view, name);
  const placed = place === undefined ? undefined : eligible.find((member) => member.uid === place);
  return placed ?? highest(name, eligible);
}

function highest(name: string, members: readonly Member[]): Member | undefined {
  let best = members[0];
  if (members.length < 2) return best;
  for (const member of members) if (drawOf(name, member) > drawOf(name, best!)) best = member;
  return best;
}

/** Where a spread singleton would be if it were started now for the first time; undefined for others and for pinned ones. */
export function freshPlace(view: MembershipView, name: string): Member | undefined {
  if (placementOf(view, name) !== 'spread') return undefined;
  const eligible = eligibleHosts(view, name);
  if (eligible[0]?.uid === pinnedUid(view, name)) return undefined;
  return highest(name, eligible);
}

/**
 * May a member that asks this node to stand down be obeyed? It must be `up` here and come before this node in hosting
 * order, or this node must itself be out of the running.
 */
export function mayBeNextHost(view: MembershipView, name: string, askerUid: string): boolean {
  const asker = view.members.find((member) => member.uid === askerUid);
  if (!asker || asker.status !== 'up') return false;
  const self = view.self;
  const record = countingRecord(view, name);
  const selfEligible = self.status === 'up' && self.started.has(name) && carriesRole(self, record?.role);
  if (!selfEligible) return true;
  if (retires(view, asker) !== retires(view, self)) return retires(view, self);
  const pin = pinnedUid(view, name);
  if (pin === asker.uid) return true;
  if (pin === self.uid) return false;
  if (record?.placement !== 'spread') {
    return view.members.indexOf(asker) < view.members.findIndex((member) => member.uid === self.uid);
  }
  const placed = placedUid(view, name);
  if (placed === asker.uid) return true;
  return placed !== self.uid && drawOf(name, asker) > drawOf(name, self);
}
