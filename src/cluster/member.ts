/** Members and the view that every other part of a node computes from. Plain data. */
import type { Address } from '../transport/contract.ts';

/** Where a member is on its way: `joining → up → leaving → exiting → removed`, and `down → removed` from anywhere. */
export type MemberStatus = 'joining' | 'up' | 'leaving' | 'exiting' | 'down' | 'removed';

/** What a member says about its singletons; only the member itself changes it. */
export interface HostingClaim {
  readonly epoch: number;
  /** The epoch from which an unbroken chain of planned moves leads to this instance. */
  readonly plannedSince: number;
  /** Wall clock, for people. */
  readonly since: number;
}

/** A member of the cluster as this node sees it at one moment. */
export interface Member {
  readonly address: Address;
  readonly uid: string;
  readonly status: MemberStatus;
  readonly roles: readonly string[];
  /** Age: given once, on promotion to `up`; 0 before. Smaller is older. */
  readonly upNumber: number;
  readonly runtime: string;
  readonly appVersion: string;
  /** True for a `down` member whose process is proven gone (it can host nothing any more). */
  readonly terminated: boolean;
  /** No observer reports it unreachable. */
  readonly reachable: boolean;
  /** Singleton names this member has started, each with the generation of its start. */
  readonly started: ReadonlyMap<string, StartedRecord>;
  /** Singletons it hosts at present. */
  readonly hosting: ReadonlyMap<string, HostingClaim>;
}

export interface StartedRecord {
  readonly generation: number;
  /** The role its starter asked for, if any. */
  readonly role: string | undefined;
  /** Where its starter wants it to be; absent: on the oldest member. */
  readonly placement?: 'spread';
}

/** A versioned piece of cluster-wide state (operator pins, registrations): the higher version wins, then the larger uid. */
export interface ClusterEntry {
  readonly key: string;
  readonly version: number;
  readonly by: string;
  /** `null` is a deletion that is remembered. */
  readonly value: unknown;
}

/** One node's view. `members` is in age order (see `compareAge`), without removed ones. */
export interface MembershipView {
  /** Grows by one with each change of the view. */
  readonly revision: number;
  readonly clusterId: string | undefined;
  readonly self: Member;
  readonly leader: Member | undefined;
  readonly members: readonly Member[];
  /** Every member that is not down has seen this state. */
  readonly converged: boolean;
  readonly entries: ReadonlyMap<string, ClusterEntry>;
}

/** By code unit, never by locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Hosts by code unit, ports as numbers. */
export function compareAddress(a: Address, b: Address): number {
  const [hostA, portA] = splitAddress(a);
  const [hostB, portB] = splitAddress(b);
  return compareText(hostA, hostB) || portA - portB;
}

export function splitAddress(address: Address): [host: string, port: number] {
  const colon = address.lastIndexOf(':');
  return [address.slice(0, colon), Number(address.slice(colon + 1))];
}

type Aged = Pick<Member, 'upNumber' | 'address' | 'uid'>;

/** Total age order: numbered members first (smaller number is older), then host by code unit, port as a number, uid. */
export function compareAge(a: Aged, b: Aged): number {
  const ageA = a.upNumber === 0 ? Infinity : a.upNumber;
  const ageB = b.upNumber === 0 ? Infinity : b.upNumber;
  if (ageA !== ageB) return ageA < ageB ? -1 : 1;
  return compareAddress(a.address, b.address) || compareText(a.uid, b.uid);
}
