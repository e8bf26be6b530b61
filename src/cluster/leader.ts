/** What the leader does, and only on convergence: numbering joiners, removing members that left or were downed. */
import { limits } from '../limits.ts';
import { anyUnreachable, isConverged, leaderOf } from './convergence.ts';
import { type GossipState, type MemberRecord, withRecord, withTombstone } from './gossip_state.ts';
import { changed, end, type Membership, type MembershipEffect, selfRecord, type Step } from './membership_state.ts';
import { isActive } from './transitions.ts';

/** Runs after each event. Does nothing on a node that does not lead, except forgetting its margins. */
export function lead(state: Membership, now: number): Step {
  if (leaderOf(state.gossip.records)?.uid !== state.selfUid) {
    return { state: state.margins.size === 0 ? state : { ...state, margins: new Map() }, effects: [] };
  }
  const effects: MembershipEffect[] = [];
  const converged = isConverged(state.gossip, state.seen);
  const margins = runMargins(state, converged, now, effects);
  let gossip = removeDown(state.gossip, margins, now);
  const removed: MemberRecord[] = [];
  if (converged && !anyUnreachable(state.gossip)) {
    gossip = removeExiting(gossip, state.selfUid, now, removed);
    gossip = numberJoiners(gossip, state.rules.minMembers);
  }
  for (const [uid, record] of state.gossip.records) {
    if (record.status === 'down' && !gossip.records.has(uid)) removed.push(record);
  }
  if (removed.length > 0) effects.push({ kind: 'farewell', members: removed });
  if (gossip === state.gossip) {
    return finishAlone(margins === state.margins ? state : { ...state, margins }, effects);
  }
  effects.push({ kind: 'push' });
  // A cluster of one converges by itself, so what was just changed may already allow the next step.
  const next = lead({ ...changed(state, gossip), margins }, now);
  return { state: next.state, effects: [...effects, ...next.effects] };
}

/** Rule 1: the margin starts once every survivor has seen `down`, and only proven death has none. */
function runMargins(
  state: Membership,
  converged: boolean,
  now: number,
  effects: MembershipEffect[],
): ReadonlyMap<string, number> {
  const margins = new Map<string, number>();
  let same = true;
  for (const record of state.gossip.records.values()) {
    if (record.status !== 'down') continue;
    const known = state.margins.get(record.uid);
    const started = known ?? (converged ? now + state.rules.marginMs(state.gossip.records.size) : undefined);
    if (started === undefined) continue;
    const due = record.terminated && converged ? Math.min(started, now) : started;
    margins.set(record.uid, due);
    same &&= due === known;
    // Also when it is known: a clock that rang early must ring again.
    if (due > now) effects.push({ kind: 'wake', at: due });
  }
  return same && margins.size === state.margins.size ? state.margins : margins;
}

function removeDown(gossip: GossipState, margins: ReadonlyMap<string, number>, now: number): GossipState {
  let next = gossip;
  for (const [uid, due] of margins) {
    if (due <= now) next = withTombstone(next, uid, now, limits.tombstones);
  }
  return next;
}

function removeExiting(gossip: GossipState, selfUid: string, now: number, removed: MemberRecord[]): GossipState {
  let next = gossip;
  for (const record of gossip.records.values()) {
    if (record.status !== 'exiting' || record.uid === selfUid) continue;
    removed.push(record);
    next = withTombstone(next, record.uid, now, limits.tombstones);
  }
  return next;
}

/** In the order in which they joined here. `minMembers` holds back the first numbering only. */
function numberJoiners(gossip: GossipState, minMembers: number): GossipState {
  if (gossip.lastNumber === 0) {
    const active = [...gossip.records.values()].filter((record) => isActive(record.status)).length;
    if (active < minMembers) return gossip;
  }
  let next = gossip;
  for (const record of gossip.records.values()) {
    if (record.status !== 'joining') continue;
    const upNumber = next.lastNumber + 1;
    next = { ...withRecord(next, { ...record, status: 'up', upNumber }), lastNumber: upNumber };
  }
  return next;
}

/** The last member needs nobody's consent to go. */
function finishAlone(state: Membership, effects: MembershipEffect[]): Step {
  if (selfRecord(state).status !== 'exiting') return { state, effects };
  for (const record of state.gossip.records.values()) {
    if (record.uid !== state.selfUid && isActive(record.status)) return { state, effects };
  }
  const ended = end(state, 'left', false, false);
  return { state: ended.state, effects: [...effects, ...ended.effects] };
}
