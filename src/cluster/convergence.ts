/** Who leads, who must have seen a state before it counts, and whether anybody is unreachable. Pure questions to a gossip state. */
import { fastPaths } from '../fast_paths.ts';
import type { GossipState, MemberRecord } from './gossip_state.ts';
import { indexOf } from './record_index.ts';
import { isActive } from './transitions.ts';

/**
 * The oldest `up` member. While none is up: the oldest leaving, exiting or joining one, so that a cluster that forms or
 * goes away as a whole still gets on. Reachability plays no part: a flicker never moves the lead.
 */
export function leaderOf(records: ReadonlyMap<string, MemberRecord>): MemberRecord | undefined {
  const members = byAge(records);
  for (const status of ['up', 'leaving', 'exiting', 'joining'] as const) {
    const oldest = members.find((record) => record.status === status);
    if (oldest !== undefined) return oldest;
  }
  return undefined;
}

/** Every member that is not down has seen this state: joining and unreachable ones included (rule 3). */
export function isConverged(state: GossipState, seen: ReadonlySet<string>): boolean {
  const { ring } = indexOf(state.records);
  const known = answers.get(seen);
  if (known?.ring === ring && fastPaths.memos) return known.converged;
  const converged = ring.every((uid) => seen.has(uid));
  answers.set(seen, { ring, converged });
  return converged;
}

/** The last answer for each set: it is asked for after every event. */
const answers = new WeakMap<ReadonlySet<string>, { readonly ring: readonly string[]; readonly converged: boolean }>();

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
export function byAge(records: ReadonlyMap<string, MemberRecord>): readonly MemberRecord[] {
  return indexOf(records).byAge;
}
