/**
 * What all members agree on, as a join-semilattice: merging is commutative, associative and idempotent, so gossip may be
 * lost, repeated and reordered. Values are immutable by convention; maps are copied when they change.
 * (State-based replicated data after Shapiro, Preguiça, Baquero, Zawirski 2011; digest and `seen` after Akka's gossip.)
 */
import { fastPaths } from '../fast_paths.ts';
import type { Address } from '../transport/contract.ts';
import { addHashes, canonicalText, type Hash, hashDigits, hashText } from './canonical.ts';
import type { ClusterEntry, HostingClaim, MemberStatus, StartedRecord } from './member.ts';
import { carryIndex, indexOf, selfText } from './record_index.ts';
import { sameSelf } from './same_record.ts';
import { laterStatus } from './transitions.ts';

export interface MemberRecord {
  readonly address: Address;
  readonly uid: string;
  readonly status: MemberStatus;
  /** 0 until the leader numbers the member. */
  readonly upNumber: number;
  readonly terminated: boolean;
  /** What follows belongs to the member itself; only it changes these, and counts up `selfVersion` each time. */
  readonly selfVersion: number;
  readonly roles: readonly string[];
  readonly runtime: string;
  readonly appVersion: string;
  readonly started: ReadonlyMap<string, StartedRecord>;
  readonly hosting: ReadonlyMap<string, HostingClaim>;
}

/** What one observer says about one subject. Only the observer counts up `version`. */
export interface Observation {
  readonly version: number;
  readonly unreachable: boolean;
}

/** By observer, then by subject (uids). */
export type ReachabilityTable = ReadonlyMap<string, ReadonlyMap<string, Observation>>;

/** A removed member; `since` is this node's monotonic time of learning it, for pruning only. */
export interface Tombstone {
  readonly address: Address;
  readonly since: number;
}

export interface GossipState {
  readonly clusterId: string;
  /** Wall milliseconds at formation; only compared as data, with the cluster id, when two clusters meet. */
  readonly formedAt: number;
  /** The highest number ever given, so that numbers are not given twice. */
  readonly lastNumber: number;
  readonly records: ReadonlyMap<string, MemberRecord>;
  readonly reachability: ReachabilityTable;
  readonly entries: ReadonlyMap<string, ClusterEntry>;
  /** Not part of the digest: each node may forget old ones on its own. */
  readonly tombstones: ReadonlyMap<string, Tombstone>;
}

const nobody: ReadonlyMap<string, MemberRecord> = new Map();

export function emptyGossip(clusterId: string, formedAt: number): GossipState {
  return {
    clusterId,
    formedAt,
    lastNumber: 0,
    records: new Map(),
    reachability: new Map(),
    entries: new Map(),
    tombstones: new Map(),
  };
}

/**
 * Both must be of one cluster. `a`'s order of records is kept; tombstones win over records. Returns `a` itself when `b` adds
 * nothing.
 */
export function mergeGossip(a: GossipState, b: GossipState, maxTombstones: number): GossipState {
  const tombstones = mergeTombstones(a.tombstones, b.tombstones, maxTombstones);
  const records = mergeRecords(a, b, tombstones);
  const reachability = mergeReachability(a.reachability, b.reachability, records);
  const entries = mergeEntries(a.entries, b.entries);
  const formedAt = Math.min(a.formedAt, b.formedAt);
  const lastNumber = Math.max(a.lastNumber, b.lastNumber);
  if (
    tombstones === a.tombstones && records === a.records && reachability === a.reachability && entries === a.entries &&
    formedAt === a.formedAt && lastNumber === a.lastNumber
  ) return a;
  return { clusterId: a.clusterId, formedAt, lastNumber, records, reachability, entries, tombstones };
}

/** Records among which none is of these tombstones. */
const apart = new WeakMap<ReadonlyMap<string, MemberRecord>, ReadonlyMap<string, Tombstone>>();

