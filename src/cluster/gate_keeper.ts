/**
 * Rule 2 at work: pings while this node hosts, answers to others' pings, and the gate the dispatcher asks. Where an arbiter
 * decides about splits, every node pings, to know since when one has been silent.
 */
import type { Cancel } from '../actor/environment.ts';
import { type Instant, instantOf } from '../coordination/holder_state.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { HostGate } from './contract.ts';
import { heardEveryMs } from './downing/lease_majority.ts';
import { acknowledged, emptyGate, gateDeadline, type GateState, graceDeadline, retained } from './gate.ts';
import { answered, forgotten, type HeardState, longestSilenceMs, nobodyHeard, seen, silenceMs } from './heard.ts';
import { selfRecord } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import type { PeriodicWork } from './pulse.ts';
import { stableAfterMs } from './timing.ts';
import { isActive } from './transitions.ts';

/** The part of its wait by which a ping may come with the heartbeats; more than half, so that two hosts fall into step. */
const early = 5 / 8;

/** Pings whose answers may still count are remembered; older ones have passed the window. */
const pingsKept = 64;

/** Readings of two clocks that are taken one after the other differ by this without meaning anything, in milliseconds. */
const clockSlackMs = 50;

export class GateKeeper implements HostGate {
  #node: NodeContext;
  #state: GateState = emptyGate;
  #heard: HeardState = nobodyHeard;
  /** Nobody on the other side of a split that this node sees is answered, where an arbiter is to decide about it. */
  #unanswered: ReadonlySet<string> = new Set();
  #deadline = Infinity;
  /** There have been acknowledgements since the deadline was computed: it may be later, and is not earlier. */
  #behind = false;
  /** How far the wall clock was ahead of the monotonic one when this node last looked. */
  #ahead: number | undefined;
  #hosting = false;
  #pinging = false;
  #foundClosed = false;
  #ended = false;
  #nonce = 0;
  #sent = new Map<number, Instant>();
  /** Who was in the last round of pings. */
  #pinged: ReadonlySet<string> = new Set();
  #pings: PeriodicWork;
  #listeners = new Set<() => void>();

  constructor(node: NodeContext) {
    this.#node = node;
    this.#pings = node.pulse.work(early, () => this.#ping());
  }

