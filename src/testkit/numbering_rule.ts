/**
 * Rule 3, seen from outside: a leader gives numbers only while no member reports another one as unreachable, and only to
 * members that all the others know of.
 */
import { anyUnreachable, leaderOf } from '../cluster/convergence.ts';
import type { Membership } from '../cluster/membership_state.ts';
import { isActive } from '../cluster/transitions.ts';
import { SimulationError } from './sim_world.ts';

export class NumberingRule {
  #before = new WeakMap<object, Membership>();

  /** After each step of a node, with its whole state and those of all nodes that run. */
  observe(node: object, name: string, state: Membership, all: () => Iterable<Membership>): void {
    const before = this.#before.get(node);
    if (before === state) return;
    this.#before.set(node, state);
    if (before?.phase !== 'member' || before.gossip.lastNumber === state.gossip.lastNumber) return;
    const numbered = numberedBy(before, state);
    if (numbered.length === 0) return;
    if (anyUnreachable(state.gossip)) broken(name, 'gives numbers while members are unreachable to others');
    for (const other of all()) {
      const record = state.gossip.records.get(other.selfUid);
      if (record === undefined || !isActive(record.status) || other.phase === 'ended') continue;
      const unknown = numbered.find((uid) => !other.gossip.records.has(uid) && !other.gossip.tombstones.has(uid));
      if (unknown !== undefined) broken(name, `numbers ${unknown}, of whom ${record.address} has not heard`);
    }
  }
}

function broken(name: string, what: string): never {
  throw new SimulationError('S4', `${name} ${what}`);
}

/** Members numbered in this very step: what it heard from another leader has been seen by that one. */
function numberedBy(before: Membership, state: Membership): string[] {
  const { records } = state.gossip;
  if (state.seen.size > 1 || leaderOf(records)?.uid !== state.selfUid) return [];
  const uids: string[] = [];
  for (const { uid, upNumber } of records.values()) {
    if (upNumber > before.gossip.lastNumber && before.gossip.records.get(uid)?.status === 'joining') uids.push(uid);
  }
  return uids;
}
