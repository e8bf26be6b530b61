/** Who leads, who must have seen a state before it counts, and whether anybody is unreachable. Pure questions to a gossip state. */
import type { GossipState, MemberRecord } from './gossip_state.ts';
import { compareAge } from './member.ts';
import { isActive } from './transitions.ts';

/**
 * The oldest `up` member. While none is up: the oldest leaving, exiting or joining one, so that a cluster that forms or
 * goes away as a whole still gets on. Reachability plays no part: a flicker never moves the lead.
 */
export function leaderOf(records: ReadonlyMap<string, MemberRecord>): MemberRecord | undefined {
  for (const status of ['up', 'leaving', 'exiting', 'joining'] as const) {
    let oldest: MemberRecord | undefined;
    for (const record of records.values()) {
      if (record.status !== status) continue;
      if (oldest === undefined || compareAge(record, oldest) < 0) oldest = record;
    }
    if (oldest !== undefined) return oldest;
  }
  return undefined;
}

/** Every member that is not down has seen this state: joining and unreachable ones included (rule 3). */
export function isConverged(state: GossipState, seen: ReadonlySet<string>): boolean {
  for (const record of state.records.values()) {
    if (isActive(record.status) && !seen.has(record.uid)) return false;
  }
  return true;
}

/** Does any member that is not down report another such member? Strict: one claim is enough to stop numbering (rule 3). */
export function anyUnreachable(state: GossipState): boolean {
  for (const [observer, row] of state.reachability) {
    if (!isActiveUid(state, observer)) continue;
    for (const [subject, observation] of row) {
      if (observation.unreachable && isActiveUid(state, subject)) return true;
    }
  }
  return false;
}

/** uids that `observer` reports as unreachable. */
export function claimsOf(state: GossipState, observer: string): string[] {
  const claims: string[] = [];
  for (const [subject, observation] of state.reachability.get(observer) ?? []) {
    if (observation.unreachable) claims.push(subject);
  }
  return claims;
}

export function isActiveUid(state: GossipState, uid: string): boolean {
  const record = state.records.get(uid);
  return record !== undefined && isActive(record.status);
}

/** In age order. */
export function byAge(records: ReadonlyMap<string, MemberRecord>): MemberRecord[] {
  return [...records.values()].sort(compareAge);
}
