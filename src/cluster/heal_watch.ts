/**
 * Rule 6 at work, and how a node learns that it was removed: both are notices in which one side describes itself. Every
 * few seconds configured seeds and addresses of members that were downed are asked who they are.
 */
import type { Address, DialFailure, PeerIdentity, SeedAnswer } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { limits } from '../limits.ts';
import { codes } from '../wire/codes.ts';
import { Alarm } from './alarm.ts';
import type { MemberChange } from './contract.ts';
import { isActiveUid, leaderOf } from './convergence.ts';
import { decode, encodeRecord } from './gossip_codec.ts';
import { compareSides, isApart, rankOf, type SideRank } from './heal.ts';
import { selfRecord } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import { isActive } from './transitions.ts';
import { addressOf, countOf, fail, flagOf, textOf } from './wire_checks.ts';

/**
 * `removed`: your uid is a tombstone here. `unknown`: it has been unknown here for long. `side`: we are another side, or, to
 * a node that is in no cluster, an invitation.
 */
type NoticeKind = 'removed' | 'unknown' | 'side';

const healEveryMs = 5_000;
const unfoundedEveryMs = 1_000;
/** The leader looks for seeds that are missing this often, so that they come to this cluster and found no other. */
const inviteEveryMs = 250;
/** Addresses of downed members that are asked, and for how long. */
const lostKept = 32;
const lostForMs = 60 * 60 * 1_000;
/** A member that we do not know yet may just be ahead of its gossip. */
const unknownForMs = 3_000;
const noticeEveryMs = 500;
/** After a long pause of its own a node believes whoever says that it is out. */
const doubtMs = 10_000;

export class HealWatch {
  #node: NodeContext;
  #alarm: Alarm;
  #asking = new Map<string, () => void>();
  #lost = new Map<Address, number>();
  #noticed = new Map<string, number>();
  #strangers = new Map<string, number>();
  #doubtUntil = -Infinity;
  #nextFullAt = -Infinity;
  /** Seeds spelt otherwise than their node's address: by the seed, the address that answered. */
  #spelt = new Map<string, Address>();

  constructor(node: NodeContext) {
    this.#node = node;
    this.#alarm = new Alarm(node.environment, () => this.#round());
  }

  start(): void {
    this.#schedule();
  }