  open(): boolean {
    if (this.#deadline === Infinity) return true;
    const now = this.#node.environment.clock.now();
    if (now >= this.#deadline && this.#behind) this.#setDeadline();
    if (now < this.#deadline && !this.#slept()) return true;
    this.#foundClosed = true;
    return false;
  }

  onOpen(run: () => void): Cancel {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  /**
   * The wall clock moved against the monotonic one: the machine was suspended, or the clock was set (set back, it could hide a
   * suspend). What was heard before says nothing any more; with answers to new pings it goes on.
   */
  #slept(): boolean {
    const { clock } = this.#node.environment;
    if (this.#ahead !== undefined && Math.abs(clock.wall() - clock.now() - this.#ahead) <= clockSlackMs) return false;
    const { now, wall } = this.#instant();
    const moved = wall - now - (this.#ahead ?? wall - now);
    if (Math.abs(moved) <= clockSlackMs) return false;
    this.#ahead = wall - now;
    if (moved < 0) this.#heard = forgotten(this.#heard);
    this.#state = emptyGate;
    this.#sent.clear();
    if (this.#hosting) {
      this.#setDeadline();
      this.#pings.at(now);
    }
    return true;
  }

  /** Closed for good. */
  end(): void {
    this.#ended = true;
    this.#behind = false;
    this.#deadline = -Infinity;
    this.#pings.cancel();
  }

  /** For how long the member that has been silent longest has been so; known where an arbiter decides about splits. */
  longestSilenceMs(): number {
    const { members, self } = this.#node.view();
    return longestSilenceMs(this.#heard, members, self, this.#instant());
  }

  /**
   * Can a member that turns out to be dead have taken this node out before? Not where no arbiter is; nor when it was heard so
   * lately that it cannot have seen a split for as long as a claim needs.
   */
  mayHaveClaimed(uid: string): boolean {
    const { strategy, timing } = this.#node.settings;
    if (strategy.arbiter === undefined) return false;
    const { members, self } = this.#node.view();
    const member = members.find((one) => one.uid === uid);
    if (member === undefined) return false;
    const soonestMs = stableAfterMs(timing, 1) * (1 - 2 * timing.driftBound);
    return silenceMs(this.#heard, member, self, this.#instant()) >= soonestMs;
  }

  leaveUnanswered(uids: ReadonlySet<string>): void {
    this.#unanswered = uids;
  }

  /** The view may have changed. */
  refresh(): void {
    if (this.#ended) return;
    this.#follow();
    const { strategy, uid } = this.#node.settings;
    const hosting = strategy.gated !== false && selfRecord(this.#node.membership()).hosting.size > 0;
    const pinging = hosting || strategy.arbiter !== undefined;
    const begins = (hosting && !this.#hosting) || (pinging && !this.#pinging);
    this.#hosting = hosting;
    this.#pinging = pinging;
    if (!pinging) {
      this.#pings.cancel();
      this.#deadline = Infinity;
    } else {
      const { members } = this.#node.view();
      this.#state = retained(this.#state, members);
      if (strategy.arbiter !== undefined) this.#heard = seen(this.#heard, members, uid, this.#instant());
      if (hosting) this.#setDeadline();
      else this.#deadline = Infinity;
      // A newcomer counts at once: without an answer from it the gate might stay closed until the next round.
      const newcomer = members.some((member) =>
        isActive(member.status) && member.uid !== uid && !this.#pinged.has(member.uid)
      );
      if (begins || newcomer) this.#ping();
    }
    this.#maybeOpened();
  }

  /** Clocks that drift apart slowly are no suspend. */
  #follow(): void {
    if (this.#slept()) return;
    const { now, wall } = this.#instant();
    this.#ahead = wall - now;
  }

  #setDeadline(): void {
    this.#behind = false;
    this.#deadline = this.#hostingDeadline();
  }

  #hostingDeadline(): number {
    const { strategy, timing: { gateWindowMs, driftBound }, uid } = this.#node.settings;
    const { members, self } = this.#node.view();
    const { acks } = this.#state;
    const deadline = gateDeadline(strategy, members, uid, acks, gateWindowMs);
    const { arbiter } = strategy;
    if (arbiter === undefined || deadline === Infinity) return deadline;
    const graceMs = arbiter.minorityDelayMs * (1 - 2 * driftBound);
    const at = this.#instant();
    const last = at.now - longestSilenceMs(this.#heard, members, self, at);
    return Math.max(deadline, graceDeadline(arbiter, members, uid, acks, gateWindowMs, graceMs, last));
  }

  /** From a member that is not down; nobody else is acknowledged. */
  pinged(from: PeerIdentity, envelope: Envelope): void {
    if (this.#unanswered.has(from.uid) || !Number.isSafeInteger(envelope[1])) return;
    this.#node.send(from.address, [codes.gatePong, envelope[1]]);
  }

  ponged(from: PeerIdentity, envelope: Envelope): void {
    const sentAt = this.#sent.get(envelope[1] as number);
    if (sentAt === undefined) return;
    this.#heard = answered(this.#heard, from.uid, sentAt);
    const next = acknowledged(this.#state, from.uid, sentAt.now);
    if (next === this.#state) return;
    this.#state = next;
    if (this.#foundClosed || this.#node.settings.strategy.arbiter !== undefined) return this.refresh();
    if (this.#ended || !this.#pinging) return;
    this.#behind = true;
    this.#follow();
  }

  #instant(): Instant {
    return instantOf(this.#node.environment.clock);
  }

  #ping(): void {
    const nonce = ++this.#nonce;
    const at = this.#instant();
    this.#sent.set(nonce, at);
    this.#sent.delete(nonce - pingsKept);
    const pinged = new Set<string>();
    const ping = [codes.gatePing, nonce] as const;
    for (const record of this.#node.membership().gossip.records.values()) {
      if (record.uid === this.#node.settings.uid || !isActive(record.status)) continue;
      pinged.add(record.uid);
      this.#node.send(record.address, ping);
    }
    this.#pinged = pinged;
    const { gatePingMs } = this.#node.settings.timing;
    this.#pings.at(at.now + (this.#hosting ? gatePingMs : Math.max(gatePingMs, heardEveryMs)));
  }

  #maybeOpened(): void {
    if (!this.#foundClosed || this.#node.environment.clock.now() >= this.#deadline) return;
    this.#foundClosed = false;
    for (const run of [...this.#listeners]) run();
  }
}
