/**
 * When to ask the strategy. A split is decided once the view has not changed for stableAfter, so that all nodes of a side
 * decide on the same picture; if it goes on changing, no picture can be trusted, and after 1.75 · stableAfter the unstable
 * rule applies: every node takes out its own side, which downs everybody. (After Akka's down-all-when-unstable.)
 *
 * The clock of the unstable rule starts with the first change after a calm or a settled time. A member that comes and goes
 * restarts it each time nobody is unreachable: one flapping link never takes the cluster down. Members that are still
 * joining delay a decision, but are no reason to call the view unstable: they have no vote.
 */
import { compareText, type Member } from '../member.ts';
import { unstableFactor } from '../timing.ts';
import type { DowningDecision } from './contract.ts';

export interface SplitView {
  readonly members: readonly Member[];
  readonly unreachable: ReadonlySet<string>;
  readonly indirectlyConnected?: ReadonlySet<string>;
}

export interface StabilityState {
  /** Who votes and who of them is unreachable, as text; undefined while nobody is unreachable. */
  readonly votes: string | undefined;
  /** The same of members that do not vote. */
  readonly rest: string;
  /** Monotonic times. */
  readonly votesSince: number;
  readonly restSince: number;
  readonly unstableSince: number;
}

/**
 * `calm`: nobody is unreachable. `wait`: ask again at `until`, or after the next change. `settled`: ask the strategy, again
 * at each tick as long as it does not decide. `unstable`: the unstable rule applies.
 */
export type Stability =
  | { readonly kind: 'calm' }
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'settled' }
  | { readonly kind: 'unstable' };

export const calm: StabilityState = { votes: undefined, rest: '', votesSince: 0, restSince: 0, unstableSince: 0 };

/** To be called with each view, changed or not. Returns `state` itself when nothing that matters has changed. */
export function observeSplit(
  state: StabilityState,
  view: SplitView,
  stableAfterMs: number,
  now: number,
): StabilityState {
  const { votes, rest } = pictureOf(view);
  if (votes === undefined) return calm;
  if (state.votes === undefined) return { votes, rest, votesSince: now, restSince: now, unstableSince: now };
  if (votes === state.votes && rest === state.rest) return state;
  const unstableSince = stabilityOf(state, stableAfterMs, now).kind === 'settled' ? now : state.unstableSince;
  return {
    votes,
    rest,
    votesSince: votes === state.votes ? state.votesSince : now,
    restSince: rest === state.rest ? state.restSince : now,
    unstableSince,
  };
}

export function stabilityOf(state: StabilityState, stableAfterMs: number, now: number): Stability {
  if (state.votes === undefined) return { kind: 'calm' };
  const settledAt = Math.max(state.votesSince, state.restSince) + stableAfterMs;
  const deadline = state.unstableSince + unstableFactor * stableAfterMs;
  const until = Math.min(settledAt, deadline);
  if (now < until) return { kind: 'wait', until };
  // From the deadline on the answer depends on what was before it, never on when a node gets round to asking.
  return settledAt <= deadline || state.votesSince + stableAfterMs <= deadline
    ? { kind: 'settled' }
    : { kind: 'unstable' };
}

/** This node's own event loop stood still for `pauseMs`: what was not watched was not stable. */
export function shifted(state: StabilityState, pauseMs: number, now: number): StabilityState {
  const later = (at: number): number => Math.min(now, at + pauseMs);
  return {
    ...state,
    votesSince: later(state.votesSince),
    restSince: later(state.restSince),
    unstableSince: later(state.unstableSince),
  };
}

/**
 * The unstable rule: everybody, reachable or not, as Akka's down-all-when-unstable does. One that is paused or cut off must
 * not find the others down and itself in, or it would take itself for the whole cluster.
 */
export function downEverybody(view: SplitView): DowningDecision {
  const out = new Set<string>();
  for (const { uid, status } of view.members) if (status !== 'down' && status !== 'removed') out.add(uid);
  return out;
}

function pictureOf(view: SplitView): { votes: string | undefined; rest: string } {
  if (view.unreachable.size === 0 && (view.indirectlyConnected?.size ?? 0) === 0) return { votes: undefined, rest: '' };
  const votes: string[] = [];
  const rest: string[] = [];
  let split = false;
  for (const member of view.members) {
    const { uid, status } = member;
    if (status === 'removed') continue;
    const active = status !== 'down';
    const lost = active && view.unreachable.has(uid);
    const indirect = active && view.indirectlyConnected?.has(uid) === true;
    if (lost || indirect) split = true;
    if (status === 'joining' || (!active && member.upNumber === 0)) {
      // A joining member inside the side weighs nothing, so its coming and going need not be waited out.
      if (lost || indirect) rest.push(`${uid} ${lost} ${indirect}`);
    } else {
      votes.push(`${uid} ${status} ${lost} ${indirect}`);
    }
  }
  return { votes: split ? votes.sort(compareText).join('\n') : undefined, rest: rest.sort(compareText).join('\n') };
}