  stop(): void {
    this.#alarm.stop();
    for (const cancel of this.#asking.values()) cancel();
    this.#asking.clear();
  }

  paused(pauseMs: number): void {
    if (pauseMs < this.#node.settings.timing.unreachableAfterMs) return;
    this.#doubtUntil = this.#node.environment.clock.now() + doubtMs;
  }

  /** Remembers where members were that did not leave by themselves. */
  changed(changes: readonly MemberChange[]): void {
    const now = this.#node.environment.clock.now();
    if (changes.length > 0) this.#schedule();
    for (const change of changes) {
      if (change.kind !== 'member' || change.member.status !== 'removed' || change.before === undefined) continue;
      const { status, address, terminated } = change.before;
      if (status === 'leaving' || status === 'exiting' || terminated) continue;
      this.#lost.delete(address);
      this.#lost.set(address, now);
      const first = this.#lost.keys().next();
      if (this.#lost.size > lostKept && first.done !== true) this.#lost.delete(first.value);
    }
  }

  /** Somebody who is no member here talks to us as if it were. */
  stranger(peer: PeerIdentity): void {
    const { gossip } = this.#node.membership();
    if (gossip.tombstones.has(peer.uid)) return this.#notice(peer.address, peer.uid, 'removed');
    const now = this.#node.environment.clock.now();
    const since = this.#strangers.get(peer.uid);
    if (since === undefined) remember(this.#strangers, peer.uid, now);
    else if (now - since >= 2 * unknownForMs) this.#strangers.set(peer.uid, now);
    else if (now - since >= unknownForMs) this.#notice(peer.address, peer.uid, 'unknown');
  }

  otherCluster(peer: PeerIdentity): void {
    this.#notice(peer.address, peer.uid, 'side');
  }

  received(from: PeerIdentity, envelope: Envelope): void {
    const decoded = decode(() => decodeNotice(envelope));
    if ('refused' in decoded) return this.#node.count('refused notice');
    const { kind, uid, rank, apart } = decoded.value;
    const state = this.#node.membership();
    if (state.phase !== 'member' || (kind !== 'side' && uid !== state.selfUid)) return;
    const known = isActiveUid(state.gossip, from.uid);
    const inDoubt = this.#node.environment.clock.now() < this.#doubtUntil && rank.clusterId === state.gossip.clusterId;
    if (kind === 'unknown' && known && !inDoubt && !this.#isOut(from)) return;
    if (kind !== 'side' && (inDoubt || known)) {
      const left = selfRecord(state).status === 'exiting';
      const why = left ? 'left' : 'this node was removed';
      return this.#node.dispatch({ kind: 'end', why, selfDown: !left, rejoin: !left });
    }
    const order = compareSides(rankOf(state.gossip), rank);
    if (order === 0 && kind === 'side') return;
    if (order < 0) {
      const other = !known && isApart(state.gossip, rank);
      return other ? this.#notice(from.address, from.uid, 'side', true) : undefined;
    }
    // One that was paused while its cluster took it out still believes in its own side, of which this one may be a part.
    if (order > 0 && !apart && rank.clusterId === state.gossip.clusterId) {
      return this.#notice(from.address, from.uid, 'side');
    }
    this.#lose(rank, from);
  }

  /**
   * A member does not know this node. It may be cut off from those who do: while this node is still joining it asks that
   * member as well to let it in. Only the leader knows everybody who is up.
   */
  #isOut(from: PeerIdentity): boolean {
    const state = this.#node.membership();
    const self = selfRecord(state);
    if (self.status === 'joining') {
      this.#node.send(from.address, [codes.join, encodeRecord(self), this.#node.settings.fingerprint]);
      return false;
    }
    return leaderOf(state.gossip.records)?.uid === from.uid;
  }

  /** The other side lives on: this one learns it as a whole, each node ends and may come back as a new uid. */
  #lose(rank: SideRank, from: PeerIdentity): void {
    const { gossip, selfUid } = this.#node.membership();
    for (const record of gossip.records.values()) {
      if (record.uid !== selfUid && isActive(record.status)) {
        this.#node.send(record.address, encodeNotice('side', record.uid, rank, true));
      }
    }
    const why = `heal: the side of ${rank.address} (number ${rank.upNumber}) lives on`;
    const via = [...new Set([rank.address, from.address])];
    this.#node.dispatch({ kind: 'end', why, selfDown: true, rejoin: true, via });
  }

  #notice(to: Address, uid: string, kind: NoticeKind, apart = kind === 'removed'): void {
    const now = this.#node.environment.clock.now();
    const key = `${uid} ${apart}`;
    if (now - (this.#noticed.get(key) ?? -Infinity) < noticeEveryMs) return;
    remember(this.#noticed, key, now);
    this.#node.send(to, encodeNotice(kind, uid, rankOf(this.#node.membership().gossip), apart));
  }

  #schedule(): void {
    const { gossip, selfUid, phase } = this.#node.membership();
    if (phase !== 'member') return;
    const leads = leaderOf(gossip.records)?.uid === selfUid && this.#node.settings.seeds.length > 0;
    const everyMs = gossip.lastNumber === 0 ? unfoundedEveryMs : leads ? inviteEveryMs : healEveryMs;
    this.#alarm.at(this.#node.environment.clock.now() + everyMs);
  }

  #round(): void {
    const { settings, environment } = this.#node;
    const now = environment.clock.now();
    for (const [lost, since] of this.#lost) if (since < now - lostForMs) this.#lost.delete(lost);
    const missing = this.#missing();
    const full = now >= this.#nextFullAt;
    if (full) this.#nextFullAt = now + healEveryMs;
    for (const target of missing) {
      if (this.#asking.has(target) || !(full || settings.seeds.includes(target))) continue;
      const cancel = settings.transport.seed(target, (answer) => {
        this.#asking.delete(target);
        if (!('reason' in answer) && answer.address !== target && this.#lost.get(target) === undefined) {
          this.#spelt.set(target, answer.address);
        }
        this.#answered(answer);
      });
      this.#asking.set(target, cancel);
    }
    // With everybody here there is nothing to wake up for before the next change.
    if (missing.size > 0) this.#schedule();
  }

  /** Seeds, and addresses of lost members, at which no active member is known. */
  #missing(): Set<string> {
    const present = new Set([this.#node.address]);
    for (const { status, address } of this.#node.membership().gossip.records.values()) {
      if (isActive(status)) present.add(address);
    }
    const targets = [...this.#node.settings.seeds, ...this.#lost.keys()];
    return new Set(targets.filter((target) => !present.has(this.#spelt.get(target) ?? target)));
  }

  #answered(answer: SeedAnswer | DialFailure): void {
    const { phase, gossip } = this.#node.membership();
    if ('reason' in answer || phase !== 'member' || answer.uid === this.#node.settings.uid) return;
    if (answer.clusterName !== this.#node.settings.clusterName) return;
    if (answer.clusterId === gossip.clusterId && isActiveUid(gossip, answer.uid)) return;
    this.#notice(answer.address, answer.uid, 'side');
  }
}

function remember(map: Map<string, number>, key: string, value: number): void {
  map.delete(key);
  map.set(key, value);
  const first = map.keys().next();
  if (map.size > limits.members && first.done !== true) map.delete(first.value);
}

/** `apart`: the sender's side has taken out the one that it tells this. */
function encodeNotice(kind: NoticeKind, uid: string, rank: SideRank, apart: boolean): Envelope {
  const { clusterId, formedAt, founded, upNumber, address } = rank;
  return [codes.removedNotice, kind, uid, clusterId, formedAt, founded, upNumber, address, apart];
}

function decodeNotice(envelope: Envelope): { kind: NoticeKind; uid: string; rank: SideRank; apart: boolean } {
  const [, kind, uid, clusterId, formedAt, founded, upNumber, address, apart] = envelope;
  if (kind !== 'removed' && kind !== 'unknown' && kind !== 'side') {
    return fail('notice', kind, 'removed, unknown or side');
  }
  return {
    kind,
    uid: textOf(uid, limits.uidChars, 'uid'),
    rank: {
      clusterId: textOf(clusterId, limits.uidChars, 'cluster id'),
      formedAt: countOf(formedAt, 'formedAt'),
      founded: flagOf(founded, 'founded'),
      upNumber: countOf(upNumber, 'upNumber'),
      address: addressOf(address),
    },
    apart: flagOf(apart, 'apart'),
  };
}
