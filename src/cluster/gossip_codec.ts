/**
 * Gossip as plain wire data, and back with every field checked. One bad field refuses the whole message: a state is only
 * believed as a whole, so that whoever sees a promotion also holds every record its leader held (rule 3).
 */
import { limits } from '../limits.ts';
import type { GossipState, MemberRecord, Observation, Tombstone } from './gossip_state.ts';
import type { ClusterEntry, HostingClaim, StartedRecord } from './member.ts';
import { decodeSeen, type Seen, seenIn } from './seen.ts';
import { isStatus } from './transitions.ts';
import { addressOf, countOf, fail, flagOf, listOf, textOf, tupleOf, WireError } from './wire_checks.ts';

export interface GossipMessage {
  readonly state: GossipState;
  readonly seen: readonly string[];
  /** Of its sender's state, where this is only what changed in it. */
  readonly digest?: string;
}

export interface DigestMessage {
  readonly clusterId: string;
  readonly digest: string;
  readonly seen: Seen;
}

export type Decoded<T> = { readonly value: T } | { readonly refused: string };

/** Runs a decoder; what it refuses comes back as text. */
export function decode<T>(run: () => T): Decoded<T> {
  try {
    return { value: run() };
  } catch (error) {
    if (error instanceof WireError) return { refused: error.message };
    return { refused: 'not decodable' };
  }
}

/** `tombstones`: the ones worth telling this receiver. */
export function encodeGossip(
  state: GossipState,
  seen: readonly string[] | true,
  tombstones: Iterable<[string, Tombstone]>,
): unknown {
  return [
    state.clusterId,
    state.formedAt,
    state.lastNumber,
    [...state.records.values()].map(encodeRecord),
    [...state.reachability].map(([observer, row]) => [
      observer,
      [...row].map(([subject, { version, unreachable }]) => [subject, version, unreachable]),
    ]),
    [...state.entries.values()].map(({ key, version, by, value }) => [key, version, by, value]),
    [...tombstones].map(([uid, { address }]) => [uid, address]),
    seen,
  ];
}

export function encodeRecord(record: MemberRecord): unknown {
  return [
    record.uid,
    record.address,
    record.status,
    record.upNumber,
    record.terminated,
    record.selfVersion,
    [...record.roles],
    record.runtime,
    record.appVersion,
    [...record.started].map(([name, { generation, role, placement }]) => [
      name,
      generation,
      role ?? null,
      placement === 'spread',
    ]),
    [...record.hosting].map(([name, { epoch, plannedSince, since }]) => [name, epoch, plannedSince, since]),
  ];
}

/** `now`: when tombstones in it are learned. */
export function decodeGossip(wire: unknown, now: number): Decoded<GossipMessage> {
  return decode(() => {
    const fields = tupleOf(wire, 8, 'gossip');
    const records = new Map<string, MemberRecord>();
    for (const item of listOf(fields[3], limits.members * 2, 'members')) {
      const record = decodeRecord(item);
      if (records.has(record.uid)) fail('members', record.uid, 'one record per uid');
      records.set(record.uid, record);
    }
    const state: GossipState = {
      clusterId: textOf(fields[0], limits.uidChars, 'cluster id'),
      formedAt: countOf(fields[1], 'formedAt'),
      lastNumber: countOf(fields[2], 'lastNumber'),
      records,
      reachability: decodeReachability(fields[4], records),
      entries: decodeEntries(fields[5]),
      tombstones: decodeTombstones(fields[6], now),
    };
    for (const record of records.values()) {
      if (record.upNumber > state.lastNumber) fail('upNumber', record.upNumber, 'at most the last number given');
    }
    return { state, seen: seenIn(state, decodeSeen(fields[7])) };
  });
}

export function decodeDigest(cluster: unknown, digest: unknown, seen: unknown): Decoded<DigestMessage> {
  return decode(() => ({
    clusterId: textOf(cluster, limits.uidChars, 'cluster id'),
    digest: textOf(digest, 16, 'digest'),
    seen: decodeSeen(seen),
  }));
}

