/** The one table of member statuses: which follows which, and which wins when two nodes know different ones. */
import type { MemberStatus } from './member.ts';

const next: Readonly<Record<MemberStatus, readonly MemberStatus[]>> = {
  joining: ['up', 'leaving', 'down'],
  up: ['leaving', 'down'],
  leaving: ['exiting', 'down'],
  exiting: ['removed', 'down'],
  down: ['removed'],
  removed: [],
};

const ranks: Readonly<Record<MemberStatus, number>> = {
  joining: 0,
  up: 1,
  leaving: 2,
  exiting: 3,
  down: 4,
  removed: 5,
};

/** May a member move from `from` to `to` in one step? */
export function mayMove(from: MemberStatus, to: MemberStatus): boolean {
  return next[from].includes(to);
}

/** Statuses only move onward, so the later one is always the newer one: a join-semilattice. */
export function laterStatus(a: MemberStatus, b: MemberStatus): MemberStatus {
  return ranks[a] >= ranks[b] ? a : b;
}

export function isLater(a: MemberStatus, b: MemberStatus): boolean {
  return ranks[a] > ranks[b];
}

export function isStatus(value: unknown): value is MemberStatus {
  return typeof value === 'string' && Object.hasOwn(ranks, value);
}

/** Takes part in convergence, heartbeats and gossip: everything but `down` and `removed`. */
export function isActive(status: MemberStatus): boolean {
  return status !== 'down' && status !== 'removed';
}