/** `a` is a state, and `tombstones` are its own and those of `b`. */
function mergeRecords(
  { records, tombstones: before }: GossipState,
  b: GossipState,
  tombstones: ReadonlyMap<string, Tombstone>,
): ReadonlyMap<string, MemberRecord> {
  let merged: Map<string, MemberRecord> | undefined;
  const changed: string[] = [];
  const gone = apart.get(records) !== before ? records : tombstones === before ? nobody : b.tombstones;
  for (const uid of gone.keys()) {
    if (!records.has(uid) || !tombstones.has(uid)) continue;
    (merged ??= new Map(records)).delete(uid);
    changed.push(uid);
  }
  for (const [uid, record] of b.records) {
    if (tombstones.has(uid)) continue;
    const known = records.get(uid);
    const next = known === undefined ? record : mergeRecord(known, record);
    if (next === known) continue;
    (merged ??= new Map(records)).set(uid, next);
    changed.push(uid);
  }
  if (merged !== undefined) carryIndex(records, merged, changed);
  apart.set(merged ?? records, tombstones);
  return merged ?? records;
}

/** Returns `a` itself when `b` adds nothing. */
export function mergeRecord(a: MemberRecord, b: MemberRecord): MemberRecord {
  if (a === b) return a;
  const own = newerSelf(a, b);
  const status = laterStatus(a.status, b.status);
  const upNumber = a.upNumber === 0 || b.upNumber === 0 ? a.upNumber + b.upNumber : Math.min(a.upNumber, b.upNumber);
  const terminated = a.terminated || b.terminated;
  if (own === a && status === a.status && upNumber === a.upNumber && terminated === a.terminated) return a;
  return { ...own, status, upNumber, terminated };
}

/** Equal versions with different content can only be forged: every node then picks the same one. */
function newerSelf(a: MemberRecord, b: MemberRecord): MemberRecord {
  if (a.selfVersion !== b.selfVersion) return a.selfVersion > b.selfVersion ? a : b;
  return sameSelf(a, b) || selfText(a) >= selfText(b) ? a : b;
}

function mergeTombstones(
  a: ReadonlyMap<string, Tombstone>,
  b: ReadonlyMap<string, Tombstone>,
  max: number,
): ReadonlyMap<string, Tombstone> {
  let merged: Map<string, Tombstone> | undefined;
  for (const [uid, tombstone] of b) {
    if (a.has(uid)) continue;
    merged ??= new Map(a);
    merged.set(uid, tombstone);
  }
  return merged === undefined ? a : boundTombstones(merged, max);
}

/** Forgets the ones learned first. */
function boundTombstones(tombstones: Map<string, Tombstone>, max: number): Map<string, Tombstone> {
  for (const uid of tombstones.keys()) {
    if (tombstones.size <= max) break;
    tombstones.delete(uid);
  }
  return tombstones;
}

/** Rows of and about members that are gone vanish with them. Returns `a` itself when nothing changes. */
function mergeReachability(
  a: ReachabilityTable,
  b: ReachabilityTable,
  records: ReadonlyMap<string, MemberRecord>,
): ReachabilityTable {
  if (isAbout(a, records) && !addsObservations(a, b, records)) return a;
  const merged = new Map<string, ReadonlyMap<string, Observation>>();
  for (const table of [a, b]) {
    for (const [observer, row] of table) {
      if (!records.has(observer)) continue;
      const cells = new Map(merged.get(observer));
      for (const [subject, observation] of row) {
        if (!records.has(subject)) continue;
        const known = cells.get(subject);
        if (known === undefined || isNewerObservation(observation, known)) cells.set(subject, observation);
      }
      if (cells.size > 0) merged.set(observer, cells);
    }
  }
  return merged;
}

/** Nobody else is in the table, and nobody with nothing to say. */
function isAbout(table: ReachabilityTable, records: ReadonlyMap<string, MemberRecord>): boolean {
  for (const [observer, row] of table) {
    if (row.size === 0 || !records.has(observer)) return false;
    for (const subject of row.keys()) if (!records.has(subject)) return false;
  }
  return true;
}

function addsObservations(
  a: ReachabilityTable,
  b: ReachabilityTable,
  records: ReadonlyMap<string, MemberRecord>,
): boolean {
  for (const [observer, row] of b) {
    if (!records.has(observer)) continue;
    const present = a.get(observer);
    for (const [subject, observation] of row) {
      if (!records.has(subject)) continue;
      const known = present?.get(subject);
      if (known === undefined || isNewerObservation(observation, known)) return true;
    }
  }
  return false;
}

