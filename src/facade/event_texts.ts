/** Events of a node in words, for `/cluster/events` and the status page. */
import type { MemberChange } from '../cluster/contract.ts';
import type { MembershipView } from '../cluster/member.ts';
import type { InspectionEvent, InspectionEventKind } from '../http/inspection.ts';
import type { SingletonHosted, SingletonHostedAnyway, SingletonStopped } from '../singleton/events.ts';
import { type ClusterEvent, eventsOf } from './cluster_events.ts';

type Described = Omit<InspectionEvent, 'at'>;

const memberKinds: Partial<Record<ClusterEvent['kind'], [InspectionEventKind, string]>> = {
  MemberJoined: ['member-joined', 'joins'],
  MemberUp: ['member-up', 'is up'],
  MemberLeft: ['member-left', 'leaves'],
  MemberDown: ['member-down', 'is down'],
  MemberRemoved: ['member-removed', 'is removed'],
  MemberUnreachable: ['member-unreachable', 'is unreachable'],
  MemberReachable: ['member-reachable', 'is reachable again'],
};

export function describeChange(change: MemberChange, view: MembershipView, at: number): readonly InspectionEvent[] {
  return eventsOf(change, view).flatMap((event) => {
    const described = describeMembership(event);
    return described ? [{ at, ...described }] : [];
  });
}

function describeMembership(event: ClusterEvent): Described | undefined {
  switch (event.kind) {
    case 'SelfUp':
      return { kind: 'self-up', text: 'This node is up.', address: event.member.address };
    case 'SelfRemoved':
      return { kind: 'self-removed', text: `This node is out of the cluster: ${event.why}` };
    case 'LeaderChanged':
      return {
        kind: 'leader-changed',
        text: event.leader ? `${event.leader.address} leads.` : 'Nobody leads.',
        ...(event.leader ? { address: event.leader.address } : {}),
      };
    default: {
      const words = memberKinds[event.kind];
      if (!words || !('member' in event)) return undefined;
      return { kind: words[0], text: `${event.member.address} ${words[1]}.`, address: event.member.address };
    }
  }
}

export function describeSingletonEvent(event: SingletonHosted | SingletonStopped | SingletonHostedAnyway): Described {
  const about = { singleton: event.name, address: event.host };
  switch (event.kind) {
    case 'SingletonHosted': {
      const from = event.from && event.from !== event.host ? ` from ${event.from}` : '';
      const gap = event.gapMs === undefined ? '' : `, gap ${Math.round(event.gapMs)} ms`;
      return {
        kind: 'singleton-hosted',
        text: `${event.name} runs on ${event.host}${from} (${event.reason}${gap}).`,
        epoch: event.epoch,
        reason: event.reason,
        ...(event.from === undefined ? {} : { from: event.from }),
        ...(event.gapMs === undefined ? {} : { gapMs: Math.round(event.gapMs) }),
        ...about,
      };
    }
    case 'SingletonStopped':
      return {
        kind: 'singleton-stopped',
        text: `${event.name} ended on ${event.host} (${event.cause}).`,
        epoch: event.epoch,
        reason: event.cause,
        ...about,
      };
    case 'SingletonHostedAnyway':
      return {
        kind: 'warning',
        text: `${event.name} runs on ${event.host} although ${event.silent.join(', ')} gave no answer.`,
        ...about,
      };
    default:
      return event satisfies never;
  }
}
