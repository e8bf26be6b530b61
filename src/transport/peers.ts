/**
 * The links of one node: one per peer, dialled on demand, with a system lane that never waits behind the user lane and
 * batches that leave when they are full, and otherwise as `flush_schedule.ts` says.
 *
 * User messages are encoded when they are sent: a bad one fails at its sender, and later changes to it change nothing.
 */
import type { Environment } from '../actor/environment.ts';
import { LineBudget } from '../actor/line_budget.ts';
import { limits } from '../limits.ts';
import type { Codec } from '../wire/codec.ts';
import { FrameError, MessageTooLargeError } from '../wire/errors.ts';
import { type Envelope, type Frame, laneBytes } from '../wire/frames.ts';
import { closeCodes } from './close_codes.ts';
import type { Address, Link, LinkClose, PeerIdentity, Transport } from './contract.ts';
import { FlushSchedule } from './flush_schedule.ts';
import { type LinkEntry, Peer, type PeerHost } from './peer.ts';
import { PeerCounters } from './peer_counters.ts';
import type { Peers, PeersEvents, SendFailure, Sized } from './peers_contract.ts';

export interface PeersOptions {
  readonly environment: Environment;
  readonly transport: Transport;
  readonly codec: Codec;
  /** This process. */
  readonly uid: string;
  readonly events: PeersEvents;
  /** A message that is larger is cut into frames of this size; default and most: `limits.frameBytes`. */
  readonly frameBytes?: number;
  /**
   * A user message that had been queued and will not be sent: `unreachable` (the dial failed), `restarted` (it was meant
   * for an earlier process at the address), `closed`.
   */
  readonly onUndeliverable?: (address: Address, envelope: Envelope, reason: string) => void;
}

/** Peers that are remembered though nothing is open or queued. */
const KEPT_PEERS = limits.members + limits.inboundConnections;
const WARN_EVERY_MS = 60_000;
/** Far more than the few bytes of the link protocol need. */
const HELD_FRAMES = 64;

export class LinkedPeers implements Peers {
  readonly counters: PeerCounters = new PeerCounters();
  private readonly options: PeersOptions;
  private readonly host: PeerHost;
  private readonly peers = new Map<Address, Peer>();
  private readonly entries = new WeakMap<Link, LinkEntry>();
  /** Frames of dialled links whose dial has not been answered to us yet: some transports are that quick. */
  private readonly early = new WeakMap<Link, Uint8Array[]>();
  private readonly dirty = new Set<Peer>();
  private readonly warnedAt = new Map<Address, number>();
  private readonly lines: LineBudget;
  private readonly sending: FlushSchedule;
  private stopped = false;
  private linkNumber = 0;
  private ownAddress: Address = '';

  constructor(options: PeersOptions) {
    this.options = options;
    const { environment, transport, codec, uid, events } = options;
    this.lines = new LineBudget(environment);
    this.sending = new FlushSchedule(
      environment.clock,
      environment.turns,
      () => this.flush(),
      (run) => this.guarded('beforeFlush', run),
    );
    this.host = {
      environment,
      transport,
      codec,
      uid,
      frameBytes: options.frameBytes,
      counters: this.counters,
      nextLinkNumber: () => ++this.linkNumber,
      adopt: (link, entry) => this.entries.set(link, entry),
      replay: (link) => this.replay(link),
      connected: (peer) => this.guarded('connected', () => events.connected(peer)),
      disconnected: (peer, clean, why) => {
        this.counters.disconnects++;
        this.guarded('disconnected', () => events.disconnected(peer, clean, why));
      },
      dialFailed: (address, failure) => this.guarded('dialFailed', () => events.dialFailed(address, failure)),
      undeliverable: (address, envelope, reason) =>
        this.guarded('onUndeliverable', () => options.onUndeliverable?.(address, envelope, reason)),
    };
  }

