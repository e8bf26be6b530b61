/**
 * In a large cluster what changed travels alone: a whole state would cost each node as much as there are members, for each
 * change. (Delta states after Almeida, Shoker and Baquero, 2018.) A delta names the digest that its sender is at with it.
 *
 * Rule 3 needs care: a promotion may be believed only by who holds every record that its leader held. So a delta that brings
 * a promotion is taken only where it leads to exactly its sender's state; otherwise the whole state is asked for.
 */
import type { GossipState, MemberRecord, Observation, Tombstone } from './gossip_state.ts';
import type { ClusterEntry } from './member.ts';

/** What `now` has and `before` has not. Objects that are the same are taken for unchanged. */
export function deltaOf(before: GossipState, now: GossipState): GossipState {
  const records = new Map<string, MemberRecord>();
  if (now.records !== before.records) {
    for (const [uid, record] of now.records) if (before.records.get(uid) !== record) records.set(uid, record);
  }
  const reachability = new Map<string, ReadonlyMap<string, Observation>>();
  for (const [observer, row] of now.reachability) {
    const known = before.reachability.get(observer);
    if (known === row) continue;
    const cells = [...row].filter(([subject, { version }]) => known?.get(subject)?.version !== version);
    if (cells.length > 0) reachability.set(observer, new Map(cells));
  }
  // Whoever is mentioned must be in the message.
  for (const [observer, row] of reachability) {
    for (const uid of [observer, ...row.keys()]) {
      const record = now.records.get(uid);
      if (record !== undefined) records.set(uid, record);
    }
  }
  const entries = new Map<string, ClusterEntry>();
  if (now.entries !== before.entries) {
    for (const [key, entry] of now.entries) if (before.entries.get(key) !== entry) entries.set(key, entry);
  }
  const tombstones = new Map<string, Tombstone>();
  if (now.tombstones !== before.tombstones) {
    for (const [uid, tombstone] of now.tombstones) if (!before.tombstones.has(uid)) tombstones.set(uid, tombstone);
  }
  return { ...now, records, reachability, entries, tombstones };
}

export function isEmptyDelta(delta: GossipState, before: GossipState): boolean {
  return delta.records.size + delta.reachability.size + delta.entries.size + delta.tombstones.size === 0 &&
    delta.lastNumber === before.lastNumber && delta.formedAt === before.formedAt;
}

/** Does `delta` number anybody whom `mine` does not know as numbered, or say that somebody was? */
export function promotes(mine: GossipState, delta: GossipState): boolean {
  if (delta.lastNumber > mine.lastNumber) return true;
  for (const [uid, { upNumber }] of delta.records) {
    if (upNumber > 0 && !mine.tombstones.has(uid) && (mine.records.get(uid)?.upNumber ?? 0) === 0) return true;
  }
  return false;
}
