/** This node's end of the arbiter of splits: owns its lease, feeds the claim machine, and carries out what that asks for. */
import { OptionsError } from '../actor/options.ts';
import { checkLeaseOwner, type Lease, type LeaseContext } from '../coordination/lease.ts';
import { Alarm } from './alarm.ts';
import {
  type ClaimAnswer,
  type ClaimEvent,
  type ClaimRules,
  type ClaimState,
  noClaim,
  outcomeOf,
  stepClaim,
} from './downing/claim.ts';
import type { ClaimOutcome, SplitArbiter, SplitSituation } from './downing/contract.ts';
import { claimantOf } from './downing/lease_majority.ts';
import type { Member } from './member.ts';
import type { NodeContext } from './node_context.ts';
import { isActive } from './transitions.ts';

/** For health and metrics. */
export interface ClaimReport {
  readonly state: ClaimState['phase'];
  /** Why the lease could not be asked for the last time; undefined while there is no such trouble. */
  readonly problem: string | undefined;
}

export class Claimant {
  readonly #node: NodeContext;
  readonly #arbiter: SplitArbiter;
  readonly #rules: ClaimRules;
  readonly #lease: Lease;
  readonly #silenceMs: () => number;
  readonly #wake: Alarm;
  #state: ClaimState = noClaim;
  #situation: SplitSituation | undefined;
  #problem: string | undefined;
  /** Members taken out by a claim whose lease still stands, and until when it does. */
  #takenOut: readonly Member[] = [];
  #standsUntil = -Infinity;
  /** Requests of this node to its lease, so that one that another has replaced is not reported. */
  #turn = 0;

