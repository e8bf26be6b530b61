import { checkOptions, type Rules, rules } from '../../actor/options.ts';
import { compareAge, type Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { roleRule } from './rules.ts';
import { counts, decideBy, holdsAll, mayCount, mayGo, withRole } from './weigh.ts';

/** Options of `KeepOldest`. */
export interface KeepOldestOptions {
  /**
   * The oldest member goes when it is cut off from all others and there are at least two of them, and they stay: so a
   * crash of the oldest does not take everybody down. Default true.
   */
  readonly downIfAlone?: boolean;
  /** Only members with this role count. Default: all. */
  readonly role?: string;
}

const optionRules: Rules<KeepOldestOptions> = { downIfAlone: rules.boolean, role: roleRule };

/** The side with the oldest member (by age, not by address) is kept. */
export class KeepOldest implements DowningStrategy {
  readonly name = 'keep-oldest';
  readonly parameters: Readonly<Record<string, string | boolean>>;
  readonly #downIfAlone: boolean;
  readonly #role: string | undefined;

  /** @throws OptionsError */
  constructor(options: KeepOldestOptions = {}) {
    checkOptions('KeepOldest', options, optionRules);
    const { downIfAlone = true, role } = options;
    this.#downIfAlone = downIfAlone;
    this.#role = role;
    this.parameters = role === undefined ? { downIfAlone } : { downIfAlone, role };
  }

  decide(situation: SplitSituation): DowningDecision {
    return decideBy(situation, (members, side) => {
      if (this.keeps(members, side)) return 'kept';
      return withRole(members, this.#role).some(counts) ? 'lost' : 'undecided';
    });
  }

  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    if (holdsAll(members, side)) return true;
    const voters = withRole(members, this.#role).filter((one) => counts(one) || mayCount(one)).toSorted(compareAge);
    const inside = (member: Member): boolean => member.status !== 'down' && side.has(member.uid);
    // Each member that may turn out to be the oldest: all that may go, up to the first that stays.
    for (const [at, candidate] of voters.entries()) {
      if (!counts(candidate)) break;
      if (!this.#winsWith(candidate, voters.slice(at + 1), inside)) return false;
      if (!mayGo(candidate)) return true;
    }
    return false;
  }

  /** `others` are younger; what is pending about them may come out either way. */
  #winsWith(oldest: Member, others: readonly Member[], inside: (member: Member) => boolean): boolean {
    const certain = others.filter((member) => counts(member) && !mayGo(member) && inside(member)).length;
    const possible = others.filter((member) => !inside(member)).length;
    if (inside(oldest)) return !this.#downIfAlone || certain > 0 || possible <= 1;
    return this.#downIfAlone && possible === 0 && certain > 1;
  }
}
