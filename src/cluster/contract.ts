/** What the membership node offers to the parts above it (singletons, HTTP, the public `Cluster`). */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import type { Envelope, MessageCheck, SendFailure, Sized } from '../transport/peers_contract.ts';
import type { HostingClaim, Member, MembershipView, StartedRecord } from './member.ts';

/** What happened to the view, in order. `before` is undefined for a member not seen until now. */
export type MemberChange =
  | { readonly kind: 'self-up' }
  | { readonly kind: 'member'; readonly before: Member | undefined; readonly member: Member }
  | { readonly kind: 'leader'; readonly leader: Member | undefined }
  | { readonly kind: 'reachability'; readonly member: Member; readonly reachable: boolean }
  | { readonly kind: 'entry'; readonly key: string }
  /** `rejoin`: this node did not mean to go (lost split, heal); a new incarnation may join. */
  | { readonly kind: 'self-removed'; readonly why: string; readonly rejoin?: boolean };

/** `refused`: an arbiter decides about splits, and what another member would do meanwhile cannot be known. */
export type DownOutcome = 'downed' | 'unknown' | 'refused';

/** Why this node must stop hosting at once: a lost split, an operator, its own removal, a lost listener. */
export interface SelfDown {
  readonly why: string;
}

/** Rule 2: may this node's singletons handle a message now? */
export interface HostGate {
  /** One clock read and one comparison. Always true with manual downing, or while this node hosts nothing. */
  open(): boolean;
  /** Called when the gate may have opened after having been found closed. */
  onOpen(run: () => void): Cancel;
}

export interface MembershipNode {
  readonly environment: Environment;
  readonly clusterName: string;
  readonly address: Address;
  readonly uid: string;
  readonly gate: HostGate;
  view(): MembershipView;
  /** `changes` is never empty. Called in its own step, after the view has changed. */
  onChange(listener: (view: MembershipView, changes: readonly MemberChange[]) => void): Cancel;
  /** Called synchronously, before anything else happens on this node. */
  onSelfDown(listener: (down: SelfDown) => void): Cancel;
  /** Replaces what this node's own record says about its singletons; pushed at once. Gate pings start with a non-empty `hosting`. */
  publish(change: { started?: ReadonlyMap<string, StartedRecord>; hosting?: ReadonlyMap<string, HostingClaim> }): void;
  /** Writes a cluster entry with a version above the present one. Any node may write; the higher (version, uid) wins everywhere. */
  writeEntry(key: string, value: unknown): void;
  /** One owner per code; `bytes` is the encoded size, about. Messages come from links whose peer is a member that is not removed, down or unknown. */
  onMessage(code: number, handler: (peer: PeerIdentity, envelope: Envelope, bytes: number) => void): Cancel;
  /** With `uid`: for that process only, never for a later one at the address. */
  sendSystem(address: Address, envelope: Envelope, uid?: string): void;
  /** Undefined when queued; `sized` is told its encoded size then. */
  sendUser(address: Address, envelope: Envelope, uid?: string, sized?: Sized): SendFailure | undefined;
  /** Runs `run` after the present callback, before what is queued for other nodes is sent: what it sends leaves with that. */
  beforeFlush(run: () => void): void;
  readonly messages: MessageCheck;
  congested(address: Address): boolean;
  /** There is a link to the process `uid` at `address`: what is sent to it now does not wait for one. */
  linked(address: Address, uid: string): boolean;
  /**
   * Runs when this node leaves, after it has become `leaving` and before it becomes `exiting`; the leave waits for `done`
   * (bounded by the leave timeout). Called at most once per registration.
   */
  onLeaving(task: (done: () => void) => void): Cancel;
  /** Resolves once this node is removed, or when the bound has passed. Idempotent. */
  leave(): Promise<void>;
  /** Operator override: marks the member down. */
  down(address: Address): DownOutcome;
}
