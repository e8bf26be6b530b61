/**
 * Rule 6: two sides that both lived meet again. Each describes itself; both compute the same loser, and the loser stops its
 * singletons first and rejoins as new uids. No clock is compared: the formation stamp is only data.
 */
import type { Address } from '../transport/contract.ts';
import { isActive } from './transitions.ts';
import { byAge } from './convergence.ts';
import type { GossipState } from './gossip_state.ts';
import { compareAddress, compareText } from './member.ts';

/** How one side ranks. */
export interface SideRank {
  readonly clusterId: string;
  readonly formedAt: number;
  /** False while the side has never had a member that was `up`. */
  readonly founded: boolean;
  /** Its oldest active member. */
  readonly upNumber: number;
  readonly address: Address;
}

export function rankOf(state: GossipState): SideRank {
  const oldest = byAge(state.records).find((record) => isActive(record.status));
  return {
    clusterId: state.clusterId,
    formedAt: state.formedAt,
    founded: state.lastNumber > 0,
    upNumber: oldest?.upNumber ?? 0,
    address: oldest?.address ?? ':0',
  };
}

/**
 * Is the side that describes itself so another one than that of `state`? Within one cluster id only if its oldest member is out
 * here: otherwise it is the same side, and one of the two lags behind the other.
 */
export function isApart(state: GossipState, { clusterId, founded, upNumber, address }: SideRank): boolean {
  if (clusterId !== state.clusterId || !founded) return true;
  for (const record of state.records.values()) {
    if (record.upNumber === upNumber && record.address === address) return !isActive(record.status);
  }
  return true;
}

/** Negative when `a` lives on. Zero only for sides with the same oldest member. */
export function compareSides(a: SideRank, b: SideRank): number {
  if (a.founded !== b.founded) return a.founded ? -1 : 1;
  if (a.clusterId !== b.clusterId) return a.formedAt - b.formedAt || compareText(a.clusterId, b.clusterId);
  const ages = (a.upNumber === 0 ? Infinity : a.upNumber) - (b.upNumber === 0 ? Infinity : b.upNumber);
  return ages !== 0 && !Number.isNaN(ages) ? ages : compareAddress(a.address, b.address);
}
