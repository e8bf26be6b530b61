import { checkOptions, OptionsError, type Rules } from '../../actor/options.ts';
import type { Address } from '../../transport/contract.ts';
import type { Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { addressRule, quorumRule } from './rules.ts';
import { counts, decideBy, holdsAll, mayGo, weigh } from './weigh.ts';

/** Options of `KeepReferee`. */
export interface KeepRefereeOptions {
  /** `host:port` that the referee advertises. */
  readonly refereeAddress: Address;
  /** The referee's side is downed as well when it has fewer members that count than this. Default 1. */
  readonly downAllIfBelowQuorum?: number;
}

const optionRules: Rules<KeepRefereeOptions> = { refereeAddress: addressRule, downAllIfBelowQuorum: quorumRule };

/**
 * The side with the referee is kept. While no member at that address counts (it has not joined, is not up yet, or is
 * down) nothing is decided: hosts that cannot reach everybody pause until the referee is there or an operator decides.
 * Without its referee a cluster goes down as a whole, so this is for nodes around one that they are useless without.
 */
export class KeepReferee implements DowningStrategy {
  readonly name = 'keep-referee';
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly #address: Address;
  readonly #quorum: number;

  /** @throws OptionsError */
  constructor(options: KeepRefereeOptions) {
    checkOptions('KeepReferee', options, optionRules);
    const { refereeAddress, downAllIfBelowQuorum = 1 } = options;
    if (refereeAddress === undefined) {
      throw new OptionsError('KeepReferee', 'refereeAddress', refereeAddress, 'must be given');
    }
    this.#address = refereeAddress;
    this.#quorum = downAllIfBelowQuorum;
    this.parameters = { refereeAddress, downAllIfBelowQuorum };
  }

  decide(situation: SplitSituation): DowningDecision {
    return decideBy(situation, (members, side) => {
      if (this.keeps(members, side)) return 'kept';
      return this.#referees(members).length > 0 ? 'lost' : 'undecided';
    });
  }

  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    if (holdsAll(members, side)) return true;
    const referees = this.#referees(members);
    if (referees.length === 0) return false;
    if (!referees.every((referee) => side.has(referee.uid) && !mayGo(referee))) return false;
    return weigh(members, side).least >= this.#quorum;
  }

  warning(members: readonly Member[]): string | undefined {
    if (members.length < 2 || this.#referees(members).length > 0) return undefined;
    return `keep-referee: no member at ${this.#address} is up: a split would not be decided`;
  }

  #referees(members: readonly Member[]): readonly Member[] {
    return members.filter((one) => one.address === this.#address && one.status !== 'down' && counts(one));
  }
}
