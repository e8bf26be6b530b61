/**
 * Rule 2, the host's side: until when may this node handle messages, given who has acknowledged its pings? All pure; the
 * owner pings each `timing.gatePingMs` while it hosts, recomputes the deadline on each pong and each change of the view,
 * and the dispatcher compares the monotonic clock with it once before each message.
 */
import { compareText, type Member } from './member.ts';
import type { DowningStrategy, SplitArbiter } from './downing/contract.ts';

/** By uid: the monotonic time at which the newest acknowledged ping was *sent*, so that no travel time is given away. */
export interface GateState {
  readonly acks: ReadonlyMap<string, number>;
}

export const emptyGate: GateState = { acks: new Map() };

/** A pong for the ping sent at `sentAt`. Late pongs of older pings change nothing. */
export function acknowledged(state: GateState, uid: string, sentAt: number): GateState {
  const known = state.acks.get(uid);
  if (!Number.isFinite(sentAt) || (known !== undefined && known >= sentAt)) return state;
  return { acks: new Map(state.acks).set(uid, sentAt) };
}

/** Forgets whoever is no active member any more. */
export function retained(state: GateState, members: readonly Member[]): GateState {
  const active = new Set(members.filter(isActive).map((member) => member.uid));
  if ([...state.acks.keys()].every((uid) => active.has(uid))) return state;
  return { acks: new Map([...state.acks].filter(([uid]) => active.has(uid))) };
}

/**
 * The monotonic time before which the members that acknowledged pings sent within the last `windowMs` form a side that
 * the strategy keeps. Infinity when this node needs nobody else; -Infinity when even all acknowledgements do not suffice,
 * or this node is itself down or unknown. The gate is open while `now < deadline`.
 */
export function gateDeadline(
  strategy: DowningStrategy,
  members: readonly Member[],
  selfUid: string,
  acks: ReadonlyMap<string, number>,
  windowMs: number,
): number {
  if (!members.some((member) => member.uid === selfUid && isActive(member))) return -Infinity;
  if (strategy.gated === false) return Infinity;
  return heardUntil((side) => strategy.keeps(members, side), members, selfUid, acks, windowMs);
}

/**
 * The same where an arbiter decides about splits, for a host that does not hear everybody: on the side that leads it may go
 * on for `graceMs` beyond the window since it last heard the member that has been silent longest. No other side can have
 * claimed by then: it asks so much later than it has stopped answering. `lastHeardOfAll` is monotonic.
 */
export function graceDeadline(
  arbiter: SplitArbiter,
  members: readonly Member[],
  selfUid: string,
  acks: ReadonlyMap<string, number>,
  windowMs: number,
  graceMs: number,
  lastHeardOfAll: number,
): number {
  if (!members.some((member) => member.uid === selfUid && isActive(member))) return -Infinity;
  const leadsUntil = heardUntil((side) => arbiter.leads(members, side), members, selfUid, acks, windowMs);
  return Math.min(leadsUntil, lastHeardOfAll + windowMs + graceMs);
}

/** Until when the members heard within the window form a side that `suffices`. */
function heardUntil(
  suffices: (side: ReadonlySet<string>) => boolean,
  members: readonly Member[],
  selfUid: string,
  acks: ReadonlyMap<string, number>,
  windowMs: number,
): number {
  if (suffices(new Set([selfUid]))) return Infinity;
  const heard: [uid: string, sentAt: number][] = [];
  for (const member of members) {
    const sentAt = acks.get(member.uid);
    if (sentAt !== undefined && member.uid !== selfUid && isActive(member)) heard.push([member.uid, sentAt]);
  }
  heard.sort((a, b) => b[1] - a[1] || compareText(a[0], b[0]));
  const enough = (count: number): boolean => suffices(new Set([selfUid, ...heard.slice(0, count).map(([uid]) => uid)]));
  if (!enough(heard.length)) return -Infinity;
  // A side that suffices does so when it grows: the smallest sufficient prefix is found by bisection.
  let low = 1;
  let high = heard.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (enough(middle)) high = middle;
    else low = middle + 1;
  }
  return (heard[low - 1]?.[1] ?? -Infinity) + windowMs;
}

function isActive(member: Member): boolean {
  return member.status !== 'down' && member.status !== 'removed';
}
