/** The default strategy. */
import { checkOptions, type Rules } from '../../actor/options.ts';
import type { Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { roleRule } from './rules.ts';
import { counts, decideBy, holdsAll, weigh, withRole } from './weigh.ts';

/** Options of `KeepMajority`. */
export interface KeepMajorityOptions {
  /** Only members with this role count. Default: all. */
  readonly role?: string;
}

const optionRules: Rules<KeepMajorityOptions> = { role: roleRule };

/**
 * The side with more than half of the members that count is kept; of two exact halves the one with the oldest member. If
 * nobody counts (no member is up yet, or none has the role) there is nothing to decide by, and nobody is downed.
 */
export class KeepMajority implements DowningStrategy {
  readonly name = 'keep-majority';
  readonly parameters: Readonly<Record<string, string>>;
  readonly #role: string | undefined;

  /** @throws OptionsError */
  constructor(options: KeepMajorityOptions = {}) {
    checkOptions('KeepMajority', options, optionRules);
    this.#role = options.role;
    this.parameters = options.role === undefined ? {} : { role: options.role };
  }

  decide(situation: SplitSituation): DowningDecision {
    return decideBy(situation, (members, side) => {
      if (this.keeps(members, side)) return 'kept';
      return withRole(members, this.#role).some(counts) ? 'lost' : 'undecided';
    });
  }

  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    if (holdsAll(members, side)) return true;
    const { least, others, oldestAtWorst } = weigh(withRole(members, this.#role), side);
    return least > others || (least === others && oldestAtWorst);
  }

  warning(members: readonly Member[]): string | undefined {
    if (this.#role === undefined || members.length < 2) return undefined;
    if (withRole(members, this.#role).some(counts)) return undefined;
    return `no member has the role '${this.#role}' that keep-majority counts: a split would not be decided`;
  }
}
