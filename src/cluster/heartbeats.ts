/**
 * Heartbeats to the neighbours on the ring, answered by them: only the answer is a sign of life, so a one-way cut counts
 * as a cut. Each heartbeat also names the peers whose link its sender has lost, which shortens detection where others
 * confirm it.
 */
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import {
  type DetectorEvent,
  type DetectorOptions,
  type DetectorState,
  newDetector,
  stepDetector,
} from './failure_detector.ts';
import { decode } from './gossip_codec.ts';
import type { GossipState } from './gossip_state.ts';
import type { Phase } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import type { PeriodicWork } from './pulse.ts';
import { ringOf, ringSize, watchedBy } from './ring.ts';
import type { OwnVerdicts } from './view.ts';
import { countOf, listOf, textOf } from './wire_checks.ts';
import { limits } from '../limits.ts';

/** More than half of the wait: of two nodes out of step one then always beats with the other. */
const early = 5 / 8;

export class Heartbeats {
  #node: NodeContext;
  #options: DetectorOptions;
  #detector: DetectorState;
  #ticks: PeriodicWork;
  #beats: PeriodicWork;
  #sequence = 0;
  /** How far the wall clock was ahead of the monotonic one at the last look. */
  #ahead = Infinity;
  #linkLost = new Set<string>();
  #onPause: (pauseMs: number) => void;
  /** What the watched members were last chosen from. */
  #looked: { gossip: GossipState; phase: Phase; ring: readonly string[]; claims: unknown } | undefined;

  constructor(node: NodeContext, onPause: (pauseMs: number) => void) {
    const { heartbeatMs, unreachableAfterMs } = node.settings.timing;
    this.#node = node;
    this.#options = { heartbeatMs, unreachableAfterMs };
    this.#detector = newDetector(node.settings.uid);
    this.#onPause = onPause;
    this.#ticks = node.pulse.work(early, () => this.#tick());
    this.#beats = node.pulse.work(early, () => this.#beat());
  }

  /** Of the members that it watches. */
  get verdicts(): OwnVerdicts {
    return this.#detector.peers;
  }

  start(): void {
    this.#watch();
    this.#tick();
    this.#beat();
  }

  /**
   * Notices a pause of this process before anything that waited meanwhile is read. Where the machine slept the monotonic clock may
   * have stood still: then the wall clock ran ahead of it.
   */
  catchUp(): void {
    const { clock } = this.#node.environment;
    const { tickDueAt } = this.#detector;
    const { unreachableAfterMs } = this.#options;
    const now = clock.now();
    const ahead = clock.wall() - now;
    const slept = ahead - this.#ahead >= unreachableAfterMs;
    this.#ahead = ahead;
    if (slept) this.#node.dispatch({ kind: 'woke' });
    if (tickDueAt !== undefined && now - tickDueAt >= unreachableAfterMs) this.#tick();
  }

  stop(): void {
    this.#ticks.stop();
    this.#beats.stop();
  }

  /** The membership may have changed. */
  refresh(): void {
    const { gossip, selfUid, phase } = this.#node.membership();
    if (this.#looked?.gossip === gossip) return;
    const looked = { gossip, phase, ring: ringOf(gossip), claims: gossip.reachability.get(selfUid) };
    const { ring, claims, phase: before } = this.#looked ?? {};
    this.#looked = looked;
    if (ring === looked.ring && claims === looked.claims && before === phase) return this.#forgetGone();
    const known = this.#detector.peers;
    this.#watch();
    for (const uid of this.#detector.peers.keys()) if (!known.has(uid)) this.#beatTo(uid);
  }

  linkLost(uid: string): void {
    this.#linkLost.add(uid);
    this.#step({ kind: 'link-lost', uid, by: this.#node.settings.uid });
    if (this.#detector.peers.has(uid)) { for (const other of this.#detector.peers.keys()) this.#beatTo(other); }
  }

  linkOpen(uid: string): void {
    this.#linkLost.delete(uid);
    this.#step({ kind: 'link-open', uid, by: this.#node.settings.uid });
  }

  /** From an active member. */
  heartbeat(from: PeerIdentity, envelope: Envelope): void {
    const decoded = decode(() => ({
      sequence: countOf(envelope[1], 'sequence'),
      lost: listOf(envelope[2], limits.members, 'lost links').map((uid) => textOf(uid, limits.uidChars, 'lost link')),
    }));
    if ('refused' in decoded) return this.#node.count('refused heartbeat');
    this.#node.send(from.address, [codes.heartbeatAck, decoded.value.sequence]);
    const { lost } = decoded.value;
    for (const [uid, { linkLostBy }] of this.#detector.peers) {
      const isLost = lost.includes(uid);
      if (uid === from.uid || linkLostBy.has(from.uid) === isLost) continue;
      this.#step({ kind: isLost ? 'link-lost' : 'link-open', uid, by: from.uid });
    }
    // On a longer ring one beat would run around it, and set off the next.
    if (this.#node.membership().gossip.records.size <= ringSize + 1) this.#node.pulse.beat();
  }

  acknowledged(from: PeerIdentity, envelope: Envelope): void {
    const sequence = envelope[1];
    if (!Number.isSafeInteger(sequence) || (sequence as number) < 0 || (sequence as number) > this.#sequence) {
      return this.#node.count('refused heartbeat');
    }
    this.#step({ kind: 'heartbeat', uid: from.uid, sequence: sequence as number });
  }

  #watch(): void {
    const { gossip, selfUid, phase } = this.#node.membership();
    const uids = phase === 'member' ? watchedBy(ringOf(gossip), gossip, selfUid) : [];
    this.#forgetGone();
    this.#step({ kind: 'watch', uids });
  }

  #forgetGone(): void {
    const { records } = this.#node.membership().gossip;
    for (const uid of this.#linkLost) if (!records.has(uid)) this.#linkLost.delete(uid);
  }

  #beat(): void {
    const { clock } = this.#node.environment;
    // The link of one that was removed may end after that.
    this.#forgetGone();
    for (const uid of this.#detector.peers.keys()) this.#beatTo(uid);
    this.#beats.at(clock.now() + this.#options.heartbeatMs);
  }

  #beatTo(uid: string): void {
    const record = this.#node.membership().gossip.records.get(uid);
    if (record === undefined) return;
    const lost = [...this.#linkLost].slice(0, 2 * ringSize);
    this.#node.send(record.address, [codes.heartbeat, ++this.#sequence, lost]);
  }

  #tick(): void {
    this.#step({ kind: 'tick' });
  }

  #step(event: DetectorEvent): void {
    const now = this.#node.environment.clock.now();
    const { state, effects } = stepDetector(this.#detector, event, now, this.#options);
    this.#detector = state;
    for (const effect of effects) {
      switch (effect.kind) {
        case 'unreachable':
        case 'reachable':
          this.#node.environment.log.info(`member is ${effect.kind}`, { uid: effect.uid });
          this.#node.dispatch({ kind: 'observed', uid: effect.uid, unreachable: effect.kind === 'unreachable' });
          break;
        case 'dropped':
          this.#node.dispatch({ kind: 'observed', uid: effect.uid, unreachable: false });
          break;
        case 'paused':
          if (effect.pauseMs >= this.#options.unreachableAfterMs) this.#node.dispatch({ kind: 'woke' });
          this.#onPause(effect.pauseMs);
          break;
        default:
          effect satisfies never;
      }
    }
    if (this.#detector.tickDueAt !== undefined) this.#ticks.at(this.#detector.tickDueAt);
  }
}
