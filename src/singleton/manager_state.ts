/** States, events and effects of the singleton manager. Plain data; the transitions are in `manager.ts`. */
import type { StartedRecord } from '../cluster/member.ts';
import type { Address } from '../transport/contract.ts';
import type { Watermark } from './delivery_filter.ts';

export interface ManagerConfig {
  readonly handOverTimeoutMs: number;
  readonly handOverPolicy: 'host-anyway' | 'wait-for-removal';
  /** Unanswered hand-over requests are repeated this often. */
  readonly resendMs: number;
  readonly restartOnTermination: boolean;
  readonly restartBackoffMinMs: number;
  readonly restartBackoffMaxMs: number;
  /** Unexpected ends in a row, without a minute of health between, at which the singleton moves to the next host. */
  readonly moveAfterFailures: number;
  readonly stopTimeoutMs: number;
  readonly lease: boolean;
  readonly acquireRetryIntervalMs: number;
  /** A spread singleton that was never hosted waits so long after its start here, so that others can be drawn as well. */
  readonly drawAfterMs: number;
  /** How long the result of a hand-over is kept for whoever asks. */
  readonly keepResultMs: number;
}

/** What a planned stop leaves behind for the next host. */
export interface HandOverResult {
  /** Of the instance that ended. */
  readonly epoch: number;
  readonly plannedSince: number;
  readonly from: Address;
  readonly watermarks: readonly Watermark[];
  readonly state: Uint8Array | null;
  /** When the instance had ended, on the clock of the node that holds this record. */
  readonly endedAt: number;
  /** Nonces of attempts that it was offered to, and that may therefore have started from it. */
  readonly offeredTo: readonly string[];
  /** Nonces of attempts that whoever hands it over knows to be given up. */
  readonly givenUp: readonly string[];
}

/** One who asks this node to stand down. */
export interface Asker {
  readonly uid: string;
  readonly address: Address;
  readonly nonce: string;
}

export type ReplyKind = 'clear' | 'stopping' | 'refused';

export interface Attempt {
  readonly nonce: string;
  readonly startedAt: number;
  /** By uid. `clear`: no instance there, and none stopping. */
  readonly replies: ReadonlyMap<string, ReplyKind>;
  /** By uid: how often it has refused. */
  readonly refusals: ReadonlyMap<string, number>;
  /** uids asked at least once. */
  readonly asked: ReadonlySet<string>;
  /** By uid: when another member said last that it can reach it. */
  readonly reached: ReadonlyMap<string, number>;
  /** uids that have handed a result over in this attempt. */
  readonly custodians: ReadonlySet<string>;
  /** They were asked once more, since the result had been offered to somebody who has gone. */
  readonly doubted: boolean;
  /** How often those that gave no answer were asked again. */
  readonly repeats: number;
  /** How often the lease was not granted. */
  readonly denials: number;
  readonly timedOut: boolean;
}

export type InstanceState = 'starting' | 'running' | 'backing-off';

export type Phase =
  | { readonly kind: 'idle' | 'younger' | 'ended' }
  | { readonly kind: 'becoming-host'; readonly attempt: Attempt }
  | { readonly kind: 'acquiring-lease'; readonly attempt: Attempt }
  | {
    readonly kind: 'hosting' | 'was-host';
    readonly epoch: number;
    readonly plannedSince: number;
    readonly instance: InstanceState;
    /** When it began to run; undefined before. */
    readonly runningSince: number | undefined;
    /** Unexpected ends in a row, without a minute of health between. */
    readonly failures: number;
  }
  | {
    readonly kind: 'handing-over' | 'stopping';
    readonly epoch: number;
    readonly plannedSince: number;
    readonly asker: Asker | undefined;
    readonly why: StopCause;
  };

export type PhaseKind = Phase['kind'];

export type StopCause = 'hand-over' | 'stop-called' | 'leaving' | 'self-down' | 'lease-lost';

export interface ManagerState {
  readonly name: string;
  readonly selfUid: string;
  readonly selfAddress: Address;
  readonly config: ManagerConfig;
  readonly started: StartedRecord | undefined;
  readonly phase: Phase;
  /** Highest epoch heard of, proposed ones included. */
  readonly epochSeen: number;
  /** Highest epoch known to have started somewhere. */
  readonly epochStarted: number;
  /** Who hosted last, as far as this node has seen. */
  readonly lastHost: { readonly address: Address; readonly epoch: number } | undefined;
  /**
   * The result of the last instance, in this node's custody. It is used only while nobody can have started from it: every
   * process it was offered to has given up the attempt, or has confirmed in the present one that nothing runs there.
   */
  readonly kept: HandOverResult | undefined;
  /** Nonces of attempts of others that were given up, the latest last. */
  readonly givenUp: readonly string[];
  /** Set when an instance ended with `restartOnTermination: false`, or after too many failures: not here again until `start`. */
  readonly latched: boolean;
  /** After too many failures: other nodes are told that this one cannot host, for a while. */
  readonly withdrawn: boolean;
  readonly leaving: boolean;
  /** From its start until the draw: this node is no candidate of the first draw yet. */
  readonly awaitsDraw: boolean;
  /** Attempts made, for nonces. */
  readonly attempts: number;
}

