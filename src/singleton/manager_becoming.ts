/** Becoming host: ask everybody, start only when all have confirmed that nothing runs there (rule 9). */
import type { Member } from '../cluster/member.ts';
import type { Address } from '../transport/contract.ts';
import { attempterOf, attemptNonce } from './attempt_nonce.ts';
import { placedUid, placementOf } from './host.ts';
import type { Draft } from './manager_draft.ts';
import type { Attempt, HandOverReport, HandOverResult, ManagerEvent, ReplyKind } from './manager_state.ts';

type Answer = Extract<ManagerEvent, { kind: 'answer' }>;

/** Until a member that has refused is asked again; doubles up to `resendMs`. */
const firstRetryMs = 10;
/** Until the lease is asked for again whose last holder has ended in order; doubles. */
const firstAcquireRetryMs = 20;

/** With a nonce that no attempt of this node had before. */
export function newAttempt(draft: Draft): Attempt {
  const attempts = draft.state.attempts + 1;
  draft.patch({ attempts });
  return {
    nonce: attemptNonce(draft.state.selfUid, attempts),
    startedAt: draft.now,
    replies: new Map(),
    refusals: new Map(),
    asked: new Set(),
    reached: new Map(),
    custodians: new Set(),
    doubted: false,
    repeats: 0,
    denials: 0,
    timedOut: false,
  };
}

/** Everyone who could have an instance: all members but this one and those proven dead. */
function couldHost(draft: Draft): Member[] {
  return draft.view.members.filter((member) => member.uid !== draft.state.selfUid && !member.terminated);
}

/** Asks whoever was not asked yet, and starts when everybody is clear. Runs after every event of an attempt. */
export function reconcileAttempt(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host' && phase.kind !== 'acquiring-lease') return;
  let attempt = phase.attempt;
  const members = couldHost(draft);
  const unasked = members.filter((member) => member.status !== 'down' && !attempt.asked.has(member.uid));
  if (unasked.length > 0) {
    attempt = { ...attempt, asked: new Set([...attempt.asked, ...unasked.map((member) => member.uid)]) };
    if (attempt.asked.size === unasked.length) {
      draft.setTimer('resend', draft.state.config.resendMs);
      draft.setTimer('hand-over-timeout', draft.state.config.handOverTimeoutMs);
    }
    draft.enter({ ...phase, attempt });
    for (const member of unasked) request(draft, attempt, member);
  }
  const blockers = members.filter((member) => attempt.replies.get(member.uid) !== 'clear');
  if (blockers.length === 0) return everybodyClear(draft, attempt);
  if (attempt.timedOut && mayHostAnyway(draft, attempt, blockers)) {
    const silent = blockers.map((member) => member.address);
    draft.log('warn', 'hosting although these members gave no answer: two instances are possible', { silent });
    draft.effect({ kind: 'hosted-anyway', silent });
    everybodyClear(draft, attempt);
  }
}

/**
 * Only silent members that nobody reaches may be passed over, never a slow, refusing or `down` one, nor one that another
 * member has reached lately; and never with a lease.
 */
function mayHostAnyway(draft: Draft, attempt: Attempt, blockers: readonly Member[]): boolean {
  const { config } = draft.state;
  if (config.handOverPolicy !== 'host-anyway' || config.lease) return false;
  return blockers.every((member) =>
    member.status !== 'down' && !member.reachable && attempt.replies.get(member.uid) === undefined &&
    draft.now - (attempt.reached.get(member.uid) ?? -Infinity) > config.handOverTimeoutMs
  );
}

export function onReached(draft: Draft, uid: string): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host' || !phase.attempt.asked.has(uid)) return;
  const reached = new Map(phase.attempt.reached).set(uid, draft.now);
  draft.enter({ ...phase, attempt: { ...phase.attempt, reached } });
}

function request(draft: Draft, attempt: Attempt, member: Member, via?: Member): void {
  draft.effect({
    kind: 'request',
    to: { uid: member.uid, address: member.address },
    nonce: attempt.nonce,
    epoch: draft.nextEpoch(),
    via: via && { uid: via.uid, address: via.address },
  });
}

export function askNow(draft: Draft, attempt: Attempt, uid: string): void {
  const member = couldHost(draft).find((candidate) => candidate.uid === uid && candidate.status !== 'down');
  if (member !== undefined) request(draft, attempt, member);
}

export function onResend(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host') return;
  const attempt = { ...phase.attempt, repeats: phase.attempt.repeats + 1 };
  draft.enter({ ...phase, attempt });
  const members = couldHost(draft).filter((member) => member.status !== 'down');
  const answering = members.filter((member) => attempt.replies.has(member.uid));
  for (const member of members) {
    const reply = attempt.replies.get(member.uid);
    if (reply === 'clear') continue;
    // Each time through another one; a member that has answered by such a way answers by it again.
    const others = reply === 'refused' ? [] : answering.filter((other) => other !== member);
    request(draft, attempt, member, others[attempt.repeats % others.length]);
  }
  draft.setTimer('resend', draft.state.config.resendMs);
}

