/** Small builders of gossip states and identities for table tests. */
import { emptyGossip, type GossipState, type MemberRecord, withRecord } from '../../../src/cluster/gossip_state.ts';
import type { MemberStatus } from '../../../src/cluster/member.ts';
import { createMembership, type Membership } from '../../../src/cluster/membership_state.ts';
import type { PeerIdentity } from '../../../src/transport/contract.ts';

export function record(
  uid: string,
  status: MemberStatus,
  upNumber = 0,
  extra: Partial<MemberRecord> = {},
): MemberRecord {
  return {
    uid,
    address: `10.0.0.${uid.charCodeAt(0) - 96}:4000`,
    status,
    upNumber,
    terminated: false,
    selfVersion: 1,
    roles: [],
    runtime: 'memory',
    appVersion: '1',
    started: new Map(),
    hosting: new Map(),
    ...extra,
  };
}

export function gossip(...records: MemberRecord[]): GossipState {
  let state: GossipState = emptyGossip('cluster', 1_000);
  for (const one of records) state = withRecord(state, one);
  return { ...state, lastNumber: Math.max(0, ...records.map((one) => one.upNumber)) };
}

/** `claims`: pairs of observer and subject. */
export function withClaims(state: GossipState, claims: readonly (readonly [string, string])[]): GossipState {
  const reachability = new Map(state.reachability);
  for (const [observer, subject] of claims) {
    reachability.set(observer, new Map(reachability.get(observer)).set(subject, { version: 1, unreachable: true }));
  }
  return { ...state, reachability };
}

/** A member in the middle of its life; `seen` defaults to itself. */
export function membership(
  selfUid: string,
  state: GossipState,
  seen: readonly string[] = [selfUid],
  minMembers = 1,
): Membership {
  const self = state.records.get(selfUid) ?? record(selfUid, 'joining');
  const base = createMembership(self, { marginMs: () => 2_000, minMembers });
  return { ...base, phase: 'member', gossip: state, seen: new Set(seen) };
}

export function peer(uid: string): PeerIdentity {
  return { uid, address: record(uid, 'up').address, clusterName: 'test', roles: [], runtime: 'memory' };
}
