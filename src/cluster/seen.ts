/**
 * Who has seen a state, as it travels. In a small cluster all of them are named. In a large one the list would cost every
 * node as much as there are members, once for each message: so it is either everybody, in one word, or a few. Leaving some
 * out is always safe, since what is not known to be seen is only waited for; the leader hears from each member itself.
 */
import { limits } from '../limits.ts';
import { isConverged } from './convergence.ts';
import type { GossipState } from './gossip_state.ts';
import { indexOf } from './record_index.ts';
import { listOf, textOf } from './wire_checks.ts';

/** uids; `all`: every active member of the state that it is about. */
export type Seen = readonly string[] | 'all';

/** Up to this many members each message names all that have seen its state. */
export const seenNamedUpTo = 16;

export function encodeSeen(state: GossipState, seen: ReadonlySet<string>, selfUid: string): readonly string[] | true {
  if (state.records.size <= seenNamedUpTo) return [...seen];
  if (isConverged(state, seen)) return true;
  const named = [selfUid];
  for (const uid of seen) {
    if (named.length >= seenNamedUpTo) break;
    if (uid !== selfUid) named.push(uid);
  }
  return named;
}

export function decodeSeen(wire: unknown): Seen {
  if (wire === true) return 'all';
  return listOf(wire, limits.members * 2, 'seen').map((uid) => textOf(uid, limits.uidChars, 'seen'));
}

/** The uids meant, given the state that they have seen. */
export function seenIn(state: GossipState, seen: Seen): readonly string[] {
  if (seen !== 'all') return seen;
  return indexOf(state.records).ring;
}