export function onHandOverTimeout(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host') return;
  draft.enter({ ...phase, attempt: { ...phase.attempt, timedOut: true } });
  const waiting = couldHost(draft).filter((member) => phase.attempt.replies.get(member.uid) !== 'clear');
  if (waiting.length === 0) return;
  draft.log('warn', 'still waiting for members to stand down', {
    waiting: waiting.map((member) => `${member.address} (${phase.attempt.replies.get(member.uid) ?? member.status})`),
  });
  draft.setTimer('hand-over-timeout', draft.state.config.handOverTimeoutMs);
}

export function onAnswer(draft: Draft, answer: Answer): void {
  draft.sawEpoch(answer.epochSeen, answer.epochStarted);
  const phase = draft.state.phase;
  const current = phase.kind === 'becoming-host' || phase.kind === 'acquiring-lease' ? phase.attempt.nonce : undefined;
  if (answer.nonce !== current || (phase.kind !== 'becoming-host' && phase.kind !== 'acquiring-lease')) return;
  const verdict = answer.verdict;
  let reply: ReplyKind;
  switch (verdict.kind) {
    case 'not-hosting':
      reply = 'clear';
      break;
    case 'handed-over':
      reply = 'clear';
      takeCustody(draft, verdict.result);
      break;
    case 'stopping':
      reply = 'stopping';
      break;
    case 'refused':
      reply = 'refused';
      break;
    default:
      return verdict satisfies never;
  }
  const replies = new Map(phase.attempt.replies).set(answer.uid, reply);
  const { custodians: before } = phase.attempt;
  const custodians = verdict.kind === 'handed-over' ? new Set([...before, answer.uid]) : before;
  draft.enter({ ...phase, attempt: { ...phase.attempt, replies, custodians } });
  if (reply === 'refused' && phase.kind === 'becoming-host') askSooner(draft, answer.uid);
}

/** A refusal mostly means that the other's view is a moment behind: asked again soon, then less and less often. */
function askSooner(draft: Draft, uid: string): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host') return;
  const { attempt } = phase;
  const before = attempt.refusals.get(uid) ?? 0;
  draft.enter({ ...phase, attempt: { ...attempt, refusals: new Map(attempt.refusals).set(uid, before + 1) } });
  draft.setTimer('resend', Math.min(draft.state.config.resendMs, firstRetryMs * 2 ** before));
}

/** Keeps the result of the newest instance. */
function takeCustody(draft: Draft, result: HandOverResult): void {
  if (result.epoch < draft.state.epochStarted) return;
  draft.sawEpoch(0, result.epoch);
  const kept = draft.state.kept;
  const { selfUid } = draft.state;
  draft.gaveUp(result.givenUp);
  if (kept === undefined) return draft.keep({ ...result, offeredTo: draft.offers(result, selfUid) });
  // Two custodians of one result: whoever either has offered it to must confirm.
  const offeredTo = [...new Set([...draft.offers(kept, selfUid), ...draft.offers(result, selfUid)])];
  draft.keep({ ...kept, state: kept.state ?? result.state, offeredTo });
}

/**
 * The result was offered to somebody who is no member any more. It may have given up before it went, and then the custodian
 * knows by now, or hears of it in a moment: all are asked once more, under a new nonce, for what they say now.
 */
function askAnew(draft: Draft, attempt: Attempt): boolean {
  const { kept, epochStarted, selfUid, phase } = draft.state;
  if (phase.kind !== 'becoming-host' || attempt.doubted || !kept || kept.epoch < epochStarted) return false;
  const gone = (uid: string) => !draft.view.members.some((member) => member.uid === uid);
  const stillKept = couldHost(draft).some(({ uid, status }) => attempt.custodians.has(uid) && status !== 'down');
  if (!stillKept || !draft.offers(kept, selfUid).map(attempterOf).some(gone)) return false;
  draft.dropKept();
  withdraw(draft, attempt);
  draft.enter({
    kind: 'becoming-host',
    attempt: { ...newAttempt(draft), startedAt: attempt.startedAt, doubted: true },
  });
  reconcileAttempt(draft);
  return true;
}

function everybodyClear(draft: Draft, attempt: Attempt): void {
  if (askAnew(draft, attempt)) return;
  if (!draft.state.config.lease) return start(draft, attempt, undefined);
  const phase = draft.state.phase;
  if (phase.kind === 'acquiring-lease') return;
  draft.clearTimer('resend');
  draft.clearTimer('hand-over-timeout');
  draft.enter({ kind: 'acquiring-lease', attempt });
  draft.effect({ kind: 'acquire-lease', above: draft.state.epochStarted });
}

