/** While this node hosts: instance births and deaths, restarts with backoff, and giving the place up. */
import { eligibleHosts } from './host.ts';
import { askAgain } from './manager_becoming.ts';
import type { Draft } from './manager_draft.ts';
import { beginStop, give } from './manager_standing_down.ts';
import type { HandOverResult, ManagerEvent, Phase } from './manager_state.ts';

type Ended = Extract<ManagerEvent, { kind: 'instance-ended' }>;
type Hosting = Extract<Phase, { instance: unknown }>;

/** An instance that has run for so long is healthy. */
const healthyMs = 60_000;
/** How often a node that gave up looks whether anybody else can host. */
const withdrawnMs = 60_000;

export function reconcileHosting(draft: Draft): void {
  const phase = draft.state.phase;
  if (phase.kind !== 'hosting' && phase.kind !== 'was-host') return;
  if (!draft.state.started) return beginStop(draft, 'stop-called', undefined);
  if (draft.shouldHost()) {
    if (phase.kind === 'was-host') draft.enter({ ...phase, kind: 'hosting' });
    return;
  }
  if (draft.state.leaving && draft.successor() === undefined) return beginStop(draft, 'leaving', undefined);
  // The instance keeps running until the next host asks, so that the gap is one round trip plus the stop.
  if (phase.kind === 'hosting') draft.enter({ ...phase, kind: 'was-host' });
}

export function onInstanceStarted(draft: Draft, epoch: number): void {
  const phase = draft.state.phase;
  if ((phase.kind !== 'hosting' && phase.kind !== 'was-host') || phase.epoch !== epoch) return;
  draft.enter({ ...phase, instance: 'running', runningSince: draft.now });
}

export function onInstanceEnded(draft: Draft, ended: Ended): void {
  const phase = draft.state.phase;
  switch (phase.kind) {
    case 'handing-over':
    case 'stopping':
      if (phase.epoch === ended.epoch) stopped(draft, phase, ended);
      return;
    case 'hosting':
    case 'was-host':
      if (phase.epoch === ended.epoch && phase.instance !== 'backing-off') died(draft, phase, ended);
      return;
    case 'idle':
    case 'younger':
    case 'ended':
    case 'becoming-host':
    case 'acquiring-lease':
      return;
    default:
      return phase satisfies never;
  }
}

function resultOf(draft: Draft, phase: { epoch: number; plannedSince: number }, ended: Ended): HandOverResult {
  return {
    epoch: phase.epoch,
    plannedSince: phase.plannedSince,
    from: draft.state.selfAddress,
    watermarks: ended.watermarks,
    state: ended.state,
    endedAt: draft.now,
    offeredTo: [],
    givenUp: [],
  };
}

/** A stop that somebody wanted is over: keep what it left, and hand it to the asker if there is one. */
function stopped(draft: Draft, phase: Extract<Phase, { asker: unknown }>, ended: Ended): void {
  draft.clearTimer('stop-timeout');
  if (draft.state.config.lease) draft.effect({ kind: 'release-lease' });
  draft.enter({ kind: 'younger' });
  if (phase.why === 'self-down') return;
  draft.keep(resultOf(draft, phase, ended));
  if (phase.asker) draft.effect({ kind: 'answer', to: phase.asker, verdict: give(draft, phase.asker) });
}

/** Nobody asked for this end: restart with backoff, give up, or move to the next host. */
function died(draft: Draft, phase: Hosting, ended: Ended): void {
  const { config, name, selfUid } = draft.state;
  if (!config.restartOnTermination) {
    draft.log('info', 'the instance ended and is not restarted (restartOnTermination: false)', { epoch: phase.epoch });
    if (config.lease) draft.effect({ kind: 'release-lease' });
    draft.patch({ latched: true });
    draft.enter({ kind: 'younger' });
    return;
  }
  const healthy = phase.runningSince !== undefined && draft.now - phase.runningSince >= healthyMs;
  const failures = healthy ? 1 : phase.failures + 1;
  const others = eligibleHosts(draft.view, name).some((member) => member.uid !== selfUid);
  if (failures >= config.moveAfterFailures && others) {
    draft.log('warn', 'the instance keeps ending here: the singleton moves to the next host', { failures });
    if (config.lease) draft.effect({ kind: 'release-lease' });
    draft.patch({ latched: true, withdrawn: true });
    draft.keep(resultOf(draft, phase, ended));
    draft.setTimer('restart', withdrawnMs);
    draft.enter({ kind: 'younger' });
    return;
  }
  const backoff = Math.min(config.restartBackoffMaxMs, config.restartBackoffMinMs * 2 ** Math.min(30, failures - 1));
  draft.log('warn', 'the instance ended unexpectedly and is restarted', { epoch: phase.epoch, inMs: backoff });
  if (config.lease) {
    draft.effect({ kind: 'release-lease' });
    draft.keep(resultOf(draft, phase, ended));
  }
  draft.enter({ ...phase, instance: 'backing-off', runningSince: undefined, failures });
  draft.effect({ kind: 'set-timer', timer: 'restart', ms: backoff, jitter: 0.2 });
}

/** The backoff is over. Without a lease the place was never given up, so nobody needs to be asked again. */
export function onRestartTimer(draft: Draft): void {
  const { phase, config } = draft.state;
  if (draft.state.withdrawn) {
    // It stays behind healthy hosts, and is a candidate again only where nobody else is.
    if (eligibleHosts(draft.view, draft.state.name).length > 0) return draft.setTimer('restart', withdrawnMs);
    return draft.patch({ latched: false, withdrawn: false });
  }
  if ((phase.kind !== 'hosting' && phase.kind !== 'was-host') || phase.instance !== 'backing-off') return;
  if (config.lease) return draft.enter({ kind: 'younger' });
  if (!draft.shouldHost() && phase.kind === 'hosting') return;
  const epoch = draft.nextEpoch();
  draft.sawEpoch(epoch, epoch);
  draft.enter({ ...phase, epoch, instance: 'starting', runningSince: undefined });
  draft.effect({
    kind: 'start-instance',
    epoch,
    plannedSince: phase.plannedSince,
    previous: undefined,
    keepFilter: true,
    report: { from: draft.state.selfAddress, reason: 'restart', gapMs: undefined, durationMs: 0 },
  });
}

export function onLeaseLost(draft: Draft, why: string): void {
  const phase = draft.state.phase;
  if (phase.kind === 'acquiring-lease') return askAgain(draft);
  if (phase.kind !== 'hosting' && phase.kind !== 'was-host') return;
  draft.log('warn', 'the lease is lost: the instance stops before its next message', { why, epoch: phase.epoch });
  beginStop(draft, 'lease-lost', undefined);
}
