/** A user's own strategy, in addresses instead of uids. */
import type { Logger } from '../../actor/environment.ts';
import type { Address } from '../../transport/contract.ts';
import type { Member } from '../member.ts';
import type { DowningDecision, DowningStrategy, SplitSituation } from './contract.ts';
import { holdsAll } from './weigh.ts';

/** What a `DowningProvider` decides from. */
export interface DowningQuestion {
  /** Every member that is not removed, in age order, those already `down` included. */
  readonly allMembers: readonly Member[];
  /** Addresses that this side cannot reach. */
  readonly unreachable: ReadonlySet<Address>;
  readonly self: Member;
}

/** A downing strategy of your own in one function over addresses; `DowningStrategy` can do more. */
export interface DowningProvider {
  /**
   * The addresses to mark down, with those of one's own side when it loses; empty for no decision yet. Synchronous, and
   * equal on all nodes of a side. It is also asked in thought: for a set of members that a host can hear, whether they
   * would go on. "No decision" to that means that the host pauses until it hears everybody again. Which steps of joining
   * and leaving members are pending on the other side is not known to it: count only `up` members, or ask for a margin.
   */
  decide(question: DowningQuestion): ReadonlySet<Address>;
}

/** Runs a provider as a strategy. What it throws is logged and counts as no decision. */
export function fromProvider(provider: DowningProvider, log: Pick<Logger, 'error'>): DowningStrategy {
  let lastError = '';
  const ask = (question: DowningQuestion): ReadonlySet<Address> => {
    try {
      const answer: unknown = provider.decide(question);
      if (!(answer instanceof Set)) throw new TypeError('a downing provider must return a Set of addresses');
      lastError = '';
      return answer as ReadonlySet<Address>;
    } catch (error) {
      const text = String(error);
      if (text !== lastError) log.error('downing provider failed, no decision', { error: text });
      lastError = text;
      return new Set();
    }
  };
  return {
    name: 'provider',
    parameters: {},
    decide({ members, unreachable, selfUid, indirectlyConnected }: SplitSituation): DowningDecision {
      const active = members.filter((member) => member.status !== 'down');
      const self = active.find((member) => member.uid === selfUid);
      if (self === undefined) return new Set();
      const out = active.filter(({ uid }) =>
        uid !== selfUid && (unreachable.has(uid) || indirectlyConnected?.has(uid))
      );
      if (out.length === 0) return new Set();
      const chosen = ask({ allMembers: members, unreachable: new Set(out.map((one) => one.address)), self });
      return new Set(active.filter((member) => chosen.has(member.address)).map((member) => member.uid));
    },
    keeps(members: readonly Member[], side: ReadonlySet<string>): boolean {
      if (holdsAll(members, side)) return true;
      const inside = members.filter((member) => member.status !== 'down' && side.has(member.uid));
      const self = inside[0];
      if (self === undefined) return false;
      const outside = members.filter((member) => !inside.includes(member));
      const chosen = ask({ allMembers: members, unreachable: new Set(outside.map((one) => one.address)), self });
      return chosen.size > 0 && !inside.some((member) => chosen.has(member.address));
    },
  };
}
