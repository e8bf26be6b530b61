/** Standing down: whom to obey, stopping the instance, and the custody of what it leaves behind. */
import { mayBeNextHost } from './host.ts';
import { abandonAttempt, askNow } from './manager_becoming.ts';
import type { Draft } from './manager_draft.ts';
import type { Asker, StopCause, Verdict } from './manager_state.ts';

export function onRequest(draft: Draft, asker: Asker, proposedEpoch: number): void {
  draft.sawEpoch(proposedEpoch);
  const { phase, name } = draft.state;
  const obey = mayBeNextHost(draft.view, name, asker.uid);
  const answer = (verdict: Verdict) => draft.effect({ kind: 'answer', to: asker, verdict });
  switch (phase.kind) {
    case 'idle':
    case 'younger':
    case 'ended':
      return answer(obey ? give(draft, asker) : withhold(draft, asker));
    case 'becoming-host':
    case 'acquiring-lease': {
      if (!obey) return answer({ kind: 'refused', why: 'this node becomes host and comes first' });
      abandonAttempt(draft);
      return answer(give(draft, asker));
    }
    case 'hosting':
    case 'was-host':
      if (!obey) return answer({ kind: 'refused', why: 'this node hosts and comes first' });
      beginStop(draft, 'hand-over', asker);
      return answer({ kind: 'stopping' });
    case 'handing-over':
    case 'stopping':
      if (!obey) return answer({ kind: 'refused', why: 'an instance is stopping here, and this node comes first' });
      draft.enter({ ...phase, asker });
      return answer({ kind: 'stopping' });
    default:
      return phase satisfies never;
  }
}

/** Offers the kept result, and says to whom else it was offered before: only one of them may start from it. */
export function give(draft: Draft, asker: Asker): Verdict {
  const kept = draft.state.kept;
  if (!kept) return { kind: 'not-hosting' };
  const offer = { ...kept, offeredTo: draft.offers(kept, asker.uid), givenUp: draft.state.givenUp };
  draft.patch({ kept: { ...kept, offeredTo: [...offer.offeredTo, asker.nonce] } });
  return { kind: 'handed-over', result: offer };
}

/** An attempt was given up: its asker has not started and will not. */
export function onWithdrawn(draft: Draft, uid: string, nonce: string): void {
  const { phase } = draft.state;
  draft.gaveUp([nonce]);
  if (
    (phase.kind === 'handing-over' || phase.kind === 'stopping') && phase.asker?.uid === uid &&
    phase.asker.nonce === nonce
  ) {
    draft.enter({ ...phase, asker: undefined });
  }
  // It refused because it was about to host itself: now it will answer, and perhaps only now, since it may be leaving.
  if (phase.kind === 'becoming-host' && phase.attempt.replies.get(uid) === 'refused') askNow(draft, phase.attempt, uid);
}

/**
 * To one who is not the next host in this view: nothing runs here, but a result in custody is not passed over. Whoever it
 * was offered to may have given up before it came, and then nobody else has it; once somebody starts from it, it is dropped.
 */
function withhold(draft: Draft, asker: Asker): Verdict {
  if (draft.state.kept) {
    return { kind: 'refused', why: `this node keeps the hand-over result and does not know ${asker.address} as next` };
  }
  const member = draft.view.members.find((candidate) => candidate.uid === asker.uid);
  if (!member || member.status !== 'up') return { kind: 'refused', why: 'the asker is not up in this view' };
  return { kind: 'not-hosting' };
}

/** Stops the instance; `instance-ended` follows, also when there is none at the moment. */
export function beginStop(draft: Draft, why: StopCause, asker: Asker | undefined): void {
  const phase = draft.state.phase;
  if (phase.kind === 'handing-over' || phase.kind === 'stopping') {
    if (why === 'self-down') draft.enter({ ...phase, why });
    return;
  }
  if (phase.kind !== 'hosting' && phase.kind !== 'was-host') return;
  const { epoch, plannedSince } = phase;
  draft.clearTimer('restart');
  draft.enter({ kind: why === 'hand-over' ? 'handing-over' : 'stopping', epoch, plannedSince, asker, why });
  draft.setTimer('stop-timeout', draft.state.config.stopTimeoutMs);
  draft.effect({ kind: 'stop-instance', epoch, collect: why !== 'self-down' && why !== 'lease-lost' });
  const { selfAddress } = draft.state;
  draft.log('info', 'the instance stops', { from: selfAddress, to: asker?.address ?? null, reason: why, epoch });
}

export function onStopTimeout(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'handing-over' && phase.kind !== 'stopping') return;
  draft.log('warn', 'the instance did not stop in time and is killed', {
    epoch: phase.epoch,
    stopTimeoutMs: draft.state.config.stopTimeoutMs,
  });
  draft.effect({ kind: 'kill-instance', epoch: phase.epoch });
}
