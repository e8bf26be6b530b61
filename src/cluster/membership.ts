/**
 * One node's membership as a pure machine: `(state, event, now) → { state, effects }`. It owns the gossip state, who has
 * seen it, and what the leader does on convergence; sockets, timers and listeners belong to the shell (`node.ts`).
 */
import { limits } from '../limits.ts';
import type { Address } from '../transport/contract.ts';
import {
  emptyGossip,
  type GossipState,
  isNewerEntry,
  type MemberRecord,
  mergeRecord,
  pruneTombstones,
  withRecord,
  withRecords,
} from './gossip_state.ts';
import { lead } from './leader.ts';
import type { HostingClaim, MemberStatus, StartedRecord } from './member.ts';
import {
  changed,
  end,
  type Membership,
  type MembershipEffect,
  type MembershipEvent,
  selfRecord,
  type Step,
} from './membership_state.ts';
import { receiveDigest, receiveGossip } from './receive.ts';
import { isActive, mayMove } from './transitions.ts';

/** A joiner that has not asked again for this long has gone, in milliseconds. */
const waitingForMs = 5_000;

/** The transition. After the event itself the leader's duties run, as far as this node leads. */
export function step(state: Membership, event: MembershipEvent, now: number): Step {
  if (state.phase === 'ended') return { state, effects: [] };
  const first = apply(state, event, now);
  if (first.state.phase !== 'member') return first;
  const admitted = admitWaiting(first.state, now);
  const led = lead(admitted, now);
  const push: readonly MembershipEffect[] = admitted.gossip === first.state.gossip ? [] : [{ kind: 'push' }];
  return { state: led.state, effects: [...first.effects, ...push, ...led.effects] };
}

function apply(state: Membership, event: MembershipEvent, now: number): Step {
  switch (event.kind) {
    case 'form':
      return form(state, event.clusterId, event.formedAt, event.founders);
    case 'gossip':
      return receiveGossip(state, event.from, event.message);
    case 'digest':
      return receiveDigest(state, event.from, event.message, event.repair);
    case 'join':
      return join(state, event.record, now);
    case 'observed':
      return observed(state, event.uid, event.unreachable);
    case 'down':
      return down(state, event.uids, event.terminated, event.why);
    case 'publish':
      return publish(state, event.started, event.hosting);
    case 'entry':
      return writeEntry(state, event.key, event.value);
    case 'leaving':
      return moveSelf(state, 'leaving');
    case 'exiting':
      return moveSelf(state, 'exiting');
    case 'woke':
      return woke(state);
    case 'tick':
      return { state: { ...state, gossip: pruneTombstones(state.gossip, now - limits.tombstoneMs) }, effects: [] };
    case 'end':
      return end(state, event.why, event.selfDown, event.rejoin, event.via);
    default:
      return event satisfies never;
  }
}

function form(state: Membership, clusterId: string, formedAt: number, founders: readonly MemberRecord[]): Step {
  if (state.phase !== 'outside') return { state, effects: [] };
  const others = founders.filter(({ uid }) => uid !== state.selfUid);
  const gossip = withRecords(emptyGossip(clusterId, formedAt), [selfRecord(state), ...others]);
  return { state: changed({ ...state, phase: 'member' }, gossip), effects: [{ kind: 'push' }] };
}

/** Any member admits joiners; an address still held by another uid must be given up first. */
function join(state: Membership, record: MemberRecord, now: number): Step {
  if (state.phase !== 'member') return { state, effects: [] };
  const { gossip } = state;
  if (gossip.tombstones.has(record.uid)) {
    return {
      state,
      effects: [{ kind: 'refuse-join', to: record.address, why: 'this uid has been removed', final: true }],
    };
  }
  if (gossip.records.has(record.uid)) return { state, effects: [{ kind: 'reply', to: record.address, about: [] }] };
  if (gossip.records.size >= limits.members) {
    const why = `the cluster has ${limits.members} members, its bound`;
    return { state, effects: [{ kind: 'refuse-join', to: record.address, why, final: false }] };
  }
  const holder = holderOf(gossip, record.address);
  if (holder === undefined) return { state: changed(state, withRecord(gossip, record)), effects: [{ kind: 'push' }] };
  if (state.waiting.size >= limits.members && !state.waiting.has(record.address)) return { state, effects: [] };
  const waiting = new Map(state.waiting).set(record.address, { record, until: now + waitingForMs });
  return { state: { ...state, waiting }, effects: [{ kind: 'contested', joiner: record, holder }] };
}

