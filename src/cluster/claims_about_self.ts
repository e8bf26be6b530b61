/**
 * Gossip that says of this node what only this node may say. Others may promote it or mark it down, nothing else; so such
 * gossip is forged, or comes from broken memory. Refusing it would not be enough: whoever believes it would disagree with this
 * node for ever, and nothing in the cluster would be decided any more. So what this node says is said again, newer than the
 * claim (the refutation of SWIM: Das, Gupta, Motivala 2002), and everybody comes back to it.
 *
 * That this node leaves cannot be taken back, since statuses only move onward: then it ends and joins again as a new member.
 */
import { type GossipState, type MemberRecord, withRecord } from './gossip_state.ts';
import { sameSelf } from './same_record.ts';
import { isLater } from './transitions.ts';

export type SelfClaims =
  /** Nothing that is not so. */
  | { readonly kind: 'true' }
  /** The state to merge the gossip into: it outlives the claim. */
  | { readonly kind: 'refuted'; readonly gossip: GossipState; readonly why: string }
  | { readonly kind: 'leaves' };

export function checkSelfClaims(mine: GossipState, theirs: GossipState, self: MemberRecord): SelfClaims {
  const claimed = theirs.records.get(self.uid);
  if (claimed !== undefined && saysItLeaves(claimed, self)) return { kind: 'leaves' };
  const record = claimed === undefined ? self : refutedRecord(self, claimed);
  const row = refutedRow(mine, theirs, self.uid);
  if (record === self && row === undefined) return { kind: 'true' };
  const why = record === self ? 'speaks for this node about reachability' : 'speaks for this node';
  const gossip = record === self ? mine : withRecord(mine, record);
  if (row === undefined) return { kind: 'refuted', gossip, why };
  const reachability = new Map(mine.reachability).set(self.uid, row);
  return { kind: 'refuted', gossip: { ...gossip, reachability }, why };
}

function saysItLeaves(claimed: MemberRecord, self: MemberRecord): boolean {
  return (claimed.status === 'leaving' || claimed.status === 'exiting') && isLater(claimed.status, self.status);
}

function refutedRecord(self: MemberRecord, claimed: MemberRecord): MemberRecord {
  if (claimed.selfVersion < self.selfVersion) return self;
  if (claimed.selfVersion === self.selfVersion && sameSelf(claimed, self)) return self;
  return { ...self, selfVersion: claimed.selfVersion + 1 };
}

function refutedRow(mine: GossipState, theirs: GossipState, selfUid: string) {
  const own = mine.reachability.get(selfUid);
  let row: Map<string, { readonly version: number; readonly unreachable: boolean }> | undefined;
  for (const [subject, { version, unreachable }] of theirs.reachability.get(selfUid) ?? []) {
    if (!mine.records.has(subject)) continue;
    const present = own?.get(subject) ?? { version: 0, unreachable: false };
    if (version < present.version || (version === present.version && unreachable === present.unreachable)) continue;
    row ??= new Map(own);
    row.set(subject, { version: version + 1, unreachable: present.unreachable });
  }
  return row;
}
