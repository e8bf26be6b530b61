/**
 * How a node finds its cluster, or founds it (rule 5), as a pure machine. Every seed is asked who it is. One that is in a
 * cluster is joined. Otherwise the first of the listed nodes that answer, in address order, collects pledges from a
 * majority of the list and founds the cluster together with those who pledged: nobody in it becomes `up` before all of
 * them have seen it, so of two foundings from one list at most one can ever count. Silence and refusal are no answers.
 */
import type { Address, DialFailure, PeerIdentity, SeedAnswer } from '../transport/contract.ts';
import { differencesText } from './fingerprint.ts';
import type { MemberRecord } from './gossip_state.ts';
import { compareAddress } from './member.ts';
import {
  type Candidacy,
  founds,
  isListed,
  type Joining,
  listedAlone,
  majorityOf,
  mayFound,
  type Seeding,
  type SeedingEffect,
  type SeedingEvent,
  type SeedingSettings,
  type SeedingStep,
  seedingTimes,
  type SeedOutcome,
} from './seeding_state.ts';

export function startSeeding(settings: SeedingSettings, now: number, jitter: number): SeedingStep {
  const state: Seeding = {
    settings: { ...settings, seeds: [...new Set(settings.seeds)] },
    startedAt: now,
    round: 0,
    pending: new Set(),
    outcomes: new Map(),
    pledged: undefined,
    candidacy: undefined,
    joining: undefined,
    nextRoundAt: now,
    explained: new Set(),
    refusal: undefined,
  };
  if (settings.selfElection === 'immediate') {
    const overridden = settings.seeds.some((seed) => seed !== settings.selfAddress);
    return { state, effects: [{ kind: 'form', founders: [], overridden }] };
  }
  return beginRound(state, now, jitter);
}

/** `jitter` in [0, 1) spreads retries. */
export function stepSeeding(state: Seeding, event: SeedingEvent, now: number, jitter: number): SeedingStep {
  switch (event.kind) {
    case 'tick':
      return tick(state, now, jitter);
    case 'answer':
      return answered(state, event.seed, event.outcome, now, jitter);
    case 'pledge-request':
      return pledgeRequested(state, event.from, event.nonce, now);
    case 'pledge-answer':
      return pledgeAnswered(state, event.from, event.nonce, event.pledge, now);
    case 'join-refused':
      return joinRefused(state, event.from, event.why, now);
    case 'invited':
      return state.joining === undefined ? joinAt(state, [event.from.address], now) : { state, effects: [] };
    default:
      return event satisfies never;
  }
}

function beginRound(state: Seeding, now: number, jitter: number): SeedingStep {
  const longest = now < state.startedAt + seedingTimes.eager ? seedingTimes.eagerRetry : seedingTimes.lastRetry;
  const backoff = Math.min(seedingTimes.firstRetry * 2 ** Math.min(state.round, 10), longest);
  const nextRoundAt = now + backoff * (0.75 + jitter / 2);
  const outcomes = new Map(state.outcomes);
  const asked: string[] = [];
  for (const seed of new Set([...state.settings.seeds, ...state.settings.witnesses ?? []])) {
    if (seed === state.settings.selfAddress || outcomes.get(seed)?.kind === 'self') {
      outcomes.set(seed, { kind: 'self' });
    } else asked.push(seed);
  }
  const next: Seeding = {
    ...state,
    round: state.round + 1,
    outcomes,
    pending: new Set(asked),
    joining: undefined,
    candidacy: undefined,
    nextRoundAt,
  };
  if (asked.length === 0) return decide(next, now);
  return { state: next, effects: asked.map((seed) => ({ kind: 'ask', seed })) };
}

function tick(state: Seeding, now: number, jitter: number): SeedingStep {
  const { joining } = state;
  if (joining !== undefined) {
    if (now >= joining.giveUpAt) return beginRound(state, now, jitter);
    if (now < joining.nextAt) return { state, effects: [{ kind: 'wake', at: joining.nextAt }] };
    return sendJoin(state, joining, now);
  }
  if (state.pending.size > 0) return { state, effects: [] };
  if (mayFoundAlone(state, now)) return { state, effects: [{ kind: 'form', founders: [], overridden: true }] };
  if (now >= state.nextRoundAt) return beginRound(state, now, jitter);
  return { state, effects: [{ kind: 'wake', at: state.nextRoundAt }] };
}

