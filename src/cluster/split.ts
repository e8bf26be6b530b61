/**
 * Turns everybody's reachability claims into the split that a downing strategy decides on, the same on every node of a
 * side. A side is what hangs together by links that neither end reports as broken; claims of the other side's observers
 * do not count. A broken link inside a side (its ends can be reached by others) costs the fewest members, the younger end first.
 */
import { anyUnreachable, claimsOf, isActiveUid } from './convergence.ts';
import type { GossipState } from './gossip_state.ts';
import { compareAge } from './member.ts';
import { ringOf, watchedBy } from './ring.ts';

export interface Split {
  /** Active members the side of `self` has lost. */
  readonly lost: ReadonlySet<string>;
  /** Active members of this side that must go because of broken links inside it. May contain `self`. */
  readonly victims: ReadonlySet<string>;
}

const whole: Split = { lost: new Set(), victims: new Set() };

export function splitOf(state: GossipState, self: string): Split {
  if (!anyUnreachable(state)) return whole;
  const ring = ringOf(state);
  const claims = new Map(ring.map((uid) => [uid, new Set(claimsOf(state, uid))]));
  const broken = (a: string, b: string): boolean => claims.get(a)?.has(b) === true || claims.get(b)?.has(a) === true;
  const side = new Set<string>([self]);
  for (const uid of side) {
    for (const neighbour of watchedBy(ring, state, uid)) {
      if (!broken(uid, neighbour)) side.add(neighbour);
    }
  }
  const lost = new Set(ring.filter((uid) => !side.has(uid)));
  return { lost, victims: victimsOf(state, [...side].filter((uid) => isActiveUid(state, uid)), broken) };
}

/** Takes out the member with the most broken links, the younger of equals, until none is left. */
function victimsOf(
  state: GossipState,
  side: readonly string[],
  broken: (a: string, b: string) => boolean,
): ReadonlySet<string> {
  const victims = new Set<string>();
  for (;;) {
    let worst: string | undefined;
    let most = 0;
    for (const uid of side) {
      if (victims.has(uid)) continue;
      const count = side.filter((other) => other !== uid && !victims.has(other) && broken(uid, other)).length;
      if (count === 0) continue;
      if (count > most || (count === most && isYounger(state, uid, worst))) {
        worst = uid;
        most = count;
      }
    }
    if (worst === undefined) return victims;
    victims.add(worst);
  }
}

function isYounger(state: GossipState, uid: string, than: string | undefined): boolean {
  const a = state.records.get(uid);
  const b = than === undefined ? undefined : state.records.get(than);
  return a !== undefined && b !== undefined && compareAge(a, b) > 0;
}
