/** What `cluster.subscribe` tells. */
import { checkOptions, OptionsError, type Rules, rules } from '../actor/options.ts';
import type { MemberChange } from '../cluster/contract.ts';
import type { Member, MembershipView } from '../cluster/member.ts';
import type {
  SingletonHandOver,
  SingletonHosted,
  SingletonHostedAnyway,
  SingletonStopped,
} from '../singleton/events.ts';

/** What `Cluster.subscribe` tells of: members, the leader, singletons, and this node itself, told apart by `kind`. */
export type ClusterEvent =
  | { readonly kind: 'SelfUp'; readonly member: Member }
  | { readonly kind: 'SelfRemoved'; readonly why: string }
  | {
    readonly kind:
      | 'MemberJoined'
      | 'MemberUp'
      | 'MemberLeft'
      | 'MemberExited'
      | 'MemberDown'
      | 'MemberRemoved'
      | 'MemberUnreachable'
      | 'MemberReachable';
    readonly member: Member;
  }
  | { readonly kind: 'LeaderChanged'; readonly leader: Member | undefined }
  | {
    readonly kind: 'CurrentClusterState';
    readonly members: readonly Member[];
    readonly leader: Member | undefined;
    readonly unreachable: readonly Member[];
  }
  | SingletonHosted
  | SingletonHandOver
  | SingletonStopped
  | SingletonHostedAnyway;

/** The event of a member's present status. */
function statusEvent(member: Member): ClusterEvent {
  switch (member.status) {
    case 'joining':
      return { kind: 'MemberJoined', member };
    case 'up':
      return { kind: 'MemberUp', member };
    case 'leaving':
      return { kind: 'MemberLeft', member };
    case 'exiting':
      return { kind: 'MemberExited', member };
    case 'down':
      return { kind: 'MemberDown', member };
    case 'removed':
      return { kind: 'MemberRemoved', member };
    default:
      return member.status satisfies never;
  }
}

export function eventsOf(change: MemberChange, view: MembershipView): readonly ClusterEvent[] {
  switch (change.kind) {
    case 'self-up':
      return [{ kind: 'SelfUp', member: view.self }];
    case 'self-removed':
      return [{ kind: 'SelfRemoved', why: change.why }];
    case 'member': {
      const { before, member } = change;
      if (before === undefined && member.status !== 'joining') {
        return [{ kind: 'MemberJoined', member }, statusEvent(member)];
      }
      if (before?.status === member.status) return [];
      // Quick leavers may be seen only once they are done.
      if (before?.status === 'up' && member.status === 'exiting') {
        return [{ kind: 'MemberLeft', member }, statusEvent(member)];
      }
      return [statusEvent(member)];
    }
    case 'leader':
      return [{ kind: 'LeaderChanged', leader: change.leader }];
    case 'reachability':
      return [{ kind: change.reachable ? 'MemberReachable' : 'MemberUnreachable', member: change.member }];
    case 'entry':
      return [];
    default:
      return change satisfies never;
  }
}

/** How a new listener is told what there is already. */
export interface SubscribeOptions {
  /** `events` (default): an event per member for what there is; `snapshot`: one `CurrentClusterState`. */
  readonly replayMode?: 'events' | 'snapshot';
}

const subscribeRules: Rules<SubscribeOptions> = { replayMode: rules.oneOf('events', 'snapshot') };

/** @throws OptionsError */
export function checkSubscription(listener: unknown, options: SubscribeOptions): void {
  if (typeof listener !== 'function') {
    throw new OptionsError('Cluster.subscribe', 'listener', listener, 'must be a function');
  }
  checkOptions('SubscribeOptions', options, subscribeRules);
}

/** What a new subscriber is told of what there is: one event per member and status, or one state. */
export function replay(view: MembershipView, mode: 'events' | 'snapshot'): readonly ClusterEvent[] {
  const unreachable = view.members.filter((member) => !member.reachable);
  if (mode === 'snapshot') {
    return [{ kind: 'CurrentClusterState', members: view.members, leader: view.leader, unreachable }];
  }
  const events: ClusterEvent[] = [];
  for (const member of view.members) {
    events.push({ kind: 'MemberJoined', member });
    if (member.status !== 'joining') events.push(statusEvent(member));
  }
  for (const member of unreachable) events.push({ kind: 'MemberUnreachable', member });
  events.push({ kind: 'LeaderChanged', leader: view.leader });
  return events;
}