function answered(
  state: Seeding,
  seed: string,
  outcome: SeedAnswer | DialFailure,
  now: number,
  jitter: number,
): SeedingStep {
  if (!state.pending.has(seed)) return { state, effects: [] };
  const pending = new Set(state.pending);
  pending.delete(seed);
  const judged = judge(state.settings, outcome);
  const effects: SeedingEffect[] = [];
  let next: Seeding = { ...state, pending, outcomes: new Map(state.outcomes).set(seed, judged) };
  if (judged.kind === 'mismatch') next = explain(next, `${seed}: ${judged.why}`, effects);
  if (next.joining !== undefined) return { state: next, effects };
  if (judged.kind === 'clustered') {
    const targets = [...new Set([...judged.answer.members, judged.answer.address])];
    const sent = joinAt(next, targets, now);
    return { state: sent.state, effects: [...effects, ...sent.effects] };
  }
  if (pending.size > 0) return { state: next, effects };
  const decided = decide(next, now);
  const late = decided.state.candidacy === undefined && now >= decided.state.nextRoundAt;
  const more = late && !decided.effects.some((effect) => effect.kind === 'form')
    ? beginRound(decided.state, now, jitter)
    : decided;
  return { state: more.state, effects: [...effects, ...more.effects] };
}

function judge(settings: SeedingSettings, outcome: SeedAnswer | DialFailure): SeedOutcome {
  if ('reason' in outcome) {
    if (outcome.reason === 'rejected') return { kind: 'mismatch', why: outcome.detail };
    const refused = outcome.reason === 'refused';
    return {
      kind: 'silent',
      refused,
      why: outcome.detail === '' ? outcome.reason : `${outcome.reason} (${outcome.detail})`,
    };
  }
  if (outcome.uid === settings.selfUid) return { kind: 'self' };
  for (const field of ['clusterName', 'protocol', 'fingerprint'] as const) {
    if (outcome[field] === settings[field]) continue;
    const why = field === 'fingerprint'
      ? `its settings differ: ${differencesText(settings.fingerprint, outcome.fingerprint)}`
      : `its ${field} is ${outcome[field]}, here it is ${settings[field]}`;
    return { kind: 'mismatch', why };
  }
  return { kind: outcome.clusterId === undefined ? 'alone' : 'clustered', answer: outcome };
}

function explain(state: Seeding, text: string, effects: SeedingEffect[]): Seeding {
  if (state.explained.has(text) || state.explained.size >= 100) return state;
  effects.push({ kind: 'warn', text });
  return { ...state, explained: new Set(state.explained).add(text) };
}

function joinAt(state: Seeding, targets: readonly Address[], now: number): SeedingStep {
  return sendJoin(state, { targets, attempt: 0, nextAt: now, giveUpAt: now + seedingTimes.joinGiveUp }, now);
}

function sendJoin(state: Seeding, joining: Joining, now: number): SeedingStep {
  const to = joining.targets[joining.attempt % joining.targets.length] as Address;
  const nextAt = now + seedingTimes.joinRetry;
  const next = { ...state, joining: { ...joining, attempt: joining.attempt + 1, nextAt }, candidacy: undefined };
  return { state: next, effects: [{ kind: 'join', to }, { kind: 'wake', at: nextAt }] };
}

