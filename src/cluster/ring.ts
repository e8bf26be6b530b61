/**
 * Who watches whom. Members stand on a ring in uid order (random, so neighbours are not on one machine); each watches
 * all others while they are few, else the nearest ones on both sides. The relation is symmetric, so a one-way cut is
 * noticed by both ends, and the cost per node stays flat as the cluster grows.
 */
import { claimsOf } from './convergence.ts';
import type { GossipState } from './gossip_state.ts';
import { compareText } from './member.ts';
import { isActive } from './transitions.ts';

/** At most this many neighbours are watched, those past unreachable ones not counted. */
export const ringSize = 9;

/** Active uids in ring order. */
export function ringOf(state: GossipState): string[] {
  const uids: string[] = [];
  for (const record of state.records.values()) if (isActive(record.status)) uids.push(record.uid);
  return uids.sort(compareText);
}

/**
 * The uids that `observer` watches, in ring order from itself. It reaches past neighbours it reports as unreachable, so
 * that a node cut off from all its neighbours still watches somebody; whoever it reports, it goes on watching.
 */
export function watchedBy(ring: readonly string[], state: GossipState, observer: string): string[] {
  const at = ring.indexOf(observer);
  if (at < 0) return [];
  const others = [...ring.slice(at + 1), ...ring.slice(0, at)];
  if (others.length <= ringSize) return others;
  const claimed = new Set(claimsOf(state, observer));
  const chosen = new Set<string>();
  for (const direction of [others, others.toReversed()]) {
    let healthy = 0;
    for (const uid of direction) {
      if (healthy === Math.floor(ringSize / 2)) break;
      chosen.add(uid);
      if (!claimed.has(uid)) healthy++;
    }
  }
  return others.filter((uid) => chosen.has(uid) || claimed.has(uid));
}
