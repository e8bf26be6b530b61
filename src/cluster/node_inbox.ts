/** What arrives from peers: who may say it, and which part of the node it concerns. */
import type { Cancel } from '../actor/environment.ts';
import { LineBudget } from '../actor/line_budget.ts';
import { OptionsError } from '../actor/options.ts';
import type { Address, DialFailure, PeerIdentity } from '../transport/contract.ts';
import type { Envelope, PeersEvents } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { DeathWatch } from './death_watch.ts';
import { differencesText } from './fingerprint.ts';
import type { GateKeeper } from './gate_keeper.ts';
import { decode, type Decoded, decodeDelta, decodeDigest, decodeGossip } from './gossip_codec.ts';
import type { Gossiper } from './gossiper.ts';
import type { HealWatch } from './heal_watch.ts';
import type { Heartbeats } from './heartbeats.ts';
import { claimOf, type JoinProcess } from './join_process.ts';
import type { NodeContext } from './node_context.ts';
import { isActive } from './transitions.ts';
import { WireError } from './wire_checks.ts';

export type MessageHandler = (peer: PeerIdentity, envelope: Envelope, bytes: number) => void;

export interface InboxParts {
  readonly joiner: JoinProcess;
  readonly heartbeats: Heartbeats;
  readonly gate: GateKeeper;
  readonly heal: HealWatch;
  readonly deaths: DeathWatch;
  readonly gossiper: Gossiper;
}

export class NodeInbox implements PeersEvents {
  #node: NodeContext;
  #parts: InboxParts;
  #handlers = new Map<number, MessageHandler>();

  readonly #lines: LineBudget;

  constructor(node: NodeContext, parts: InboxParts) {
    this.#node = node;
    this.#lines = new LineBudget(node.environment);
    this.#parts = parts;
  }