  /** Starts the transport. Resolves with the address that this node advertises. */
  async start(): Promise<Address> {
    this.ownAddress = await this.options.transport.start({
      accepted: (link) => this.accepted(link),
      frame: (link, bytes) => this.frame(link, bytes),
      closed: (link, close) => this.linkClosed(link, close),
      listenerLost: (why) => this.options.events.listenerLost(why),
    });
    return this.ownAddress;
  }

  /** Numbers of the transport below, for the metrics. */
  get transportCounters(): object {
    return this.options.transport.counters ?? {};
  }

  get address(): Address {
    return this.ownAddress;
  }

  sendSystem(address: Address, envelope: Envelope, uid?: string): void {
    if (this.stopped || address === this.ownAddress) return this.counters.drop(this.stopped ? 'closed' : 'own-address');
    try {
      const bytes = this.options.codec.encodeAgain(envelope, laneBytes.system);
      const peer = this.peer(address);
      if (!peer.queueSystem(bytes, envelope, uid)) return this.counters.drop('system-queue-full');
      this.markDirty(peer);
    } catch (error) {
      this.counters.drop('unserializable');
      this.options.environment.log.error('a system message could not be sent', { address, code: envelope[0], error });
    }
  }

  /** `uid`: the process it is meant for; another one at the same address does not get it. */
  sendUser(address: Address, envelope: Envelope, uid?: string, sized?: Sized): SendFailure | undefined {
    if (this.stopped) return this.refuse('closed', 'this node has stopped');
    if (address === this.ownAddress) return this.refuse('closed', 'this is the own address');
    let bytes: Uint8Array;
    try {
      bytes = this.options.codec.encodeShared(envelope);
    } catch (error) {
      return this.refuseUnsendable(error);
    }
    const peer = this.peer(address);
    const failure = peer.queueUser(bytes, envelope, uid);
    if (failure !== undefined) return this.refuse(failure.reason, failure.detail);
    sized?.(bytes.length);
    this.markDirty(peer);
    return undefined;
  }

  weigh(message: unknown): number | SendFailure {
    try {
      return this.options.codec.weigh(message);
    } catch (error) {
      return this.refuseUnsendable(error);
    }
  }

  copy(message: unknown): { readonly value: unknown } | SendFailure {
    try {
      return { value: this.options.codec.copy(message) };
    } catch (error) {
      return this.refuseUnsendable(error);
    }
  }

  private refuseUnsendable(error: unknown): SendFailure {
    const reason = error instanceof MessageTooLargeError ? 'too-large' : 'unserializable';
    return this.refuse(reason, error instanceof Error ? error.message : String(error));
  }

  private refuse(reason: SendFailure['reason'], detail: string): SendFailure {
    this.counters.drop(reason);
    return { reason, detail };
  }

  connect(address: Address): void {
    if (!this.stopped && address !== this.ownAddress) this.peer(address).connect();
  }

  connected(address: Address): PeerIdentity | undefined {
    return this.peers.get(address)?.identity;
  }

  disconnect(address: Address, code: number, reason: string): void {
    this.peers.get(address)?.disconnect(code, reason);
  }

  congested(address: Address): boolean {
    return this.peers.get(address)?.congested ?? false;
  }

  flush(): void {
    const peers = [...this.dirty];
    this.dirty.clear();
    for (const peer of peers) peer.flush();
  }

