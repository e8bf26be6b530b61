/** What a node in search of its cluster knows, and what can happen to it. See `seeding.ts`. */
import { isLoopbackAddress } from '../transport/address.ts';
import type { Address, DialFailure, PeerIdentity, SeedAnswer } from '../transport/contract.ts';
import type { SelfElection } from './cluster_options.ts';
import type { MemberRecord } from './gossip_state.ts';

export interface SeedingSettings {
  readonly selfAddress: Address;
  readonly selfUid: string;
  readonly seeds: readonly string[];
  readonly selfElection: SelfElection;
  readonly clusterName: string;
  readonly protocol: number;
  readonly fingerprint: string;
  /** Addresses that are asked as well, but have no part in pledges: where this process's last cluster may still live. */
  readonly witnesses?: readonly Address[];
  /**
   * May a cluster be founded while exactly `present` (this node included) answer and are in none? `gone`: addresses where
   * certainly no process listens. Default: always.
   */
  readonly mayFound?: (present: ReadonlySet<Address>, gone: ReadonlySet<Address>) => boolean;
}

/** Milliseconds. */
export const seedingTimes = {
  firstRetry: 100,
  /** Retries stay this close together in the first seconds. */
  eager: 5_000,
  eagerRetry: 250,
  lastRetry: 2_000,
  /** How long a pledge binds who gave it; the candidate counts on a little less. */
  pledge: 3_000,
  pledgeUsable: 2_900,
  /**
   * Nobody founds a cluster with others sooner after its start: a living cluster whose members are not in the list looks for
   * missing seeds more often than that (`heal_watch.ts`), and invites them.
   */
  listenFirst: 400,
  /** How long a candidate waits for the answers before it asks the seeds again. */
  pledgeWait: 500,
  joinRetry: 300,
  joinGiveUp: 3_000,
} as const;

export type SeedOutcome =
  | { readonly kind: 'self' }
  | { readonly kind: 'silent'; readonly why: string; readonly refused: boolean }
  | { readonly kind: 'mismatch'; readonly why: string }
  | { readonly kind: 'alone'; readonly answer: SeedAnswer }
  | { readonly kind: 'clustered'; readonly answer: SeedAnswer };

export interface Seeding {
  readonly settings: SeedingSettings;
  readonly startedAt: number;
  readonly round: number;
  readonly pending: ReadonlySet<string>;
  readonly outcomes: ReadonlyMap<string, SeedOutcome>;
  /** Whom this node has pledged to follow, and until when. */
  readonly pledged: { readonly uid: string; readonly address: Address; readonly until: number } | undefined;
  readonly candidacy: Candidacy | undefined;
  readonly joining: Joining | undefined;
  readonly nextRoundAt: number;
  /** Mismatches and refusals explained once. */
  readonly explained: ReadonlySet<string>;
  readonly refusal: string | undefined;
}

export interface Candidacy {
  readonly nonce: number;
  readonly sentAt: number;
  readonly pledges: ReadonlyMap<string, MemberRecord>;
}

export interface Joining {
  readonly targets: readonly Address[];
  readonly attempt: number;
  readonly nextAt: number;
  readonly giveUpAt: number;
}

export type SeedingEvent =
  | { readonly kind: 'tick' }
  | { readonly kind: 'answer'; readonly seed: string; readonly outcome: SeedAnswer | DialFailure }
  | { readonly kind: 'pledge-request'; readonly from: PeerIdentity; readonly nonce: number }
  | {
    readonly kind: 'pledge-answer';
    readonly from: PeerIdentity;
    readonly nonce: number;
    readonly pledge: MemberRecord | undefined;
  }
  | { readonly kind: 'join-refused'; readonly from: Pick<PeerIdentity, 'address'>; readonly why: string }
  /** A member of a cluster has found this node. */
  | { readonly kind: 'invited'; readonly from: PeerIdentity };

export type SeedingEffect =
  | { readonly kind: 'ask'; readonly seed: string }
  | { readonly kind: 'request-pledge'; readonly to: Address; readonly nonce: number }
  | { readonly kind: 'answer-pledge'; readonly to: Address; readonly nonce: number; readonly granted: boolean }
  | { readonly kind: 'join'; readonly to: Address }
  | { readonly kind: 'form'; readonly founders: readonly MemberRecord[]; readonly overridden: boolean }
  | { readonly kind: 'warn'; readonly text: string }
  | { readonly kind: 'wake'; readonly at: number };

export interface SeedingStep {
  readonly state: Seeding;
  readonly effects: readonly SeedingEffect[];
}

export function isListed(state: Seeding): boolean {
  return state.settings.seeds.some((seed) => state.outcomes.get(seed)?.kind === 'self');
}

/** Will this node ever found a cluster? True as long as it does not know whether one of its seeds is itself. */
export function founds(state: Seeding): boolean {
  const { seeds, selfElection } = state.settings;
  if (selfElection !== 'cold-start') return selfElection !== 'never';
  return isListed(state) || seeds.length === 0 || seeds.some((seed) => !state.outcomes.has(seed));
}

/** Addresses that refuse connections, where a refusal proves that nobody listens there. */
function goneAddresses(state: Seeding): Set<Address> {
  const gone = new Set<Address>();
  for (const [seed, outcome] of state.outcomes) {
    if (outcome.kind === 'silent' && outcome.refused && isLoopbackAddress(seed)) gone.add(seed);
  }
  return gone;
}

/** As far as this node knows, and with `others` there as well: could no cluster be alive that it must not rival? */
export function mayFound(state: Seeding, others: readonly Address[] = []): boolean {
  const { settings } = state;
  if (settings.mayFound === undefined) return true;
  const present = new Set([settings.selfAddress, ...others, ...answersAlone(state).map(({ address }) => address)]);
  return settings.mayFound(present, goneAddresses(state));
}

/** Distinct nodes that answered and are in no cluster yet, witnesses included. */
function answersAlone(state: Seeding): SeedAnswer[] {
  return aloneAt(state, state.outcomes.keys());
}

/** The same, of the seed list only. */
export function listedAlone(state: Seeding): SeedAnswer[] {
  return aloneAt(state, state.settings.seeds);
}

function aloneAt(state: Seeding, seeds: Iterable<string>): SeedAnswer[] {
  const answers = new Map<string, SeedAnswer>();
  for (const seed of seeds) {
    const outcome = state.outcomes.get(seed);
    if (outcome?.kind === 'alone') answers.set(outcome.answer.uid, outcome.answer);
  }
  return [...answers.values()];
}

export function majorityOf(seeds: readonly string[]): number {
  return Math.floor(seeds.length / 2) + 1;
}