/** All seeds have answered or failed, and none is in a cluster. */
function decide(state: Seeding, now: number): SeedingStep {
  const { settings } = state;
  if (mayFoundAlone(state, now)) return { state, effects: [{ kind: 'form', founders: [], overridden: true }] };
  const wake: SeedingEffect = { kind: 'wake', at: state.nextRoundAt };
  if (settings.selfElection === 'never') return { state, effects: [wake] };
  const others = settings.seeds.filter((seed) => state.outcomes.get(seed)?.kind !== 'self');
  if (!mayFound(state)) return { state, effects: [wake] };
  if (others.length === 0) return { state, effects: [{ kind: 'form', founders: [], overridden: false }] };
  if (!isListed(state)) return { state, effects: [wake] };
  const alive = listedAlone(state);
  const rivals = alive.filter((answer) => answer.founds !== false);
  const isFirst = rivals.every((answer) => compareAddress(settings.selfAddress, answer.address) < 0);
  const bound = state.pledged !== undefined && state.pledged.until > now;
  if (!isFirst || bound || alive.length + 1 < majorityOf(settings.seeds)) return { state, effects: [wake] };
  const listenUntil = state.startedAt + seedingTimes.listenFirst;
  if (now < listenUntil) {
    return { state: { ...state, nextRoundAt: listenUntil }, effects: [{ kind: 'wake', at: listenUntil }] };
  }
  const candidacy: Candidacy = { nonce: state.round, sentAt: now, pledges: new Map() };
  const requests: SeedingEffect[] = alive.map(({ address }) => ({
    kind: 'request-pledge',
    to: address,
    nonce: state.round,
  }));
  const nextRoundAt = Math.max(state.nextRoundAt, now + seedingTimes.pledgeWait);
  return { state: { ...state, candidacy, nextRoundAt }, effects: [...requests, { kind: 'wake', at: nextRoundAt }] };
}

function pledgeRequested(state: Seeding, from: PeerIdentity, nonce: number, now: number): SeedingStep {
  const answer = (granted: boolean): SeedingEffect => ({ kind: 'answer-pledge', to: from.address, nonce, granted });
  const { pledged, settings } = state;
  const bound = pledged !== undefined && pledged.until > now && pledged.uid !== from.uid &&
    pledged.address !== from.address;
  const outranked = isListed(state) && founds(state) && compareAddress(settings.selfAddress, from.address) < 0;
  if (
    bound || outranked || !mayFound(state, [from.address]) || state.joining !== undefined ||
    settings.selfElection === 'immediate'
  ) {
    return { state, effects: [answer(false)] };
  }
  const pledge = { uid: from.uid, address: from.address, until: now + seedingTimes.pledge };
  return { state: { ...state, pledged: pledge, candidacy: undefined }, effects: [answer(true)] };
}

function pledgeAnswered(
  state: Seeding,
  from: PeerIdentity,
  nonce: number,
  pledge: MemberRecord | undefined,
  now: number,
): SeedingStep {
  const { candidacy, settings } = state;
  if (candidacy === undefined || candidacy.nonce !== nonce || pledge === undefined) return { state, effects: [] };
  if (now > candidacy.sentAt + seedingTimes.pledgeUsable) {
    return { state: { ...state, candidacy: undefined }, effects: [] };
  }
  if (!listedAlone(state).some((answer) => answer.uid === from.uid)) return { state, effects: [] };
  const pledges = new Map(candidacy.pledges).set(from.uid, pledge);
  const next = { ...state, candidacy: { ...candidacy, pledges } };
  if (pledges.size + 1 < majorityOf(settings.seeds)) return { state: next, effects: [] };
  return { state: next, effects: [{ kind: 'form', founders: [...pledges.values()], overridden: false }] };
}

function joinRefused(state: Seeding, from: Pick<PeerIdentity, 'address'>, why: string, now: number): SeedingStep {
  const effects: SeedingEffect[] = [];
  const next = explain(
    { ...state, refusal: `${from.address}: ${why}` },
    `${from.address} refused the join: ${why}`,
    effects,
  );
  if (next.joining === undefined) return { state: next, effects };
  const nextRoundAt = Math.max(now + seedingTimes.firstRetry, next.nextRoundAt);
  return {
    state: { ...next, joining: undefined, nextRoundAt },
    effects: [...effects, { kind: 'wake', at: nextRoundAt }],
  };
}

/** A number as `selfElection` has passed. */
function mayFoundAlone({ settings, startedAt }: Seeding, now: number): boolean {
  return typeof settings.selfElection === 'number' && now >= startedAt + settings.selfElection;
}
