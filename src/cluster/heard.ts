/**
 * When this node last had proof that a member had not taken it out: a gate ping that the member acknowledged counts from the
 * moment it was *sent*. Nobody acknowledges whom it has seen down. A member that is younger than this node and has answered
 * nothing yet counts from when it was first seen here: it cannot have taken out a member before it was one itself, and it
 * becomes `up` only once this node has seen it.
 */
import type { Instant } from '../coordination/holder_state.ts';
import { compareAge, type Member } from './member.ts';
import { isActive } from './transitions.ts';

interface Heard {
  readonly seen: Instant;
  readonly answered: Instant | undefined;
}

export type HeardState = ReadonlyMap<string, Heard>;

export const nobodyHeard: HeardState = new Map();

/** To be called with each view: keeps the active members, and takes in new ones. */
export function seen(state: HeardState, members: readonly Member[], selfUid: string, at: Instant): HeardState {
  const others = members.filter((member) => member.uid !== selfUid && isActive(member.status));
  if (others.length === state.size && others.every(({ uid }) => state.has(uid))) return state;
  return new Map(others.map(({ uid }) => [uid, state.get(uid) ?? { seen: at, answered: undefined }]));
}

/** `uid` has acknowledged the ping that was sent at `sentAt`. */
export function answered(state: HeardState, uid: string, sentAt: Instant): HeardState {
  const known = state.get(uid);
  if (known === undefined || (known.answered !== undefined && known.answered.now >= sentAt.now)) return state;
  return new Map(state).set(uid, { seen: known.seen, answered: sentAt });
}

const never: Instant = { now: -Infinity, wall: -Infinity };

/** No clock tells any more how long ago that was. */
export function forgotten(state: HeardState): HeardState {
  return new Map([...state.keys()].map((uid) => [uid, { seen: never, answered: undefined }]));
}

/** For how long `member` has been silent, by whichever clock of this node ran further. */
export function silenceMs(state: HeardState, member: Member, self: Member, at: Instant): number {
  const last = heardAt(state, member, self);
  return last === undefined ? Infinity : Math.max(0, at.now - last.now, at.wall - last.wall);
}

/** The same of the active member that has been silent longest. */
export function longestSilenceMs(state: HeardState, members: readonly Member[], self: Member, at: Instant): number {
  return Math.max(0, ...othersOf(members, self).map((member) => silenceMs(state, member, self, at)));
}

function othersOf(members: readonly Member[], self: Member): readonly Member[] {
  return members.filter((member) => member.uid !== self.uid && isActive(member.status));
}

function heardAt(state: HeardState, member: Member, self: Member): Instant | undefined {
  const heard = state.get(member.uid);
  return heard?.answered ?? (compareAge(member, self) > 0 ? heard?.seen : undefined);
}