function isNewerObservation(a: Observation, b: Observation): boolean {
  return a.version !== b.version ? a.version > b.version : a.unreachable && !b.unreachable;
}

function mergeEntries(
  a: ReadonlyMap<string, ClusterEntry>,
  b: ReadonlyMap<string, ClusterEntry>,
): ReadonlyMap<string, ClusterEntry> {
  let merged: Map<string, ClusterEntry> | undefined;
  for (const [key, entry] of b) {
    const known = a.get(key);
    if (known !== undefined && !isNewerEntry(entry, known)) continue;
    merged ??= new Map(a);
    merged.set(key, entry);
  }
  return merged ?? a;
}

export function isNewerEntry(a: ClusterEntry, b: ClusterEntry): boolean {
  if (a.version !== b.version) return a.version > b.version;
  if (a.by !== b.by) return a.by > b.by;
  return canonicalText(a.value) > canonicalText(b.value);
}

export function withRecord(state: GossipState, record: MemberRecord): GossipState {
  const records = new Map(state.records).set(record.uid, record);
  carryIndex(state.records, records, [record.uid]);
  return { ...state, records };
}

/** The same for many. */
export function withRecords(state: GossipState, added: Iterable<MemberRecord>): GossipState {
  const records = new Map(state.records);
  for (const record of added) records.set(record.uid, record);
  return { ...state, records };
}

/** Moves a member to its tombstone. */
export function withTombstone(state: GossipState, uid: string, now: number, maxTombstones: number): GossipState {
  const record = state.records.get(uid);
  if (record === undefined) return state;
  const records = new Map(state.records);
  records.delete(uid);
  carryIndex(state.records, records, [uid]);
  const tombstones = new Map(state.tombstones).set(uid, { address: record.address, since: now });
  return {
    ...state,
    records,
    tombstones: boundTombstones(tombstones, maxTombstones),
    reachability: mergeReachability(state.reachability, new Map(), records),
  };
}

/** Forgets tombstones learned before `before`. */
export function pruneTombstones(state: GossipState, before: number): GossipState {
  const first = state.tombstones.values().next();
  if (first.done === true || first.value.since >= before) return state;
  const tombstones = new Map([...state.tombstones].filter(([, tombstone]) => tombstone.since >= before));
  return { ...state, tombstones };
}

const digests = new WeakMap<GossipState, string>();

/** 16 hex digits over records, reachability and entries, whatever their order. */
export function digestOf(state: GossipState): string {
  const known = digests.get(state);
  if (known !== undefined && fastPaths.memos) return known;
  const { clusterId, formedAt, lastNumber, records, reachability, entries } = state;
  const sum = [hashText(canonicalText([clusterId, formedAt, lastNumber])), indexOf(records).hash]
    .reduce(addHashes, addHashes(reachabilityHash(reachability), entriesHash(entries)));
  const digest = hashDigits(sum);
  digests.set(state, digest);
  return digest;
}

const tableHashes = new WeakMap<object, Hash>();

/** Tables stay the same object as long as nothing in them changes. */
function kept<T extends object>(table: T, compute: (table: T) => Hash): Hash {
  let hash = tableHashes.get(table);
  if (hash === undefined || !fastPaths.memos) {
    hash = compute(table);
    tableHashes.set(table, hash);
  }
  return hash;
}

function reachabilityHash(table: ReachabilityTable): Hash {
  return kept(table, () => {
    let sum: Hash = [0, 0];
    for (const [observer, row] of table) {
      for (const [subject, { version, unreachable }] of row) {
        sum = addHashes(sum, hashText(`${observer}|${subject}|${version}|${unreachable}`));
      }
    }
    return sum;
  });
}

function entriesHash(entries: ReadonlyMap<string, ClusterEntry>): Hash {
  return kept(entries, () => {
    let sum: Hash = [0, 0];
    for (const { key, version, by, value } of entries.values()) {
      sum = addHashes(sum, hashText(canonicalText([key, version, by, value])));
    }
    return sum;
  });
}
