/**
 * What the HTTP app asks a node. Plain data, ready for JSON (`null` where there is nothing); answers are synchronous and
 * describe this node's own view at this moment. Only operations take time.
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { DownOutcome } from '../cluster/contract.ts';
import type { MemberStatus } from '../cluster/member.ts';
import type { Address, SeedAnswer } from '../transport/contract.ts';

/** A member, as `/cluster/members` shows it. */
export interface MemberReport {
  readonly address: Address;
  readonly uid: string;
  readonly status: MemberStatus;
  readonly roles: readonly string[];
  /** Age: smaller is older; 0 before promotion to `up`. */
  readonly upNumber: number;
  readonly reachable: boolean;
  readonly runtime: string;
  readonly appVersion: string;
}

/** The answer of `/cluster/members`. */
export interface MembersReport {
  readonly self: Address;
  readonly leader: Address | null;
  /** In age order, without removed ones. */
  readonly members: readonly MemberReport[];
}

/** How a singleton came to its present host. */
export interface HandOverReport {
  readonly from: Address | null;
  readonly to: Address;
  /** From the request to stand down until the instance ran; `null` when this node did not take part. */
  readonly durationMs: number | null;
  /** Without an instance, as far as the new host knows; `null` after a crash. */
  readonly gapMs: number | null;
  /** Of the instance that it led to. */
  readonly epoch: number;
  /** The verdict and what led to it: 'first start', 'planned: leave', 'crash', … */
  readonly reason: string;
  /** Wall clock, milliseconds, for people. */
  readonly at: number;
}

/** A singleton, as `/cluster/singletons` shows it. */
export interface SingletonReport {
  readonly name: string;
  /** Of a singleton registered by `spawn`; left out for others. */
  readonly kind?: string;
  readonly role: string | null;
  /** `null` while nobody hosts it in this node's view. */
  readonly host: Address | null;
  /** State of this node's manager; 'reference' when this node has only a ref. */
  readonly state: string;
  readonly epoch: number | null;
  /** Wall clock, milliseconds: since when the present host hosts it. */
  readonly since: number | null;
  readonly lastHandOver: HandOverReport | null;
  /** What keeps it from being hosted, in a sentence ('no member has started it', …). */
  readonly problem: string | null;
  /** An instance runs on this node: whatever this node's view says, it is its own. */
  readonly active: boolean;
  /** Messages told on this node so far. Only grows. */
  readonly told: number;
  /** Messages that instances on this node have handled so far. Only grows. */
  readonly handled: number;
  /** Messages of this node that wait for a host or for their acknowledgement. */
  readonly buffered: number;
}

/** This node's end of a singleton's lease. */
export interface LeaseDetail {
  readonly state: 'free' | 'acquiring' | 'held' | 'releasing';
  /** The epoch of the instance; `null` while it is not held. */
  readonly token: number | null;
  /** Until its end as this node counts it, unless it is renewed. */
  readonly remainingMs: number;
  /** Why it could not be had the last time. */
  readonly problem: string | null;
  readonly counters: Readonly<Record<string, number>>;
}

/** The answer of `/cluster/singletons/:name`. */
export interface SingletonDetail extends SingletonReport {
  /** Left out when this node asks for none. */
  readonly lease?: LeaseDetail;
  /** Members that have started it, oldest first: who may host it next. */
  readonly startedOn: readonly Address[];
  /** Where an operator's move holds it. */
  readonly pinnedTo: Address | null;
  /** About the size of the buffered messages. */
  readonly bufferedBytes: number;
  /** Of the instance on this node: accepted messages that are not handled yet, and about their size. */
  readonly held: number;
  readonly heldBytes: number;
  /**
   * What became of the messages told on this node: told = acknowledged + deadLettered + outcomeUnknown + buffered, and
   * whatever else is counted. All only grow.
   */
  readonly counters: Readonly<Record<string, number>>;
}

/** The answer of `/ready`: 200 when ready, else 503. */
export interface Readiness {
  readonly ready: boolean;
  /** What is missing, each a sentence. Another node's absence is never a reason. */
  readonly reasons: readonly string[];
}

/** One sample of a metric; those of one name share `help` and `type`. Names follow Prometheus' rules. */
export interface MetricSample {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** What an `InspectionEvent` tells of; also the name of the event in the stream. */
export type InspectionEventKind =
  | 'self-up'
  | 'self-removed'
  | 'member-joined'
  | 'member-up'
  | 'member-left'
  | 'member-down'
  | 'member-removed'
  | 'member-unreachable'
  | 'member-reachable'
  | 'leader-changed'
  | 'singleton-hosted'
  | 'singleton-stopped'
  | 'hand-over'
  | 'operation'
  | 'warning';

/** One line of `/cluster/events`. Fields that do not apply to its kind are left out. */
export interface InspectionEvent {
  readonly kind: InspectionEventKind;
  /** Wall clock, milliseconds, for people. */
  readonly at: number;
  /** A sentence for people. */
  readonly text: string;
  /** The member it is about. */
  readonly address?: Address;
  /** The singleton it is about. */
  readonly singleton?: string;
  readonly epoch?: number;
  /** Of a singleton that moved: its host before, why, and how long nobody ran, as far as this node knows. */
  readonly from?: Address;
  readonly reason?: string;
  readonly gapMs?: number;
}

/** `refused` is the answer to a request that makes sense but cannot be done now, or not with this target. */
export type MoveOutcome =
  | { readonly kind: 'moved'; readonly from: Address | null; readonly to: Address }
  | { readonly kind: 'unknown-singleton' }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string };

/** What a rebalance moves, or why it is refused now. */
export type RebalanceOutcome =
  | { readonly kind: 'moved'; readonly moves: readonly { readonly singleton: string; readonly to: Address }[] }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string };

/** Who was told of the full shutdown: all members; or who does not know yet. */
export type ShutdownOutcome =
  | { readonly kind: 'prepared'; readonly members: readonly Address[] }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string };

/** What the HTTP app shows and operates: a node, or something that looks like one. */
export interface ClusterInspection {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  /** Bearer token for operations; undefined switches them off. */
  readonly token: string | undefined;
  /**
   * 'open': everybody who reaches the port may read (default). 'token': members, singletons, events and metrics need the
   * token too, and `/cluster/seed` and `/ready` answer without addresses and details.
   */
  readonly reads?: 'open' | 'token';
  seed(): SeedAnswer;
  /** The durations that safety rests on, in milliseconds (see `describeTiming`). */
  timing(): Readonly<Record<string, number>>;
  readiness(): Readiness;
  members(): MembersReport;
  singletons(): readonly SingletonReport[];
  singleton(name: string): SingletonDetail | undefined;
  /** Everything countable that the reports above do not hold: mailboxes, dead letters, frames, reached limits, … */
  metrics(): readonly MetricSample[];
  subscribe(listener: (event: InspectionEvent) => void): Cancel;
  /** Resolves once this node is out of the cluster. */
  leave(): Promise<void>;
  down(address: Address): DownOutcome;
  /** Puts spread singletons where they would be if they started now. */
  rebalance(): Promise<RebalanceOutcome>;
  /** Every member goes on with what it hosts and begins nothing, until `cancel`. */
  prepareShutdown(): Promise<ShutdownOutcome>;
  /** False when no full shutdown was prepared. */
  cancelShutdown(): boolean;
  /** Hands a singleton over to `to`, or to the next eligible member, and holds it there. */
  move(name: string, to: Address | undefined): Promise<MoveOutcome>;
}