export function onLeaseGranted(draft: Draft, token: number, previous: number | undefined): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'acquiring-lease') return draft.effect({ kind: 'release-lease' });
  const members = couldHost(draft);
  if (members.some((member) => phase.attempt.replies.get(member.uid) !== 'clear')) {
    draft.effect({ kind: 'release-lease' });
    return askAgain(draft);
  }
  if (token <= draft.state.epochStarted) {
    const { epochStarted, config } = draft.state;
    const useless =
      `its tokens are not above ${epochStarted}, the epoch of an earlier instance (a backend that was set back, or another one than before?)`;
    draft.effect({ kind: 'release-lease', useless });
    return draft.setTimer('acquire', config.acquireRetryIntervalMs);
  }
  start(draft, phase.attempt, { token, previous });
}

/** Back from the lease to the members: whoever came meanwhile must be clear too, before it is asked for again. */
export function askAgain(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'acquiring-lease') return;
  draft.enter({ kind: 'becoming-host', attempt: phase.attempt });
  draft.setTimer('resend', draft.state.config.resendMs);
  draft.setTimer('hand-over-timeout', draft.state.config.handOverTimeoutMs);
}

export function onLeaseDenied(draft: Draft, retryInMs: number): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'acquiring-lease') return;
  const { attempt } = phase;
  const { config: { acquireRetryIntervalMs }, kept, selfAddress } = draft.state;
  draft.enter({ ...phase, attempt: { ...attempt, denials: attempt.denials + 1 } });
  // An instance has just ended elsewhere in order: its node gives the lease back at this very moment.
  const onItsWay = kept !== undefined && kept.from !== selfAddress;
  const soonMs = onItsWay ? firstAcquireRetryMs * 2 ** attempt.denials : Infinity;
  draft.setTimer('acquire', Math.min(retryInMs, soonMs, acquireRetryIntervalMs));
}

/** The one door to a new instance after a change of host. */
function start(
  draft: Draft,
  attempt: Attempt,
  lease: { token: number; previous: number | undefined } | undefined,
): void {
  const kept = draft.state.kept;
  // With a lease, instances may have lived where nobody here could hear of them: the tenures must follow on each other.
  const usable = kept && kept.epoch >= draft.state.epochStarted &&
    (lease === undefined || lease.previous === kept.epoch) &&
    draft.offers(kept, draft.state.selfUid).every((nonce) => attempt.replies.get(attempterOf(nonce)) === 'clear');
  const previous = usable ? kept : undefined;
  const epoch = lease?.token ?? draft.nextEpoch();
  const plannedSince = previous ? previous.plannedSince : epoch;
  const report: HandOverReport = {
    from: previous?.from ?? crashedHost(draft),
    reason: previous ? 'planned' : draft.state.epochStarted > 0 ? 'crash' : 'first-start',
    gapMs: previous ? Math.max(0, draft.now - previous.endedAt) : undefined,
    durationMs: draft.now - attempt.startedAt,
  };
  draft.dropKept();
  draft.clearTimer('resend');
  draft.clearTimer('hand-over-timeout');
  draft.clearTimer('acquire');
  draft.sawEpoch(epoch, epoch);
  draft.sawHost(draft.state.selfAddress, epoch);
  draft.enter({ kind: 'hosting', epoch, plannedSince, instance: 'starting', runningSince: undefined, failures: 0 });
  takePlace(draft);
  draft.effect({ kind: 'start-instance', epoch, plannedSince, previous, keepFilter: false, report });
}

/** Whoever hosted last, if this node has seen it. */
function crashedHost({ state: { lastHost, epochStarted } }: Draft): Address | undefined {
  return lastHost?.epoch === epochStarted ? lastHost.address : undefined;
}

/** Where it is spread: before the instance starts, so that nobody who comes from now on can be drawn instead. */
function takePlace(draft: Draft): void {
  const { view, state: { name, selfUid } } = draft;
  if (placementOf(view, name) !== 'spread' || placedUid(view, name) === selfUid) return;
  draft.effect({ kind: 'take-place' });
}

/** Gives the attempt up; those asked are told, so that what they offered is theirs again. */
export function abandonAttempt(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'becoming-host' && phase.kind !== 'acquiring-lease') return;
  if (phase.kind === 'acquiring-lease') draft.effect({ kind: 'release-lease' });
  draft.clearTimer('resend');
  draft.clearTimer('hand-over-timeout');
  draft.clearTimer('acquire');
  withdraw(draft, phase.attempt);
  draft.enter({ kind: 'younger' });
}

function withdraw(draft: Draft, attempt: Attempt): void {
  for (const { uid, address } of draft.view.members) {
    if (attempt.asked.has(uid)) draft.effect({ kind: 'withdraw', to: { uid, address }, nonce: attempt.nonce });
  }
}
