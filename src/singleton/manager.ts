/**
 * The singleton manager as a pure state machine: `manage(state, event, view, now, wall)`. One per singleton name and node. It
 * follows the hand-over protocol of Akka's ClusterSingletonManager in spirit (ask, wait for confirmed termination, start)
 * with epochs, nonces, custody of the hand-over result and explicit refusals added.
 */
import type { MembershipView } from '../cluster/member.ts';
import { Draft } from './manager_draft.ts';
import {
  abandonAttempt,
  askAgain,
  newAttempt,
  onAnswer,
  onHandOverTimeout,
  onLeaseDenied,
  onLeaseGranted,
  onReached,
  onResend,
  reconcileAttempt,
} from './manager_becoming.ts';
import {
  onInstanceEnded,
  onInstanceStarted,
  onLeaseLost,
  onRestartTimer,
  reconcileHosting,
} from './manager_hosting.ts';
import { beginStop, onRequest, onStopTimeout, onWithdrawn } from './manager_standing_down.ts';
import type { ManagerConfig, ManagerEvent, ManagerState, Phase, Step, TimerName } from './manager_state.ts';

export const defaultManagerConfig: ManagerConfig = {
  handOverTimeoutMs: 10_000,
  handOverPolicy: 'host-anyway',
  resendMs: 250,
  restartOnTermination: true,
  restartBackoffMinMs: 1_000,
  restartBackoffMaxMs: 30_000,
  moveAfterFailures: 5,
  stopTimeoutMs: 10_000,
  lease: false,
  acquireRetryIntervalMs: 5_000,
  drawAfterMs: 1_000,
  keepResultMs: 60_000,
};

export function initialManager(name: string, selfUid: string, selfAddress: string): ManagerState {
  return {
    name,
    selfUid,
    selfAddress,
    config: defaultManagerConfig,
    started: undefined,
    phase: { kind: 'idle' },
    epochSeen: 0,
    epochStarted: 0,
    lastHost: undefined,
    kept: undefined,
    givenUp: [],
    latched: false,
    withdrawn: false,
    leaving: false,
    awaitsDraw: false,
    attempts: 0,
  };
}

/** True while an instance exists on this node, in whatever condition. */
export function hasInstance(phase: Phase): boolean {
  switch (phase.kind) {
    case 'hosting':
    case 'was-host':
      return phase.instance !== 'backing-off';
    case 'handing-over':
    case 'stopping':
      return true;
    case 'idle':
    case 'younger':
    case 'ended':
    case 'becoming-host':
    case 'acquiring-lease':
      return false;
  }
}

export function manage(
  state: ManagerState,
  event: ManagerEvent,
  view: MembershipView,
  now: number,
  wall: number,
): Step {
  const draft = new Draft(state, view, now, wall);
  if (state.phase.kind === 'ended' && event.kind !== 'request' && event.kind !== 'withdrawn') {
    return { state, effects: [] };
  }
  apply(draft, event);
  reconcile(draft);
  return { state: draft.state, effects: draft.effects };
}

function apply(draft: Draft, event: ManagerEvent): void {
  switch (event.kind) {
    case 'view':
      return;
    case 'start':
      draft.patch({ started: event.record, config: event.config, latched: false, withdrawn: false });
      return awaitDraw(draft);
    case 'stop':
      draft.patch({ started: undefined });
      return;
    case 'leave':
      draft.patch({ leaving: true });
      return;
    case 'self-down':
      draft.log('warn', 'this node is down: its instance stops at once', { why: event.why });
      draft.dropKept();
      draft.patch({ started: undefined, leaving: true });
      if (hasInstance(draft.state.phase)) beginStop(draft, 'self-down', undefined);
      return;
    case 'request':
      return onRequest(draft, event.asker, event.epoch);
    case 'reached':
      return onReached(draft, event.uid);
    case 'withdrawn':
      return onWithdrawn(draft, event.uid, event.nonce);
    case 'answer':
      return onAnswer(draft, event);
    case 'hosted-elsewhere':
      draft.sawEpoch(0, event.epoch);
      return draft.sawHost(event.address, event.epoch);
    case 'instance-started':
      return onInstanceStarted(draft, event.epoch);
    case 'instance-ended':
      return onInstanceEnded(draft, event);
    case 'lease-granted':
      return onLeaseGranted(draft, event.token, event.previous);
    case 'lease-denied':
      return onLeaseDenied(draft, event.retryInMs);
    case 'lease-lost':
      return onLeaseLost(draft, event.why);
    case 'timer':
      return onTimer(draft, event.timer);
    default:
      return event satisfies never;
  }
}

function onTimer(draft: Draft, timer: TimerName): void {
  switch (timer) {
    case 'resend':
      return onResend(draft);
    case 'hand-over-timeout':
      return onHandOverTimeout(draft);
    case 'restart':
      return onRestartTimer(draft);
    case 'acquire':
      return askAgain(draft);
    case 'stop-timeout':
      return onStopTimeout(draft);
    case 'kept':
      return draft.dropKept();
    case 'draw':
      return draft.patch({ awaitsDraw: false });
    default:
      return timer satisfies never;
  }
}

function awaitDraw(draft: Draft): void {
  const awaitsDraw = draft.state.started?.placement === 'spread';
  draft.patch({ awaitsDraw });
  if (awaitsDraw) draft.setTimer('draw', draft.state.config.drawAfterMs);
}

/** Brings the phase in line with the view; runs after every event, so that no event can be missed for good. */
function reconcile(draft: Draft): void {
  const phase = draft.state.phase;
  switch (phase.kind) {
    case 'idle':
    case 'younger':
      if (draft.shouldHost()) {
        draft.enter({ kind: 'becoming-host', attempt: newAttempt(draft) });
        reconcileAttempt(draft);
      } else {
        settle(draft);
      }
      return;
    case 'becoming-host':
    case 'acquiring-lease':
      if (draft.shouldHost()) return reconcileAttempt(draft);
      abandonAttempt(draft);
      settle(draft);
      return;
    case 'hosting':
    case 'was-host':
      return reconcileHosting(draft);
    case 'handing-over':
    case 'stopping':
    case 'ended':
      return;
    default:
      return phase satisfies never;
  }
}

/** Idle or younger; ends when this node leaves and owes nobody anything. */
function settle(draft: Draft): void {
  const { state, view } = draft;
  if (state.leaving) {
    if (state.kept !== undefined && draft.successor() !== undefined) return;
    draft.enter({ kind: 'ended' });
    draft.effect({ kind: 'leave-done' });
    return;
  }
  const kind = state.started && view.self.status === 'up' ? 'younger' : 'idle';
  if (state.phase.kind !== kind) draft.enter({ kind });
}
