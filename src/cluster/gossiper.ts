/** Sends the gossip state: pushes once per turn when it changed, digests in the periodic round, whole states on request. */
import { fastPaths } from '../fast_paths.ts';
import type { Address } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { byAge, leaderOf } from './convergence.ts';
import { encodeGossip } from './gossip_codec.ts';
import { deltaOf, isEmptyDelta } from './gossip_delta.ts';
import { digestOf, type GossipState, type MemberRecord, type Tombstone } from './gossip_state.ts';
import { limits } from '../limits.ts';
import type { NodeContext } from './node_context.ts';
import type { PeriodicWork } from './pulse.ts';
import { ringOf, watchedBy } from './ring.ts';
import { encodeSeen } from './seen.ts';
import { membersSize } from './state_size.ts';
import { isActive } from './transitions.ts';

/** Up to this many members a push goes to everybody. */
export const pushToAllUpTo = 12;
const oldestPushed = 3;
const randomPushed = 4;
const repaired = 3;
const repeatMs = 250;
/** Tombstones of the last minute go with every state. */
const recentMs = 60_000;
const recentKept = 256;
/** A large cluster that has changed without a pause for so long repairs differences in the middle of it. */
const fluxMs = 10_000;
/** From this size on a state travels whole only to who lacks it, also in a small cluster. */
const largeBytes = limits.frameBytes;

/** Rounds go with every second heartbeat, hardly more often than asked for. */
const early = 0.3;

export class Gossiper {
  #node: NodeContext;
  #round: PeriodicWork;
  #wanted: 'nothing' | 'progress' | 'push' = 'nothing';
  #scheduled = false;
  #intervalMs: number;
  #toAllUpTo: number;
  /** What others have been told of, or had before this node. */
  #told: GossipState | undefined;
  /** By address: what was last said there as a whole, and when. */
  readonly #replied = new Map<Address, { readonly what: string; readonly at: number }>();
  /** When this node's state was last quiet, and when it last changed. */
  #calmAt = -Infinity;
  #changedAt = -Infinity;

  /** The active members but this one, of these records. */
  #active: { readonly of: unknown; readonly others: readonly MemberRecord[] } | undefined;

  constructor(node: NodeContext) {
    this.#node = node;
    this.#intervalMs = node.settings.gossipIntervalMs ?? 1_000;
    this.#toAllUpTo = node.settings.gossipToAllUpTo ?? pushToAllUpTo;
    this.#round = node.pulse.work(early, () => this.#repair());
  }