  async stop(): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    for (const peer of [...this.peers.values()]) peer.stop(1000, 'the node has stopped');
    this.peers.clear();
    this.dirty.clear();
    await this.options.transport.stop();
  }

  beforeFlush(run: () => void): void {
    this.sending.before(run);
  }

  private markDirty(peer: Peer): void {
    this.dirty.add(peer);
    this.sending.book();
  }

  private peer(address: Address): Peer {
    const known = this.peers.get(address);
    if (known !== undefined) return known;
    if (this.peers.size >= KEPT_PEERS) this.prune();
    const peer = new Peer(address, this.host);
    this.peers.set(address, peer);
    return peer;
  }

  /** Oldest first; a forgotten peer only loses its memory of links that have ended. */
  private prune(): void {
    for (const [address, peer] of this.peers) {
      if (this.peers.size < KEPT_PEERS) return;
      if (peer.idle) this.peers.delete(address);
    }
  }

  private accepted(link: Link): void {
    if (this.entries.has(link)) return;
    if (this.stopped || link.peer.address === this.ownAddress || link.peer.uid === this.options.uid) {
      return link.close(closeCodes.wrongPeer, this.stopped ? 'the node has stopped' : 'this is the node itself');
    }
    this.peer(link.peer.address).opened(link);
  }

  private frame(link: Link, bytes: Uint8Array): void {
    const entry = this.entries.get(link);
    if (entry === undefined) return this.hold(link, bytes);
    if (!entry.open || this.stopped) return;
    let frame: Frame;
    try {
      frame = entry.reader.read(bytes);
    } catch (error) {
      return this.malformed(entry, error);
    }
    if ('link' in frame) return entry.peer.agreed(entry, frame.kind, frame.link);
    if (!entry.peer.isUsed(entry)) {
      return entry.peer.close(entry, closeCodes.unsettled, 'messages on a link that is not in use');
    }
    entry.unheardSince = undefined;
    this.counters.received(frame.lane, bytes.length, frame.kind === 'messages' ? frame.envelopes.length : 0);
    if (frame.kind !== 'messages') return;
    if (frame.failed > 0) this.undecodable(link, frame.failed, frame.failure);
    const share = Math.ceil(frame.bytes / frame.envelopes.length);
    for (const envelope of frame.envelopes) {
      if (!entry.open) return;
      this.guarded('message', () => this.options.events.message(link.peer, envelope, share));
    }
  }

  private hold(link: Link, bytes: Uint8Array): void {
    if (!link.dialled) return;
    const held = this.early.get(link) ?? [];
    this.early.set(link, held);
    if (held.length < HELD_FRAMES) held.push(bytes);
    else link.close(closeCodes.unsettled, 'too many frames on a link that is not in use');
  }

  private replay(link: Link): void {
    const held = this.early.get(link) ?? [];
    this.early.delete(link);
    for (const bytes of held) this.frame(link, bytes);
  }

  private malformed(entry: LinkEntry, error: unknown): void {
    this.counters.malformed++;
    const code = error instanceof FrameError ? error.code : 'internal';
    this.warn(entry.link.peer, 'a peer sent a malformed frame; the link is closed', error);
    entry.peer.close(entry, closeCodes.malformedFrame, `malformed frame: ${code}`);
  }

  private undecodable(link: Link, failed: number, failure: string | undefined): void {
    this.counters.undecodable += failed;
    this.warn(link.peer, 'a peer sent messages that cannot be read here; they are lost', failure);
  }

  /** At most once a minute per peer. */
  private warn(peer: PeerIdentity, message: string, error: unknown): void {
    const now = this.options.environment.clock.now();
    if (now - (this.warnedAt.get(peer.address) ?? -Infinity) < WARN_EVERY_MS) return;
    if (this.warnedAt.size >= KEPT_PEERS) this.warnedAt.clear();
    this.warnedAt.set(peer.address, now);
    const why = error instanceof Error ? error.message : error;
    this.options.environment.log.warn(message, { peer: peer.address, uid: peer.uid, error: why });
  }

  private linkClosed(link: Link, close: LinkClose): void {
    const entry = this.entries.get(link);
    entry?.peer.closed(entry, close.clean, close.reason === '' ? `closed with code ${close.code}` : close.reason);
  }

  private guarded(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (what === 'message') this.counters.handlerErrors++;
      const more = this.lines.take();
      if (more === undefined) return;
      this.options.environment.log.error(`a handler of '${what}' threw; the link is kept`, { error, ...more });
    }
  }
}

export function createPeers(options: PeersOptions): LinkedPeers {
  return new LinkedPeers(options);
}
