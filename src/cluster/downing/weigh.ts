/**
 * What the strategies share: who counts, what a side weighs at worst, and what follows from winning or losing. After the
 * split brain resolver of Akka, with the pending steps of all members taken at their worst for the side that asks.
 */
import { compareAge, type Member } from '../member.ts';
import type { DowningDecision, SplitSituation } from './contract.ts';

/** Members whose role list has `role`; all when it is undefined. */
export function withRole(members: readonly Member[], role: string | undefined): readonly Member[] {
  return role === undefined ? members : members.filter((member) => member.roles.includes(role));
}

/**
 * Up, leaving and exiting members count. So do `down` ones that had counted, until their removal: a split in progress
 * keeps its denominator. Only a proven death takes a member out at once.
 */
export function counts(member: Member): boolean {
  switch (member.status) {
    case 'up':
    case 'leaving':
    case 'exiting':
      return true;
    case 'down':
      return !member.terminated && member.upNumber > 0;
    case 'joining':
    case 'removed':
      return false;
    default:
      return member.status satisfies never;
  }
}

/** May another node already count this member, although it does not count here? */
export function mayCount(member: Member): boolean {
  return member.status === 'joining' || (member.status === 'down' && !member.terminated && member.upNumber === 0);
}

/** May another node already have removed this member? */
export function mayGo(member: Member): boolean {
  return member.status === 'leaving' || member.status === 'exiting';
}

/** Could this member still act, on whatever side? */
export function mayLive(member: Member): boolean {
  return member.status !== 'removed' && !(member.status === 'down' && member.terminated);
}

/** Nobody who could still act is outside: there is no other side, and nothing to lose against. */
export function holdsAll(members: readonly Member[], side: ReadonlySet<string>): boolean {
  return members.every((member) => (member.status !== 'down' && side.has(member.uid)) || !mayLive(member));
}

export interface Weight {
  /** Votes the side has under every completion of the pending steps. */
  readonly least: number;
  /** Votes the others have under the completion that is worst for the side. */
  readonly others: number;
  /** Is the oldest one, in the completion that is worst for the side, in it? */
  readonly oldestAtWorst: boolean;
}

export function weigh(members: readonly Member[], side: ReadonlySet<string>): Weight {
  let least = 0;
  let others = 0;
  let oldest: Member | undefined;
  for (const member of members) {
    const inside = side.has(member.uid) && member.status !== 'down';
    const voter = inside ? counts(member) && !mayGo(member) : counts(member) || mayCount(member);
    if (!voter) continue;
    if (inside) least++;
    else others++;
    if (oldest === undefined || compareAge(member, oldest) < 0) oldest = member;
  }
  const oldestAtWorst = oldest !== undefined && oldest.status !== 'down' && side.has(oldest.uid);
  return { least, others, oldestAtWorst };
}

/** How a side stands: it is kept, it goes, or there is nothing yet to decide by. */
export type Verdict = 'kept' | 'lost' | 'undecided';

/**
 * The winning side takes out whom it cannot reach and whoever is only indirectly connected. The losing side takes out
 * itself and nobody else, so that what it says can never harm the winner when the two meet again.
 */
export function decideBy(
  situation: SplitSituation,
  verdict: (members: readonly Member[], side: ReadonlySet<string>) => Verdict,
): DowningDecision {
  const { members, unreachable, selfUid } = situation;
  const active = members.filter((member) => member.status !== 'down' && member.status !== 'removed');
  if (!active.some((member) => member.uid === selfUid)) return new Set();
  const indirect = (uid: string): boolean => situation.indirectlyConnected?.has(uid) === true;
  const inside = (uid: string): boolean => uid === selfUid || indirect(uid) || !unreachable.has(uid);
  const uids = active.map((member) => member.uid);
  const side = new Set(uids.filter(inside));
  const out = new Set(uids.filter((uid) => !inside(uid) || indirect(uid)));
  if (out.size === 0) return out;
  switch (verdict(members, side)) {
    case 'undecided':
      return new Set();
    case 'lost':
      return side;
    case 'kept': {
      const remains = active.some((member) => counts(member) && !out.has(member.uid));
      return remains ? out : new Set(uids);
    }
  }
}
