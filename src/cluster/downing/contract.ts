/** Split-brain strategies are pure: a settled view in, who goes out. */
import type { LeaseFactory } from '../../coordination/lease.ts';
import type { Member } from '../member.ts';
import type { Timing } from '../timing.ts';

/** What one side of a split knows of it. */
export interface SplitSituation {
  /** Every member that is not removed, in age order, those already `down` included. */
  readonly members: readonly Member[];
  /** uids that this side cannot reach, by the merged reachability. Down members may be among them. */
  readonly unreachable: ReadonlySet<string>;
  /**
   * uids of this side at both ends of a link that is broken inside it: their peer cannot see them, others can. They count
   * as part of the side when it is weighed, and go out even if it wins, since what they see cannot be trusted to be what
   * the side sees. Beats `unreachable`. Default: none.
   */
  readonly indirectlyConnected?: ReadonlySet<string>;
  readonly selfUid: string;
  /** For strategies with an arbiter: what has become of this side's claim; undefined while that is open. */
  readonly claim?: ClaimOutcome | undefined;
}

/** `granted`: the arbiter lets this side go on, and no other. `lost`: it does not, or nothing was known in time. */
export type ClaimOutcome = 'granted' | 'lost';

/** uids to mark down. Contains the deciding node itself when its side loses. Empty: nothing to do. */
export type DowningDecision = ReadonlySet<string>;

/** A lease outside of all sides that decides which one of them goes on. How it works is said at `LeaseMajority`. */
export interface SplitArbiter {
  readonly lease: LeaseFactory;
  /** Of the lease; the same on all nodes. Undefined: from the name of the cluster. */
  readonly leaseName: string | undefined;
  /** How much later than the side that leads the others ask. */
  readonly minorityDelayMs: number;
  /** How long a side goes on asking. */
  readonly acquireTimeoutMs: number;
  /** May this side ask at once? True for at most one of several sides that have no member in common. */
  leads(members: readonly Member[], side: ReadonlySet<string>): boolean;
  /** @throws OptionsError when the durations do not go together */
  times(timing: Timing): ClaimTimes;
}

/** All in milliseconds. */
export interface ClaimTimes {
  /** A side may claim only while it has heard from every member, of all sides, within this. */
  readonly windowMs: number;
  /** For so long after a claim nobody else can have the lease. */
  readonly holdMs: number;
  /** Of the lease. */
  readonly ttlMs: number;
}

/** Decides, from one side of a split, who goes on. Give an instance to `ClusterOptions.downing`. */
export interface DowningStrategy {
  readonly name: string;
  /** Plain values that all nodes must agree on; part of the join fingerprint. */
  readonly parameters?: Readonly<Record<string, string | number | boolean>>;
  /** False: nothing ever loses by itself, so there is nothing for the host gate to check. Default true. */
  readonly gated?: boolean;
  /** Nobody goes on after a split unless it lets them. Default: none, `decide` alone tells. */
  readonly arbiter?: SplitArbiter;
  /** Pure and deterministic; the same on every node of a side. */
  decide(situation: SplitSituation): DowningDecision;
  /**
   * Would the side made of exactly `side` (uids, self included) be kept, under every completion of pending joining→up and
   * leaving/exiting→removed steps (rule 3)? Used by `decide` and by the host gate (rule 2). Adding uids to a side that is
   * kept never makes it lose.
   */
  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean;
  /** What is unwise about this strategy for these members, as a sentence for the log. */
  warning?(members: readonly Member[]): string | undefined;
}
