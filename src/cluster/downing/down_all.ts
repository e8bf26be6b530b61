import type { Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { decideBy, holdsAll } from './weigh.ts';

/** No side is kept: whenever a member stays unreachable everybody goes, to be started again by the platform. */
export class DownAll implements DowningStrategy {
  readonly name = 'down-all';
  readonly parameters = {};

  decide(situation: SplitSituation): DowningDecision {
    return decideBy(situation, () => 'lost');
  }

  keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
    return holdsAll(members, side);
  }
}