function holderOf(gossip: GossipState, address: Address): MemberRecord | undefined {
  for (const record of gossip.records.values()) {
    if (record.address === address && isActive(record.status)) return record;
  }
  return undefined;
}

/** Lets waiting joiners in whose address has become free. */
function admitWaiting(state: Membership, now: number): Membership {
  if (state.waiting.size === 0) return state;
  let { gossip } = state;
  const waiting = new Map(state.waiting);
  for (const [address, { record, until }] of state.waiting) {
    const known = gossip.records.has(record.uid) || gossip.tombstones.has(record.uid);
    const free = !known && holderOf(gossip, address) === undefined && gossip.records.size < limits.members;
    if (free && now < until) gossip = withRecord(gossip, record);
    if (known || free || now >= until) waiting.delete(address);
  }
  return waiting.size === state.waiting.size ? state : changed({ ...state, waiting }, gossip);
}

function observed(state: Membership, uid: string, unreachable: boolean): Step {
  const row = state.gossip.reachability.get(state.selfUid);
  const known = row?.get(uid);
  if (!state.gossip.records.has(uid) || (known?.unreachable ?? false) === unreachable) return { state, effects: [] };
  const cells = new Map(row).set(uid, { version: (known?.version ?? 0) + 1, unreachable });
  const reachability = new Map(state.gossip.reachability).set(state.selfUid, cells);
  return { state: changed(state, { ...state.gossip, reachability }), effects: [{ kind: 'push' }] };
}

function down(state: Membership, uids: readonly string[], terminated: boolean, why: string): Step {
  let { gossip } = state;
  const effects: MembershipEffect[] = [];
  for (const uid of uids) {
    const record = gossip.records.get(uid);
    if (record === undefined) continue;
    const next = mergeRecord(record, { ...record, status: 'down', terminated: record.terminated || terminated });
    if (next === record) continue;
    gossip = withRecord(gossip, next);
    if (record.status !== 'down') effects.push({ kind: 'downed', record, why });
  }
  if (gossip === state.gossip) return { state, effects };
  effects.push({ kind: 'push' });
  const next = changed(state, gossip);
  if (selfRecord(next).status !== 'down') return { state: next, effects };
  const ended = end(next, why, true, true);
  return { state: ended.state, effects: [...effects, ...ended.effects] };
}

function publish(
  state: Membership,
  started: ReadonlyMap<string, StartedRecord> | undefined,
  hosting: ReadonlyMap<string, HostingClaim> | undefined,
): Step {
  const self = selfRecord(state);
  return replaceSelf(state, {
    ...self,
    selfVersion: self.selfVersion + 1,
    started: started === undefined ? self.started : new Map(started),
    hosting: hosting === undefined ? self.hosting : new Map(hosting),
  });
}

function moveSelf(state: Membership, status: MemberStatus): Step {
  const self = selfRecord(state);
  if (!mayMove(self.status, status)) return { state, effects: [] };
  return replaceSelf(state, { ...self, status, selfVersion: self.selfVersion + 1 });
}

/**
 * Others may have taken this node out meanwhile, and what they said before that still waits to be read. With a new version of
 * its own record its state is one that nobody can have seen yet: it leads again once everybody has, so nothing is done on
 * the strength of what was true before.
 */
function woke(state: Membership): Step {
  if (state.phase !== 'member') return { state, effects: [] };
  const self = selfRecord(state);
  return replaceSelf(state, { ...self, selfVersion: self.selfVersion + 1 });
}

function replaceSelf(state: Membership, record: MemberRecord): Step {
  const next = changed(state, withRecord(state.gossip, record));
  return { state: next, effects: state.phase === 'member' ? [{ kind: 'push' }] : [] };
}

function writeEntry(state: Membership, key: string, value: unknown): Step {
  const known = state.gossip.entries.get(key);
  if (known === undefined && state.gossip.entries.size >= limits.entries) {
    return {
      state,
      effects: [{ kind: 'refused', what: 'entry', why: `more than ${limits.entries} entries`, from: undefined }],
    };
  }
  const entry = { key, version: (known?.version ?? 0) + 1, by: state.selfUid, value };
  if (known !== undefined && !isNewerEntry(entry, known)) return { state, effects: [] };
  const entries = new Map(state.gossip.entries).set(key, entry);
  const next = changed(state, { ...state.gossip, entries });
  return { state: next, effects: state.phase === 'member' ? [{ kind: 'push' }] : [] };
}
