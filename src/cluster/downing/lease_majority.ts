import { checkOptions, OptionsError, type Rules, rules } from '../../actor/options.ts';
import type { LeaseFactory } from '../../coordination/lease.ts';
import { limits } from '../../limits.ts';
import type { Member } from '../member.ts';
import { stableAfterMs, type Timing, unstableFactor } from '../timing.ts';
import type { ClaimTimes, DowningDecision, DowningStrategy, SplitArbiter, SplitSituation } from './contract.ts';
import { roleRule } from './rules.ts';
import { counts, decideBy, weigh, withRole } from './weigh.ts';

/** Options of `LeaseMajority`. */
export interface LeaseMajorityOptions {
  /** `EtcdLease.factory({ endpoints })` and so on; not the quorum lease, whose voters are the members themselves. */
  readonly lease: LeaseFactory;
  /** The name of the lease, the same on every node and of no other cluster. Default: the cluster's name and `-downing`. */
  readonly leaseName?: string;
  /**
   * How much later than the side with the majority another one asks. The majority's hosts go on for as long without an
   * answer of the others. Default 5 000 ms.
   */
  readonly minorityDelayMs?: number;
  /** A side that has not got the lease within this gives up. Default 5 000 ms. */
  readonly acquireTimeoutMs?: number;
  /** Only members with this role count for the majority. Default: all. */
  readonly role?: string;
}

const family = 'LeaseMajority';

/** Each node pings every member at least this often, so that it knows since when one has been silent. */
export const heardEveryMs = 1_000;

/** A claim has reached the members of its own side by gossip, or they cannot be reached at all. */
const gossipReserveMs = 3_000;
const windowReserveMs = 1_000;

const optionRules: Rules<LeaseMajorityOptions> = {
  lease: rules.function,
  leaseName: rules.text(limits.typeNameChars),
  minorityDelayMs: rules.durationMs(0),
  acquireTimeoutMs: rules.durationMs(100),
  role: roleRule,
};

/**
 * The side that gets a lease goes on, every other one goes: so exactly one of two halves lives, also of two members, and a
 * small side does where the large one is gone or cut off from the lease's backend. The side with the majority (by weight as
 * in `KeepMajority`: a tie goes to the oldest's) asks at once, others after `minorityDelayMs`. The oldest member of a side
 * asks for it; denied or without an answer for `acquireTimeoutMs`, it goes, and the next one asks. After the lease strategy
 * of Akka's split brain resolver, with these differences:
 *
 * - Nobody goes on without the lease, the majority neither. Until it is granted, a host handles messages only while every
 *   member answers, or, on the side of the majority, for `minorityDelayMs` after the last answer of the one that has been
 *   silent longest; those of other sides do not answer once they see the split, so no minority can have asked by then.
 * - A claim is good only while every member has been heard within a window. One who has claimed answers nobody it took out.
 *   The lease is not given back before that window has passed, however the winner fares: so a side that comes later, after a
 *   pause, say, finds the lease held, or its window over.
 * - A grant that comes too late for that is refused and given back. Whoever loses takes out nobody but itself.
 *
 * Why two sides never both go on: let the later one claim at T2, and the earlier have claimed at T1. The later had heard the
 * earlier's claimant at T1 at the latest, so T2 ≤ T1 + window. The lease was held by the earlier until T1 + hold at least,
 * and hold is more than window, drift included.
 *
 * The price: a claim that follows another within the term of the lease, made by another member, is denied, unless those who
 * were taken out are known to be gone; its side goes then, too, and all come back as after `DownAll`.
 */
export class LeaseMajority implements DowningStrategy {
  readonly name = 'lease-majority';
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly arbiter: SplitArbiter;
  readonly #role: string | undefined;

  /** @throws OptionsError */
  constructor(options: LeaseMajorityOptions) {
    checkOptions(family, options, optionRules);
    const { lease, leaseName, minorityDelayMs = 5_000, acquireTimeoutMs = 5_000, role } = options;
    if (lease === undefined) throw new OptionsError(family, 'lease', lease, 'must be given');
    this.#role = role;
    this.parameters = {
      minorityDelayMs,
      acquireTimeoutMs,
      ...(leaseName === undefined ? {} : { leaseName }),
      ...(role === undefined ? {} : { role }),
    };
    this.arbiter = {
      lease,
      leaseName,
      minorityDelayMs,
      acquireTimeoutMs,
      leads: (members, side) => this.#leads(members, side),
      times: (timing) => claimTimes(timing, minorityDelayMs, acquireTimeoutMs),
    };
  }

  decide(situation: SplitSituation): DowningDecision {
    const { claim, selfUid } = situation;
    switch (claim) {
      case undefined:
        return new Set();
      case 'granted':
        return decideBy(situation, () => 'kept');
      case 'lost':
        // Not its side: only whoever was claimed against, or says so itself, is known to have ended.
        return new Set([selfUid]);
      default:
        return claim satisfies never;
    }
  }

  /** Only the whole is kept without a claim. Whoever is down was taken out by one, said so itself, or is proven dead. */
  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    return members.every((member) => member.status === 'down' || member.status === 'removed' || side.has(member.uid));
  }

  #leads(members: readonly Member[], side: ReadonlySet<string>): boolean {
    const { least, others, oldestAtWorst } = weigh(withRole(members, this.#role), side);
    return least > others || (least === others && oldestAtWorst);
  }
}

function claimTimes(timing: Timing, minorityDelayMs: number, acquireTimeoutMs: number): ClaimTimes {
  const { detectionMs, driftBound, gatePingMs } = timing;
  const settledMs = unstableFactor * stableAfterMs(timing, Infinity);
  const pingMs = Math.max(heardEveryMs, gatePingMs);
  const windowMs = pingMs + detectionMs + settledMs + minorityDelayMs + acquireTimeoutMs + windowReserveMs;
  const holdMs = Math.ceil(windowMs * (1 + 2 * driftBound)) + gossipReserveMs;
  return { windowMs, holdMs, ttlMs: Math.ceil((holdMs + acquireTimeoutMs) / (1 - driftBound)) };
}

/** The oldest member of a side that does not go in any case asks for it. */
export function claimantOf(situation: SplitSituation): string | undefined {
  const { members, unreachable, indirectlyConnected } = situation;
  return members.find((member) =>
    member.status !== 'down' && counts(member) && !unreachable.has(member.uid) &&
    indirectlyConnected?.has(member.uid) !== true
  )?.uid;
}
