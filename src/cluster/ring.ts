/**
 * Who watches whom. Members stand on a ring in uid order (random, so neighbours are not on one machine); each watches
 * all others while they are few, else the nearest ones on both sides. The relation is symmetric, so a one-way cut is
 * noticed by both ends, and the cost per node stays flat as the cluster grows.
 */
import { claimsOf } from './convergence.ts';
import type { GossipState } from './gossip_state.ts';
import { indexOf } from './record_index.ts';

/** At most this many neighbours are watched, those past unreachable ones not counted. */
export const ringSize = 9;

/** Active uids in ring order. */
export function ringOf(state: GossipState): readonly string[] {
  return indexOf(state.records).ring;
}

/**
 * The uids that `observer` watches, in ring order from itself. It reaches past neighbours it reports as unreachable, so
 * that a node cut off from all its neighbours still watches somebody; whoever it reports, it goes on watching.
 */
export function watchedBy(ring: readonly string[], state: GossipState, observer: string): string[] {
  const at = ring.indexOf(observer);
  if (at < 0) return [];
  const claimed = new Set(claimsOf(state, observer));
  const half = Math.floor(ringSize / 2);
  if (claimed.size === 0 && ring.length - 1 > ringSize) {
    return [...ringPart(ring, at + 1, half), ...ringPart(ring, at + ring.length - half, half)];
  }
  const others = ringPart(ring, at + 1, ring.length - 1);
  if (others.length <= ringSize) return others;
  const chosen = new Set<string>();
  for (const direction of [others, others.toReversed()]) {
    let healthy = 0;
    for (const uid of direction) {
      if (healthy === half) break;
      chosen.add(uid);
      if (!claimed.has(uid)) healthy++;
    }
  }
  return others.filter((uid) => chosen.has(uid) || claimed.has(uid));
}

function ringPart(ring: readonly string[], from: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => ring[(from + i) % ring.length] as string);
}