  start(): void {
    this.#told = this.#node.membership().gossip;
    this.#round.at(
      this.#node.environment.clock.now() + this.#intervalMs * (0.5 + this.#node.environment.random.next() / 2),
    );
  }

  stop(): void {
    this.#round.stop();
  }

  want(what: 'progress' | 'push'): void {
    const now = this.#node.environment.clock.now();
    if (now - this.#changedAt >= this.#intervalMs) this.#calmAt = now;
    this.#changedAt = now;
    if (this.#wanted !== 'push') this.#wanted = what;
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#node.environment.turns.schedule(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  /** Sends what is wanted now. */
  flush(): void {
    const wanted = this.#wanted;
    this.#wanted = 'nothing';
    if (wanted === 'push') this.#push();
    else if (wanted === 'progress') this.#progress();
  }

  /**
   * The whole state to one node; `about`: tombstones that it must hear of. The same is not said twice within `repeatMs`: of two
   * that have each put the other out, either answers whatever it hears with what the other will not take.
   */
  reply(to: Address, about: readonly string[]): void {
    const { gossip, seen } = this.#node.membership();
    const now = this.#node.environment.clock.now();
    const what = `${digestOf(gossip)} ${seen.size} ${about.join(' ')}`;
    const last = this.#replied.get(to);
    if (last?.what === what && now - last.at < repeatMs) return this.#node.count('repeated gossip');
    this.#replied.delete(to);
    this.#replied.set(to, { what, at: now });
    const oldest = this.#replied.keys().next();
    if (this.#replied.size > limits.members && oldest.done !== true) this.#replied.delete(oldest.value);
    const tombstones = new Map(this.#recentTombstones());
    for (const uid of about) {
      const tombstone = gossip.tombstones.get(uid);
      if (tombstone !== undefined) tombstones.set(uid, tombstone);
    }
    this.#node.send(to, [codes.gossip, encodeGossip(gossip, this.#seen(), tombstones)]);
  }

  /**
   * To one whose digest differs. In a large cluster whose state has just changed the difference is most likely on its way as a
   * delta; a state that keeps changing is repaired all the same after a while.
   */
  repair(to: Address): void {
    const now = this.#node.environment.clock.now();
    const { records } = this.#node.membership().gossip;
    const large = records.size > this.#toAllUpTo + 1 || takesMuch(records);
    const inFlux = now - this.#changedAt < this.#intervalMs && now - this.#calmAt < fluxMs;
    if (!large || !inFlux) this.reply(to, []);
  }

  ask(to: Address): void {
    this.#digests([to], 'whole');
  }

  /** Tells members that were just removed, as far as their link is still there. */
  farewell(members: readonly MemberRecord[]): void {
    for (const { uid, address } of members) {
      if (this.#node.peers.connected(address)?.uid === uid) this.reply(address, [uid]);
    }
  }

  #push(): void {
    const { gossip } = this.#node.membership();
    const targets = this.#pushTargets();
    const told = this.#told;
    this.#told = gossip;
    const delta = fastPaths.deltas && targets.length > 0 && told?.clusterId === gossip.clusterId &&
        (this.#others().length > this.#toAllUpTo || takesMuch(gossip.records))
      ? deltaOf(told, gossip)
      : undefined;
    let whole: Envelope | undefined;
    const rest: Envelope | undefined = delta && this.#deltaEnvelope(delta, told);
    for (const { address, status } of targets) {
      // Who joins has nothing that a delta could be added to.
      if (rest !== undefined && status !== 'joining') this.#node.send(address, rest);
      else {
        this.#node.send(
          address,
          whole ??= [codes.gossip, encodeGossip(gossip, this.#seen(), this.#recentTombstones())],
        );
      }
    }
  }

  #deltaEnvelope(delta: GossipState, told: GossipState | undefined): Envelope {
    const { gossip } = this.#node.membership();
    if (told !== undefined && isEmptyDelta(delta, told)) {
      return [codes.gossipDigest, gossip.clusterId, digestOf(gossip), this.#seen(), false];
    }
    return [codes.gossipDelta, encodeGossip(delta, this.#seen(), delta.tombstones), digestOf(gossip)];
  }

  #pushTargets(): MemberRecord[] {
    const { gossip, selfUid } = this.#node.membership();
    const active = activeBut(selfUid, byAge(gossip.records));
    // Who was downed hears it as long as its link is there.
    const downed = ringOf(gossip).length === gossip.records.size
      ? []
      : byAge(gossip.records).filter((record) =>
        record.status === 'down' && record.uid !== selfUid && !record.terminated &&
        this.#node.peers.connected(record.address)?.uid === record.uid
      );
    if (active.length <= this.#toAllUpTo) return [...active, ...downed];
    const chosen = new Set<string>(active.slice(0, oldestPushed).map((record) => record.uid));
    const leader = leaderOf(gossip.records)?.uid;
    if (leader !== undefined && leader !== selfUid) chosen.add(leader);
    for (const uid of watchedBy(ringOf(gossip), gossip, selfUid).slice(0, 1)) chosen.add(uid);
    for (const { uid } of this.#pick(active, randomPushed)) chosen.add(uid);
    return [...active.filter((record) => chosen.has(record.uid)), ...downed];
  }

  /** Everybody while few; else the leader, who must know. */
  #progress(): void {
    const { gossip, selfUid } = this.#node.membership();
    const active = this.#others();
    const leader = leaderOf(gossip.records);
    const targets = active.length <= this.#toAllUpTo || leader === undefined || leader.uid === selfUid
      ? active
      : [leader];
    this.#digests(targets.map(({ address }) => address), false);
  }

  #repair(): void {
    const { seen } = this.#node.membership();
    const others = this.#others();
    const behind = others.filter((record) => !seen.has(record.uid));
    const targets = new Set([...this.#pick(behind, repaired), ...this.#pick(others, repaired)]);
    this.#digests([...targets].map(({ address }) => address), true);
    this.#round.at(this.#node.environment.clock.now() + this.#intervalMs);
  }

  #digests(to: readonly Address[], repair: boolean | 'whole'): void {
    if (to.length === 0) return;
    const { gossip } = this.#node.membership();
    const envelope: Envelope = [codes.gossipDigest, gossip.clusterId, digestOf(gossip), this.#seen(), repair];
    for (const address of to) this.#node.send(address, envelope);
  }

  #seen(): readonly string[] | true {
    const { gossip, seen, selfUid } = this.#node.membership();
    return encodeSeen(gossip, seen, selfUid);
  }

  #others(): readonly MemberRecord[] {
    const { gossip: { records }, selfUid } = this.#node.membership();
    if (this.#active?.of !== records) this.#active = { of: records, others: activeBut(selfUid, records.values()) };
    return this.#active.others;
  }

  #pick(records: readonly MemberRecord[], count: number): MemberRecord[] {
    const left = [...records];
    const picked: MemberRecord[] = [];
    while (picked.length < count && left.length > 0) {
      picked.push(...left.splice(Math.floor(this.#node.environment.random.next() * left.length), 1));
    }
    return picked;
  }

  #recentTombstones(): [string, Tombstone][] {
    const { tombstones } = this.#node.membership().gossip;
    const since = this.#node.environment.clock.now() - recentMs;
    const recent: [string, Tombstone][] = [];
    for (const entry of [...tombstones].reverse()) {
      if (entry[1].since < since || recent.length >= recentKept) break;
      recent.push(entry);
    }
    return recent;
  }
}

function takesMuch(records: ReadonlyMap<string, MemberRecord>): boolean {
  return membersSize(records.values()).bytes > largeBytes;
}

function activeBut(uid: string, records: Iterable<MemberRecord>): MemberRecord[] {
  const others: MemberRecord[] = [];
  for (const record of records) if (record.uid !== uid && isActive(record.status)) others.push(record);
  return others;
}
