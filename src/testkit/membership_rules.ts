/**
 * Invariants of membership, checked whenever a node's view has changed: age order, numbering, transitions that only go
 * forward, tombstones that stay dead, and promise S4 (a join moves nothing).
 */
import { compareAge, type Member, type MembershipView, type MemberStatus } from '../cluster/member.ts';
import { limits } from '../limits.ts';
import { SimulationError } from './sim_world.ts';

/** A status never goes back in this order; `removed` is not being in the view any more. */
const rank: Readonly<Record<MemberStatus, number>> = { joining: 0, up: 1, leaving: 2, exiting: 3, down: 4, removed: 5 };

interface Observed {
  revision: number;
  view: MembershipView | undefined;
  /** By uid, the furthest status seen. */
  readonly statuses: Map<string, MemberStatus>;
}

/** Holds the views of simulated nodes to the rules of membership, and ends the run when one is broken. */
export class MembershipRules {
  #nodes = new Map<object, Observed>();
  /** uid → up number, over all nodes. */
  #numbers = new Map<string, number>();
  /** cluster id and up number → uid, over all nodes. */
  #owners = new Map<string, string>();
  #oneCluster: boolean;
  /** Of the first cluster that somebody was up in. */
  #clusterId: string | undefined;

  /** `oneCluster`: nothing excuses a second one. */
  constructor(oneCluster = false) {
    this.#oneCluster = oneCluster;
  }

  /** Checks the view of one node against everything seen so far; cheap when the revision is the same as last time. */
  observe(node: object, name: string, view: MembershipView): void {
    let observed = this.#nodes.get(node);
    if (observed === undefined) {
      observed = { revision: -1, view: undefined, statuses: new Map() };
      this.#nodes.set(node, observed);
    }
    if (view.revision === observed.revision) return;
    if (view.revision < observed.revision) broken('S5', name, `revision ${observed.revision} → ${view.revision}`);
    this.#checkMembers(name, view);
    this.#checkCluster(name, view);
    checkTransitions(name, observed, view);
    checkLeader(name, observed.view, view);
    observed.revision = view.revision;
    observed.view = view;
  }

  forget(node: object): void {
    this.#nodes.delete(node);
  }

  #checkMembers(name: string, view: MembershipView): void {
    const { members } = view;
    if (members.length > limits.members) broken('bounds', name, `${members.length} members`);
    for (let i = 0; i < members.length; i++) {
      const member = members[i] as Member;
      const next = members[i + 1];
      if (next !== undefined && compareAge(member, next) >= 0) {
        broken('S5', name, `members are not in age order: ${label(member)} before ${label(next)}`);
      }
      if (member.upNumber !== 0) this.#checkNumber(name, view.clusterId, member);
      else if (member.status === 'up') broken('S5', name, `${label(member)} is up without a number`);
    }
  }

  /** Founded means that somebody is up in it. */
  #checkCluster(name: string, { clusterId, members }: MembershipView): void {
    if (!this.#oneCluster || clusterId === undefined || !members.some((member) => member.status === 'up')) return;
    if (this.#clusterId === undefined || !this.#isAlive(this.#clusterId)) this.#clusterId = clusterId;
    if (clusterId !== this.#clusterId) broken('founding', name, `is in ${clusterId}, others are in ${this.#clusterId}`);
  }

  /** A cluster whose every member has ended may be followed by another one. */
  #isAlive(clusterId: string): boolean {
    for (const { view } of this.#nodes.values()) {
      if (view?.clusterId === clusterId && view.self.status !== 'down' && view.self.status !== 'removed') return true;
    }
    return false;
  }

  #checkNumber(name: string, clusterId: string | undefined, member: Member): void {
    const known = this.#numbers.get(member.uid);
    if (known === undefined) this.#numbers.set(member.uid, member.upNumber);
    else if (known !== member.upNumber) broken('S5', name, `${label(member)} was numbered ${known} before`);
    const key = `${clusterId}/${member.upNumber}`;
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, member.uid);
    else if (owner !== member.uid) broken('S5', name, `up number ${member.upNumber} of ${label(member)} is ${owner}'s`);
  }
}

function checkTransitions(name: string, observed: Observed, view: MembershipView): void {
  const present = new Set<string>();
  for (const member of view.members) {
    present.add(member.uid);
    const before = observed.statuses.get(member.uid);
    if (before === 'removed') broken('S5', name, `${label(member)} came back from removed`);
    if (before !== undefined && rank[member.status] < rank[before]) {
      broken('S5', name, `${label(member)} went from ${before} back to ${member.status}`);
    }
    if (before !== member.status) observed.statuses.set(member.uid, member.status);
  }
  for (const [uid, status] of observed.statuses) {
    if (status !== 'removed' && !present.has(uid)) observed.statuses.set(uid, 'removed');
  }
}

/** The leader is the oldest `up` member, if there is one; while it stays `up`, nothing that joins takes its place. */
function checkLeader(name: string, before: MembershipView | undefined, view: MembershipView): void {
  const oldest = view.members.find((member) => member.status === 'up');
  if (oldest !== undefined && oldest.uid !== view.leader?.uid) {
    broken('S4', name, `the leader is ${label(view.leader)}, the oldest up member ${label(oldest)}`);
  }
  const previous = before?.leader;
  if (previous?.status !== 'up' || previous.uid === view.leader?.uid) return;
  const still = view.members.find((member) => member.uid === previous.uid);
  if (still?.status === 'up') {
    broken('S4', name, `${label(view.leader)} took over from ${label(previous)}, which is up`);
  }
}

function label(member: Member | undefined): string {
  return member === undefined ? 'nobody' : `${member.address}#${member.uid} (${member.status}, ${member.upNumber})`;
}

function broken(rule: string, node: string, what: string): never {
  throw new SimulationError(rule, `${node}: ${what}`);
}

/** What one node sees, for `MembershipRules`. */
export interface NodeView {
  readonly name: string;
  readonly uid: string;
  readonly view: MembershipView;
}

/** What keeps these nodes from agreeing on one cluster of exactly themselves, all up and reachable. */
export function disagreement(nodes: readonly NodeView[]): string | undefined {
  const first = nodes[0];
  if (first === undefined) return 'no node runs';
  const expected = nodes.map((node) => node.uid).sort().join(' ');
  for (const { name, view } of nodes) {
    if (view.clusterId === undefined) return `${name} is in no cluster`;
    if (view.clusterId !== first.view.clusterId) return `${name} and ${first.name} are in different clusters`;
    const strange = view.members.find((member) => member.status !== 'up');
    if (strange !== undefined) return `${name} sees ${label(strange)}`;
    const lost = view.members.find((member) => !member.reachable);
    if (lost !== undefined) return `${name} sees ${lost.address} as unreachable`;
    const uids = view.members.map((member) => member.uid).sort().join(' ');
    if (uids !== expected) return `${name} sees ${view.members.length} members, ${nodes.length} nodes run`;
    if (!view.converged) return `${name} has not converged`;
  }
  return undefined;
}