export type Verdict =
  | { readonly kind: 'not-hosting' }
  | { readonly kind: 'stopping' }
  | { readonly kind: 'handed-over'; readonly result: HandOverResult }
  | { readonly kind: 'refused'; readonly why: string };

export type ManagerEvent =
  | { readonly kind: 'view' }
  | { readonly kind: 'start'; readonly record: StartedRecord; readonly config: ManagerConfig }
  | { readonly kind: 'stop' }
  | { readonly kind: 'leave' }
  | { readonly kind: 'self-down'; readonly why: string }
  | { readonly kind: 'request'; readonly asker: Asker; readonly epoch: number }
  /** Another member can reach this one. */
  | { readonly kind: 'reached'; readonly uid: string }
  /** The asker has given up the attempt: what it was offered, it will not use. */
  | { readonly kind: 'withdrawn'; readonly uid: string; readonly nonce: string }
  | {
    readonly kind: 'answer';
    readonly uid: string;
    readonly nonce: string;
    readonly epochSeen: number;
    readonly epochStarted: number;
    readonly verdict: Verdict;
  }
  /** Another node says it hosts under this epoch. */
  | { readonly kind: 'hosted-elsewhere'; readonly address: Address; readonly epoch: number }
  | { readonly kind: 'instance-started'; readonly epoch: number }
  | {
    readonly kind: 'instance-ended';
    readonly epoch: number;
    readonly cause: 'planned' | 'died';
    readonly watermarks: readonly Watermark[];
    readonly state: Uint8Array | null;
  }
  /** `previous`: the token of the tenure right before, if known; only with it can a result in custody be used. */
  | { readonly kind: 'lease-granted'; readonly token: number; readonly previous?: number }
  | { readonly kind: 'lease-denied'; readonly retryInMs: number; readonly why: string }
  | { readonly kind: 'lease-lost'; readonly why: string }
  | { readonly kind: 'timer'; readonly timer: TimerName };

export type TimerName = 'resend' | 'hand-over-timeout' | 'restart' | 'acquire' | 'stop-timeout' | 'kept' | 'draw';

export interface HandOverReport {
  /** Undefined at the first start, and where this node has not seen who hosted before. */
  readonly from: Address | undefined;
  readonly reason: 'first-start' | 'planned' | 'crash' | 'restart';
  /** From the end of the old instance to the start of this one, as far as this node knows. */
  readonly gapMs: number | undefined;
  readonly durationMs: number;
}

/** A member as one process: a later one at its address is somebody else. */
export interface Recipient {
  readonly uid: string;
  readonly address: Address;
}

export type ManagerEffect =
  | {
    readonly kind: 'request';
    readonly to: Recipient;
    readonly nonce: string;
    readonly epoch: number;
    /** Through this member as well, since nothing has come back so far. */
    readonly via: Recipient | undefined;
  }
  | { readonly kind: 'withdraw'; readonly to: Recipient; readonly nonce: string }
  | { readonly kind: 'answer'; readonly to: Asker; readonly verdict: Verdict }
  | {
    readonly kind: 'start-instance';
    readonly epoch: number;
    readonly plannedSince: number;
    readonly previous: HandOverResult | undefined;
    /** True when this very node restarts its instance: the duplicate filter in memory stays. */
    readonly keepFilter: boolean;
    readonly report: HandOverReport;
  }
  | { readonly kind: 'stop-instance'; readonly epoch: number; readonly collect: boolean }
  | { readonly kind: 'kill-instance'; readonly epoch: number }
  /** It is spread, and from now on it is here: the cluster's record of its place is out of date. */
  | { readonly kind: 'take-place' }
  | { readonly kind: 'set-timer'; readonly timer: TimerName; readonly ms: number; readonly jitter?: number }
  | { readonly kind: 'clear-timer'; readonly timer: TimerName }
  /** `above`: the highest epoch that any member knows of. */
  | { readonly kind: 'acquire-lease'; readonly above: number }
  /** `useless`: it was granted, and this is why nothing can be done with it. */
  | { readonly kind: 'release-lease'; readonly useless?: string }
  /** Nothing of this singleton runs or is owed on this node any more: the leave may go on. */
  | { readonly kind: 'leave-done' }
  | { readonly kind: 'hosted-anyway'; readonly silent: readonly Address[] }
  | {
    readonly kind: 'log';
    readonly level: 'info' | 'warn';
    readonly message: string;
    readonly fields?: Readonly<Record<string, unknown>>;
  };

export interface Step {
  readonly state: ManagerState;
  readonly effects: readonly ManagerEffect[];
}