  /**
   * @param look called when the claim may have come to something
   * @throws OptionsError when the lease is too short for the cluster's durations
   */
  constructor(node: NodeContext, arbiter: SplitArbiter, silenceMs: () => number, look: () => void) {
    const { timing, uid, clusterName } = node.settings;
    const { windowMs, holdMs, ttlMs } = arbiter.times(timing);
    const { minorityDelayMs, acquireTimeoutMs } = arbiter;
    this.#node = node;
    this.#arbiter = arbiter;
    this.#rules = { minorityDelayMs, acquireTimeoutMs, windowMs, holdMs };
    this.#silenceMs = silenceMs;
    this.#lease = leaseOf(arbiter, {
      name: arbiter.leaseName ?? `${clusterName}-downing`,
      owner: `${node.address}#${uid}`,
      environment: node.environment,
      driftBound: timing.driftBound,
      ttlMs,
    }, uid);
    if (this.#lease.ttlMs < ttlMs) {
      const rule = `must have a ttlMs of at least ${ttlMs} with these durations, or none, which takes that`;
      throw new OptionsError('LeaseMajority', 'lease', this.#lease.ttlMs, rule);
    }
    this.#wake = new Alarm(node.environment, look);
  }

  report(): ClaimReport {
    return { state: this.#state.phase, problem: this.#problem };
  }

  /** The split is the same as it was for long enough: what has become of the claim? Undefined while it is open. */
  settled(situation: SplitSituation): ClaimOutcome | undefined {
    this.#situation = situation;
    const { phase } = this.#state;
    this.#feed({ kind: 'settled', view: this.#view(situation) });
    if (phase === 'none') this.#announce(situation);
    return outcomeOf(this.#state);
  }

  /** There is no split, or it keeps changing. */
  unsettled(): void {
    this.#situation = undefined;
    if (this.#state.phase !== 'none') this.#feed({ kind: 'unsettled' });
  }

  /** These were taken out by the claim. The lease is kept until its term ends by itself, or they are known to be gone. */
  used(takenOut: readonly Member[]): void {
    this.#feed({ kind: 'used' });
    this.#takenOut = [...this.#takenOut, ...takenOut];
    this.#standsUntil = this.#node.environment.clock.now() + this.#lease.ttlMs;
    this.#lease.abandon();
  }

  /** Whoever was taken out and serves its address as a new member, or is proven dead, has ended: then nobody need wait. */
  refresh(): void {
    if (this.#takenOut.length === 0 || this.#state.phase !== 'none') return;
    if (this.#node.environment.clock.now() >= this.#standsUntil) return void (this.#takenOut = []);
    const { members } = this.#node.view();
    const gone = ({ address, uid }: Member): boolean =>
      members.some((member) =>
        (member.uid === uid && member.terminated) ||
        (member.uid !== uid && member.address === address && member.status === 'up')
      );
    if (!this.#takenOut.every(gone)) return;
    this.#takenOut = [];
    this.#giveBack();
  }

  /** The node ends. What it has not used goes back. */
  stop(): void {
    this.#wake.stop();
    this.unsettled();
  }

  why(): string {
    return this.#state.phase === 'granted' ? 'the lease was granted' : this.#state.why ?? 'no reason is known';
  }

  #view(situation: SplitSituation) {
    const { members, unreachable, selfUid } = situation;
    const side = new Set(
      members.filter(({ uid, status }) => isActive(status) && !unreachable.has(uid)).map(({ uid }) => uid),
    );
    return {
      asks: claimantOf(situation) === selfUid,
      leads: this.#arbiter.leads(members, side),
      silenceMs: this.#silenceMs(),
      heldUntil: this.#lease.deadline,
    };
  }

  #feed(event: ClaimEvent): ClaimState {
    const { environment } = this.#node;
    const { state, effects } = stepClaim(this.#state, event, this.#rules, environment.clock.now());
    this.#state = state;
    if (state.phase === 'none') {
      this.#wake.cancel();
      this.#problem = undefined;
    }
    for (const effect of effects) {
      switch (effect.kind) {
        case 'ask':
          void this.#ask(effect.request);
          break;
        case 'give-back':
          this.#giveBack();
          break;
        case 'wake':
          this.#wake.at(effect.at);
          break;
        default:
          effect satisfies never;
      }
    }
    return state;
  }

  async #ask(request: number): Promise<void> {
    this.#node.count('downing lease asked');
    this.#turn += 1;
    let answer: ClaimAnswer;
    try {
      // What this node may still have from a claim before is replaced by a new term.
      this.#lease.abandon();
      answer = await this.#lease.acquire() ? { kind: 'granted' } : { kind: 'denied', retryInMs: this.#lease.retryInMs };
    } catch (error) {
      answer = { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
    }
    const situation = this.#situation;
    if (request !== this.#state.request || situation === undefined || this.#state.phase !== 'asking') return;
    this.#node.count(`downing lease ${answer.kind}`);
    this.#note(answer);
    const { phase, askAt } = this.#feed({ kind: 'answer', request, answer, view: this.#view(situation) });
    // What it has come to is looked at in a turn of its own, like everything that changes the membership.
    this.#wake.at(phase === 'open' ? askAt : this.#node.environment.clock.now());
  }

  #giveBack(): void {
    const turn = this.#turn += 1;
    this.#lease.release().catch((error: unknown) => {
      if (turn !== this.#turn) return;
      const why = error instanceof Error ? error.message : String(error);
      this.#node.environment.log.warn('downing lease: others wait for the end of its term', { why });
    });
  }

  #announce({ members, unreachable }: SplitSituation): void {
    const { asks, leads } = this.#state;
    const lost = members.filter(({ uid, status }) => isActive(status) && unreachable.has(uid));
    this.#node.environment.log.warn('a split is to be decided by the downing lease', {
      lost: lost.map(({ address }) => address),
      asks,
      after: leads ? 'at once' : `${this.#rules.minorityDelayMs} ms`,
    });
  }

  /** One line when the trouble begins and one when it is over, however often it is tried in between. */
  #note(answer: ClaimAnswer): void {
    const { log } = this.#node.environment;
    if (answer.kind === 'failed') {
      if (this.#problem === undefined) {
        log.warn('the downing lease cannot be asked for; it is tried again', { why: answer.why });
      }
      this.#problem = answer.why;
    } else {
      if (this.#problem !== undefined) log.info('the downing lease answers again');
      this.#problem = undefined;
    }
  }
}

function leaseOf(arbiter: SplitArbiter, context: LeaseContext, uid: string): Lease {
  try {
    return checkLeaseOwner('LeaseMajority', arbiter.lease(context), uid);
  } catch (error) {
    // The only one that asks for the cluster's own voters, which are not given here.
    if (!(error instanceof OptionsError) || error.field !== 'leaseVoters') throw error;
    const rule = 'must have its backend outside of the cluster: the voters of a QuorumLease are the members themselves';
    throw new OptionsError('LeaseMajority', 'lease', 'QuorumLease', rule);
  }
}