  /** @throws RangeError when the code has an owner. */
  onMessage(code: number, handler: MessageHandler): Cancel {
    if (this.#handlers.has(code) || isOwn(code)) throw new RangeError(`onMessage: code ${code} has an owner already`);
    this.#handlers.set(code, handler);
    return () => {
      if (this.#handlers.get(code) === handler) this.#handlers.delete(code);
    };
  }

  connected(peer: PeerIdentity): void {
    if (this.#ended()) return;
    this.#parts.deaths.linkOpen(peer);
    this.#parts.heartbeats.linkOpen(peer.uid);
  }

  disconnected(peer: PeerIdentity, _clean: boolean, _why: string): void {
    if (this.#ended()) return;
    this.#parts.deaths.linkLost(peer);
    this.#parts.heartbeats.linkLost(peer.uid);
  }

  dialFailed(address: Address, failure: DialFailure): void {
    this.#node.count('failed dials');
    this.#node.environment.log.debug('dial failed', { address, reason: failure.reason, detail: failure.detail });
    if (failure.reason === 'rejected' && !this.#ended()) this.#parts.joiner.dialRejected(address, failure.detail);
  }

  listenerLost(why: string): void {
    const uids = [this.#node.settings.uid];
    this.#node.dispatch({ kind: 'down', uids, terminated: false, why: `the listener was lost: ${why}` });
  }

  message(peer: PeerIdentity, envelope: Envelope, bytes = 0): void {
    if (this.#ended() || peer.clusterName !== this.#node.settings.clusterName) return;
    switch (envelope[0]) {
      case codes.join:
        return this.#join(peer, envelope);
      case codes.joinRefused:
        return this.#parts.joiner.joinRefused(peer, envelope);
      case codes.pledgeRequest:
        return this.#parts.joiner.pledgeRequested(peer, envelope);
      case codes.pledgeAnswer:
        return this.#parts.joiner.pledgeAnswered(peer, envelope);
      case codes.removedNotice:
        if (this.#node.membership().phase === 'outside') return this.#parts.joiner.invited(peer);
        return this.#parts.heal.received(peer, envelope);
      case codes.gossip:
        return this.#gossip(peer, envelope);
      case codes.gossipDelta:
        return this.#delta(peer, envelope);
      case codes.gossipDigest:
        return this.#digest(peer, envelope);
      default:
        if (this.#admits(peer)) this.#fromMember(peer, envelope, bytes);
    }
  }

  /** A message from somebody who is no active member here. */
  stranger(peer: PeerIdentity, otherCluster: boolean): void {
    if (otherCluster) this.#parts.heal.otherCluster(peer);
    else this.#parts.heal.stranger(peer);
  }

  #fromMember(peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    switch (envelope[0]) {
      case codes.heartbeat:
        return this.#parts.heartbeats.heartbeat(peer, envelope);
      case codes.heartbeatAck:
        return this.#parts.heartbeats.acknowledged(peer, envelope);
      case codes.gatePing:
        return this.#parts.gate.pinged(peer, envelope);
      case codes.gatePong:
        return this.#parts.gate.ponged(peer, envelope);
      default: {
        const handler = this.#handlers.get(envelope[0]);
        if (handler === undefined) this.#node.count('messages without an owner');
        else this.#hand(handler, peer, envelope, bytes);
      }
    }
  }

  #hand(handler: MessageHandler, peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    try {
      handler(peer, envelope, bytes);
    } catch (error) {
      // Names and settings from outside are checked by the rules of options.
      if (!(error instanceof WireError || error instanceof OptionsError)) throw error;
      this.#node.count('malformed messages');
      this.warn('a malformed message was dropped', peer, `code ${envelope[0]}: ${error.message}`);
    }
  }

  /** Only members that are not down are heard. Others learn where they stand. */
  #admits(peer: PeerIdentity): boolean {
    const { phase, gossip } = this.#node.membership();
    if (phase !== 'member') return false;
    const record = gossip.records.get(peer.uid);
    if (record !== undefined && record.address === peer.address && isActive(record.status)) return true;
    this.#node.count('messages from no member');
    if (record === undefined) this.stranger(peer, false);
    else if (!isActive(record.status)) this.#parts.gossiper.reply(peer.address, []);
    return false;
  }

  #join(peer: PeerIdentity, envelope: Envelope): void {
    if (this.#node.membership().phase !== 'member') return;
    const { fingerprint } = this.#node.settings;
    if (envelope[2] !== fingerprint) {
      const why = `the settings differ: ${differencesText(fingerprint, envelope[2])}`;
      this.warn('refused a join', peer, why);
      this.#node.count('refused join');
      return this.#node.send(peer.address, [codes.joinRefused, why, false]);
    }
    const record = this.#checked(peer, 'join', decode(() => claimOf(envelope[1], peer)));
    if (record !== undefined) this.#node.dispatch({ kind: 'join', record });
  }

  #gossip(peer: PeerIdentity, envelope: Envelope): void {
    const message = this.#checked(peer, 'gossip', decodeGossip(envelope[1], this.#node.environment.clock.now()));
    if (message !== undefined) this.#node.dispatch({ kind: 'gossip', from: peer, message });
  }

  #delta(peer: PeerIdentity, envelope: Envelope): void {
    const now = this.#node.environment.clock.now();
    const message = this.#checked(peer, 'gossip', decodeDelta(envelope[1], envelope[2], now));
    if (message !== undefined) this.#node.dispatch({ kind: 'gossip', from: peer, message });
  }

  #digest(peer: PeerIdentity, envelope: Envelope): void {
    const message = this.#checked(peer, 'digest', decodeDigest(envelope[1], envelope[2], envelope[3]));
    if (message !== undefined) {
      this.#node.dispatch({
        kind: 'digest',
        from: peer,
        message,
        repair: envelope[4] === 'whole' ? 'whole' : envelope[4] === true,
      });
    }
  }

  #checked<T>(peer: PeerIdentity, what: string, decoded: Decoded<T>): T | undefined {
    if ('value' in decoded) return decoded.value;
    this.#node.count(`refused ${what}`);
    this.warn(`refused ${what}`, peer, decoded.refused);
    return undefined;
  }

  /** What members can cause as often as they like is counted always, and logged within a budget. */
  warn(message: string, peer: PeerIdentity | undefined, why: string): void {
    const more = this.#lines.take();
    if (more !== undefined) this.#node.environment.log.warn(message, { from: peer?.address, why, ...more });
  }

  #ended(): boolean {
    return this.#node.membership().phase === 'ended';
  }
}

function isOwn(code: number): boolean {
  return code >= codes.join && code <= codes.gossipDelta;
}
