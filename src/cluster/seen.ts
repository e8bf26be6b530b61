/**
 * Who has seen a state, as it travels. In a small cluster all of them are named. In a large one the list would cost every
 * node as much as there are members, once for each message: so it is either everybody, in one word, or a few. Leaving some
 * out is always safe, since what is not known to be seen is only waited for; the leader hears from each member itself.
 */
import { limits } from '../limits.ts';
import type { GossipState } from './gossip_state.ts';
import { isActive } from './transitions.ts';
import { listOf, textOf } from './wire_checks.ts';

/** uids; `all`: every active member of the state that it is about. */
export type Seen = readonly string[] | 'all';

/** Up to this many members each message names all that have seen its state. */
export const seenNamedUpTo = 16;

export function encodeSeen(state: GossipState, seen: ReadonlySet<string>, selfUid: string): readonly string[] | true {
  if (state.records.size <= seenNamedUpTo) return [...seen];
  let missing = false;
  for (const record of state.records.values()) {
    if (isActive(record.status) && !seen.has(record.uid)) missing = true;
  }
  if (!missing) return true;
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
  return [...state.records.values()].filter((record) => isActive(record.status)).map((record) => record.uid);
}