export function decodeRecord(wire: unknown): MemberRecord {
  const fields = tupleOf(wire, 11, 'member');
  const status = fields[2];
  if (!isStatus(status) || status === 'removed') return fail('status', status, 'a status of a live member');
  const record: MemberRecord = {
    uid: textOf(fields[0], limits.uidChars, 'uid'),
    address: addressOf(fields[1]),
    status,
    upNumber: countOf(fields[3], 'upNumber'),
    terminated: flagOf(fields[4], 'terminated'),
    selfVersion: countOf(fields[5], 'selfVersion'),
    roles: decodeRoles(fields[6]),
    runtime: textOf(fields[7], limits.roleChars, 'runtime'),
    appVersion: textOf(fields[8], limits.typeNameChars, 'appVersion', 0),
    started: decodeStarted(fields[9]),
    hosting: decodeHosting(fields[10]),
  };
  if (status === 'up' && record.upNumber === 0) fail('upNumber', 0, 'above 0 for a member that is up');
  if (status === 'joining' && record.upNumber !== 0) fail('upNumber', record.upNumber, '0 for a joining member');
  if (record.terminated && status !== 'down') fail('terminated', true, 'false unless the member is down');
  return record;
}

export function decodeRoles(wire: unknown): readonly string[] {
  return listOf(wire, limits.roles, 'roles').map((role) => textOf(role, limits.roleChars, 'role'));
}

function decodeStarted(wire: unknown): ReadonlyMap<string, StartedRecord> {
  const started = new Map<string, StartedRecord>();
  for (const item of listOf(wire, limits.singletons, 'started')) {
    const fields = tupleOf(item, 4, 'started');
    const role = fields[2] === null ? undefined : textOf(fields[2], limits.roleChars, 'role');
    const record: StartedRecord = { generation: countOf(fields[1], 'generation'), role };
    started.set(
      textOf(fields[0], limits.typeNameChars, 'singleton'),
      flagOf(fields[3], 'spread') ? { ...record, placement: 'spread' } : record,
    );
  }
  return started;
}

function decodeHosting(wire: unknown): ReadonlyMap<string, HostingClaim> {
  const hosting = new Map<string, HostingClaim>();
  for (const item of listOf(wire, limits.singletons, 'hosting')) {
    const fields = tupleOf(item, 4, 'hosting');
    hosting.set(textOf(fields[0], limits.typeNameChars, 'singleton'), {
      epoch: countOf(fields[1], 'epoch'),
      plannedSince: countOf(fields[2], 'plannedSince'),
      since: countOf(fields[3], 'since'),
    });
  }
  return hosting;
}

function decodeReachability(
  wire: unknown,
  records: ReadonlyMap<string, MemberRecord>,
): ReadonlyMap<string, ReadonlyMap<string, Observation>> {
  const table = new Map<string, ReadonlyMap<string, Observation>>();
  for (const item of listOf(wire, limits.members * 2, 'reachability')) {
    const fields = tupleOf(item, 2, 'reachability');
    const observer = textOf(fields[0], limits.uidChars, 'observer');
    const row = new Map<string, Observation>();
    for (const cell of listOf(fields[1], limits.members * 2, 'reachability')) {
      const parts = tupleOf(cell, 3, 'reachability');
      const subject = textOf(parts[0], limits.uidChars, 'subject');
      if (!records.has(subject)) fail('subject', subject, 'a member of the same message');
      row.set(subject, { version: countOf(parts[1], 'version'), unreachable: flagOf(parts[2], 'unreachable') });
    }
    if (!records.has(observer)) fail('observer', observer, 'a member of the same message');
    table.set(observer, row);
  }
  return table;
}

function decodeEntries(wire: unknown): ReadonlyMap<string, ClusterEntry> {
  const entries = new Map<string, ClusterEntry>();
  // Several that write at once may go beyond the bound, and must be understood by all the same.
  for (const item of listOf(wire, limits.entries * 2, 'entries')) {
    const fields = tupleOf(item, 4, 'entry');
    const key = textOf(fields[0], limits.entryKeyChars, 'entry key');
    const by = textOf(fields[2], limits.uidChars, 'entry writer');
    entries.set(key, { key, version: countOf(fields[1], 'entry version'), by, value: fields[3] });
  }
  return entries;
}

function decodeTombstones(wire: unknown, now: number): ReadonlyMap<string, Tombstone> {
  const tombstones = new Map<string, Tombstone>();
  for (const item of listOf(wire, limits.tombstones, 'tombstones')) {
    const fields = tupleOf(item, 2, 'tombstone');
    tombstones.set(textOf(fields[0], limits.uidChars, 'uid'), { address: addressOf(fields[1]), since: now });
  }
  return tombstones;
}

/** What changed, and the digest of the state that it led to. */
export function decodeDelta(wire: unknown, digest: unknown, now: number): Decoded<GossipMessage> {
  const delta = decodeGossip(wire, now);
  if ('refused' in delta) return delta;
  return decode(() => ({ ...delta.value, digest: textOf(digest, 16, 'digest') }));
}
