/** Rule 2 at work: pings while this node hosts, answers to others' pings, and the gate the dispatcher asks. */
import type { Cancel } from '../actor/environment.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { Alarm } from './alarm.ts';
import type { HostGate } from './contract.ts';
import { acknowledged, emptyGate, gateDeadline, type GateState, retained } from './gate.ts';
import { selfRecord } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import { isActive } from './transitions.ts';

/** Pings whose answers may still count are remembered; older ones have passed the window. */
const pingsKept = 64;

export class GateKeeper implements HostGate {
  #node: NodeContext;
  #state: GateState = emptyGate;
  #deadline = Infinity;
  #hosting = false;
  #foundClosed = false;
  #ended = false;
  #nonce = 0;
  #sent = new Map<number, number>();
  /** Who was in the last round of pings. */
  #pinged: ReadonlySet<string> = new Set();
  #pings: Alarm;
  #listeners = new Set<() => void>();

  constructor(node: NodeContext) {
    this.#node = node;
    this.#pings = new Alarm(node.environment, () => this.#ping());
  }

  open(): boolean {
    if (this.#node.environment.clock.now() < this.#deadline) return true;
    this.#foundClosed = true;
    return false;
  }

  onOpen(run: () => void): Cancel {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  /** Closed for good. */
  end(): void {
    this.#ended = true;
    this.#deadline = -Infinity;
    this.#pings.cancel();
  }

  /** The view may have changed. */
  refresh(): void {
    if (this.#ended) return;
    const { strategy, timing, uid } = this.#node.settings;
    const hosting = strategy.gated !== false && selfRecord(this.#node.membership()).hosting.size > 0;
    const begins = hosting && !this.#hosting;
    this.#hosting = hosting;
    if (!hosting) {
      this.#pings.cancel();
      this.#deadline = Infinity;
    } else {
      const { members } = this.#node.view();
      this.#state = retained(this.#state, members);
      this.#deadline = gateDeadline(strategy, members, uid, this.#state.acks, timing.gateWindowMs);
      // A newcomer counts at once: without an answer from it the gate might stay closed until the next round.
      const newcomer = members.some((member) =>
        isActive(member.status) && member.uid !== uid && !this.#pinged.has(member.uid)
      );
      if (begins || newcomer) this.#ping();
    }
    this.#maybeOpened();
  }

  /** From a member that is not down; nobody else is acknowledged. */
  pinged(from: PeerIdentity, envelope: Envelope): void {
    if (Number.isSafeInteger(envelope[1])) this.#node.send(from.address, [codes.gatePong, envelope[1]]);
  }

  ponged(from: PeerIdentity, envelope: Envelope): void {
    const sentAt = this.#sent.get(envelope[1] as number);
    if (sentAt === undefined) return;
    const next = acknowledged(this.#state, from.uid, sentAt);
    if (next === this.#state) return;
    this.#state = next;
    this.refresh();
  }

  #ping(): void {
    const { clock } = this.#node.environment;
    const nonce = ++this.#nonce;
    this.#sent.set(nonce, clock.now());
    this.#sent.delete(nonce - pingsKept);
    const pinged = new Set<string>();
    for (const record of this.#node.membership().gossip.records.values()) {
      if (record.uid === this.#node.settings.uid || !isActive(record.status)) continue;
      pinged.add(record.uid);
      this.#node.send(record.address, [codes.gatePing, nonce]);
    }
    this.#pinged = pinged;
    this.#pings.at(clock.now() + this.#node.settings.timing.gatePingMs);
  }

  #maybeOpened(): void {
    if (!this.#foundClosed || this.#node.environment.clock.now() >= this.#deadline) return;
    this.#foundClosed = false;
    for (const run of [...this.#listeners]) run();
  }
}
