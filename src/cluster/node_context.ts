/** What the parts of a cluster node's shell share. Each part owns one duty; all decisions go through `dispatch`. */
import type { Environment } from '../actor/environment.ts';
import type { Address, SeedAnswer, Transport } from '../transport/contract.ts';
import type { Envelope, Peers } from '../transport/peers_contract.ts';
import type { DowningStrategy } from './downing/contract.ts';
import type { MemberRecord } from './gossip_state.ts';
import type { MembershipView } from './member.ts';
import type { Membership, MembershipEvent } from './membership_state.ts';
import type { NodeEnd } from './notifier.ts';
import type { Pulse } from './pulse.ts';
import type { SelfElection } from './cluster_options.ts';
import type { Timing } from './timing.ts';

export interface NodeSettings {
  readonly environment: Environment;
  readonly clusterName: string;
  /** Random per process start. */
  readonly uid: string;
  readonly roles: readonly string[];
  readonly runtime: string;
  readonly appVersion: string;
  /** `host:port` or http(s) URLs. */
  readonly seeds: readonly string[];
  readonly protocol: number;
  /** Of all options that must be equal on all nodes. */
  readonly fingerprint: string;
  readonly timing: Timing;
  readonly strategy: DowningStrategy;
  readonly transport: Pick<Transport, 'probe' | 'seed'>;
  /** Default 'cold-start'. */
  readonly selfElection?: SelfElection;
  /** Default 1. */
  readonly minMembers?: number;
  /** Period of the repair round. Default 1 000 ms. */
  readonly gossipIntervalMs?: number;
  /** Up to this many members a change goes to everybody as a whole state; above, as what changed. Default 12. */
  readonly gossipToAllUpTo?: number;
  /** How this process's last node ended, when it comes back as a new uid: keeps it from founding a rival of its old cluster. */
  readonly previous?: Pick<NodeEnd, 'via' | 'members'>;
  /** How long tasks registered with `onLeaving` may take. Default 10 000 ms. */
  readonly leaveTimeoutMs?: number;
}

export interface NodeContext {
  readonly settings: NodeSettings;
  readonly environment: Environment;
  readonly address: Address;
  readonly peers: Peers;
  readonly pulse: Pulse;
  membership(): Membership;
  view(): MembershipView;
  dispatch(event: MembershipEvent): void;
  send(to: Address, envelope: Envelope): void;
  count(name: string): void;
}

/** What a node says about itself before it has joined. */
export function initialRecord(settings: NodeSettings, address: Address): MemberRecord {
  return {
    address,
    uid: settings.uid,
    status: 'joining',
    upNumber: 0,
    terminated: false,
    selfVersion: 1,
    roles: [...settings.roles],
    runtime: settings.runtime,
    appVersion: settings.appVersion,
    started: new Map(),
    hosting: new Map(),
  };
}

/** What a node answers to `GET /cluster/seed`. */
export function seedAnswerOf(node: NodeContext, founds: boolean): SeedAnswer {
  const { clusterName, protocol, fingerprint, uid } = node.settings;
  const { gossip, phase } = node.membership();
  const inside = phase === 'member';
  return {
    clusterName,
    protocol,
    fingerprint,
    address: node.address,
    uid,
    clusterId: inside ? gossip.clusterId : undefined,
    formedAt: inside ? gossip.formedAt : undefined,
    members: node.view().members.filter((member) => inside && member.status === 'up').map((member) => member.address),
    ...(inside || founds ? {} : { founds }),
  };
}
