import { checkOptions, OptionsError, type Rules } from '../../actor/options.ts';
import type { Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { quorumRule, roleRule } from './rules.ts';
import { counts, decideBy, holdsAll, mayCount, weigh, withRole } from './weigh.ts';

/** Options of `StaticQuorum`. */
export interface StaticQuorumOptions {
  /** How many members that count a side needs. Must be more than half of the most members there will ever be. */
  readonly quorumSize: number;
  /** Only members with this role count. Default: all. */
  readonly role?: string;
}

const optionRules: Rules<StaticQuorumOptions> = { quorumSize: quorumRule, role: roleRule };

/**
 * A side with at least `quorumSize` members that count is kept. Without a split nothing is downed, also below the quorum:
 * a cluster may start with one node and be scaled down by leaving. When there are so many members that two sides could
 * reach the quorum (at least twice its size), a side needs more than half of them as well, so that of two halves both
 * go; `warning` says so as soon as that size is reached.
 */
export class StaticQuorum implements DowningStrategy {
  readonly name = 'static-quorum';
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly #quorumSize: number;
  readonly #role: string | undefined;

  /** @throws OptionsError */
  constructor(options: StaticQuorumOptions) {
    checkOptions('StaticQuorum', options, optionRules);
    const { quorumSize, role } = options;
    if (quorumSize === undefined) throw new OptionsError('StaticQuorum', 'quorumSize', quorumSize, 'must be given');
    this.#quorumSize = quorumSize;
    this.#role = role;
    this.parameters = role === undefined ? { quorumSize } : { quorumSize, role };
  }

  decide(situation: SplitSituation): DowningDecision {
    return decideBy(situation, (members, side) => {
      if (this.keeps(members, side)) return 'kept';
      return withRole(members, this.#role).some(counts) ? 'lost' : 'undecided';
    });
  }

  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    if (holdsAll(members, side)) return true;
    const { least, others } = weigh(withRole(members, this.#role), side);
    return least >= this.#quorumSize && least > others;
  }

  warning(members: readonly Member[]): string | undefined {
    const voters = withRole(members, this.#role).filter((member) => counts(member) || mayCount(member)).length;
    if (this.#quorumSize * 2 > voters) return undefined;
    return `static-quorum: quorumSize ${this.#quorumSize} is not more than half of ${voters} members: ` +
      'two halves would both be downed; raise quorumSize';
  }
}
