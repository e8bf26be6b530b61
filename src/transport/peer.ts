/** What a node keeps per peer address: its links, its two queues, and when to dial again. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type { Codec } from '../wire/codec.ts';
import { type Envelope, FrameReader, linkFrame } from '../wire/frames.ts';
import { closeCodes } from './close_codes.ts';
import type { Address, DialFailure, Link, PeerIdentity, Transport } from './contract.ts';
import { Dialer } from './dialer.ts';
import { type LinkChoice, type LinkEffect, type LinkEvent, newLinkChoice, stepLinkChoice } from './link_choice.ts';
import type { SendFailure } from './peers_contract.ts';
import { Outbox } from './outbox.ts';
import type { PeerCounters } from './peer_counters.ts';

/** What a peer needs of the node it belongs to. */
export interface PeerHost {
  readonly environment: Environment;
  readonly transport: Transport;
  readonly codec: Codec;
  readonly uid: string;
  readonly frameBytes: number | undefined;
  readonly counters: PeerCounters;
  /** Link numbers grow over all peers and are never used twice. */
  nextLinkNumber(): number;
  /** Remembers whose link this is. */
  adopt(link: Link, entry: LinkEntry): void;
  /** Hands over frames that came before the link was known. */
  replay(link: Link): void;
  connected(peer: PeerIdentity): void;
  disconnected(peer: PeerIdentity, clean: boolean, why: string): void;
  dialFailed(address: Address, failure: DialFailure): void;
  undeliverable(address: Address, envelope: Envelope, reason: string): void;
}

export interface LinkEntry {
  readonly peer: Peer;
  readonly link: Link;
  readonly id: number;
  readonly reader: FrameReader;
  open: boolean;
  /** Ends the wait for an agreement to use the link. */
  settled: Cancel;
  /** Since when it is in use without a message having come in; undefined once one has. */
  unheardSince: number | undefined;
}

/** Links in a row that ended before they were used, until that counts as a failed dial. */
const MAX_UNSETTLED = 5;

export class Peer {
  readonly address: Address;
  private readonly host: PeerHost;
  private readonly outbox: Outbox;
  private readonly links = new Map<number, LinkEntry>();
  private choice: LinkChoice | undefined = undefined;
  private choiceUid = '';
  private used: LinkEntry | undefined = undefined;
  private nextId = 1;
  private readonly dialer: Dialer;
  private unsettled = 0;
  private closing: { readonly code: number; readonly reason: string; readonly cancel: Cancel } | undefined = undefined;
  private closeWhy: { readonly clean: boolean; readonly why: string } = { clean: false, why: 'connection lost' };

  constructor(address: Address, host: PeerHost) {
    this.address = address;
    this.host = host;
    this.dialer = new Dialer(address, {
      environment: host.environment,
      transport: host.transport,
      dialled: () => {
        host.counters.dials++;
      },
      opened: (link) => this.dialled(link),
      failed: (failure) => this.dialFailed(failure),
    });
    this.outbox = new Outbox({
      environment: host.environment,
      counters: host.counters,
      undeliverable: (envelope, reason) => host.undeliverable(address, envelope, reason),
      retry: () => this.flush(),
      frameBytes: host.frameBytes,
    });
  }

  get identity(): PeerIdentity | undefined {
    return this.used?.link.peer;
  }

  /** Nothing open, under way or queued. */
  get idle(): boolean {
    return this.links.size === 0 && this.dialer.idle && this.outbox.empty;
  }

  get congested(): boolean {
    const { user } = this.outbox;
    const waiting = user.bytes + (this.used?.link.bufferedBytes() ?? 0);
    return waiting > limits.socketBufferBytes || user.messages > limits.peerQueueMessages / 2;
  }

  /** `bytes` is copied. Undefined when queued. */
  queueUser(bytes: Uint8Array, envelope: Envelope, uid: string | undefined): SendFailure | undefined {
    if (uid !== undefined && this.used !== undefined && this.used.link.peer.uid !== uid) {
      return { reason: 'closed', detail: `the process ${uid} at ${this.address} is gone; another one answers there` };
    }
    if (this.used !== undefined && this.outbox.sendNow(this.used.link, bytes)) return undefined;
    const { user } = this.outbox;
    if (!user.add(bytes, envelope, uid)) {
      const detail = `${user.messages} messages (${user.bytes} bytes) wait for ${this.address}`;
      return { reason: 'queue-full', detail };
    }
    if (this.used === undefined) this.ensureLink();
    else if (user.frameFull && !this.outbox.waiting) this.flush();
    return undefined;
  }

  /** False when the queue is full. What is meant for a process that another one has replaced is dropped, and counted. */
  queueSystem(bytes: Uint8Array, envelope: Envelope, uid: string | undefined): boolean {
    if (uid !== undefined && this.used !== undefined && this.used.link.peer.uid !== uid) {
      this.host.counters.drop('restarted', 1);
      return true;
    }
    if (!this.outbox.system.add(bytes, envelope, uid)) return false;
    if (this.used === undefined) this.ensureLink();
    return true;
  }

  connect(): void {
    if (this.links.size === 0) this.dialer.insist();
  }

  /** Sends what may be sent. */
  flush(): void {
    if (this.used === undefined || !this.outbox.pump(this.used.link)) return;
    if (this.closing !== undefined) this.closeAll(this.closing.code, this.closing.reason);
  }

  private ensureLink(): void {
    if (this.links.size === 0) this.dialer.request();
  }

  private dialled(link: Link): void {
    if (link.peer.address === this.address && link.peer.uid !== this.host.uid) {
      this.opened(link);
      return;
    }
    link.close(closeCodes.wrongPeer, 'another address was dialled');
    this.dialer.backOff();
    const detail = `${link.peer.address} answered at ${this.address}`;
    this.dialFailed({ reason: 'rejected', code: 'wrong-address', detail });
  }

  private dialFailed(failure: DialFailure): void {
    this.host.counters.dialFailures++;
    if (this.links.size === 0) this.outbox.giveUp('unreachable');
    this.host.dialFailed(this.address, failure);
  }

  /** A link that was dialled or accepted is open. */
  opened(link: Link): void {
    const entry: LinkEntry = {
      peer: this,
      link,
      id: this.nextId++,
      reader: new FrameReader(this.host.codec),
      open: true,
      unheardSince: undefined,
      settled: this.host.environment.timers.set(limits.handshakeMs, () => {
        this.close(entry, closeCodes.unsettled, 'the link was not taken into use');
      }),
    };
    this.host.adopt(link, entry);
    if (this.choice === undefined || this.choiceUid !== link.peer.uid) this.newIncarnation(link.peer.uid);
    this.links.set(entry.id, entry);
    this.step({ kind: 'opened', id: entry.id, next: this.host.nextLinkNumber() });
    this.host.replay(link);
  }

  private newIncarnation(uid: string): void {
    this.dropAll(closeCodes.newIncarnation, 'a new process answers at this address');
    this.choice = newLinkChoice(this.host.uid, uid);
    this.choiceUid = uid;
  }

  private dropAll(code: number, reason: string): void {
    this.closeWhy = { clean: true, why: reason };
    for (const entry of [...this.links.values()]) {
      this.forget(entry);
      entry.link.close(code, reason);
    }
    this.step({ kind: 'all-closed' });
  }

  /** The peer's side of the agreement. */
  agreed(entry: LinkEntry, kind: 'use' | 'ready', number: number): void {
    if (kind === 'use') this.step({ kind: 'use', id: entry.id, number });
    else this.step({ kind: 'ready', id: entry.id, lost: number, stale: this.stale, next: this.host.nextLinkNumber() });
  }

  private get stale(): boolean {
    const since = this.used?.unheardSince;
    return since !== undefined && this.host.environment.clock.now() - since >= limits.handshakeMs;
  }

  isUsed(entry: LinkEntry): boolean {
    return this.used === entry;
  }

  /** The transport's news, or our own close. */
  closed(entry: LinkEntry, clean: boolean, why: string): void {
    if (!this.forget(entry)) return;
    this.closeWhy = { clean, why };
    const wasUsed = this.used === entry;
    this.step({ kind: 'closed', id: entry.id, next: this.host.nextLinkNumber() });
    if (!wasUsed) this.unusedEnded(why);
    if (!this.outbox.empty) this.ensureLink();
  }

  /** Crossing dials end so, and the other link is on its way; but not for ever. */
  private unusedEnded(why: string): void {
    if (this.links.size > 0 || this.dialer.dialling) return;
    this.dialer.backOff();
    if (++this.unsettled < MAX_UNSETTLED) return;
    this.unsettled = 0;
    this.outbox.giveUp('unreachable');
    this.host.dialFailed(this.address, { reason: 'reset', code: 'unsettled', detail: `no link came into use: ${why}` });
  }

  close(entry: LinkEntry, code: number, reason: string): void {
    if (!entry.open) return;
    entry.link.close(code, reason);
    this.closed(entry, true, reason);
  }

  /** Closes what is open once the queues are sent, or after `limits.disconnectFlushMs`. */
  disconnect(code: number, reason: string): void {
    if (this.closing !== undefined) return;
    if (this.used === undefined) return this.closeAll(code, reason);
    const cancel = this.host.environment.timers.set(limits.disconnectFlushMs, () => this.closeAll(code, reason));
    this.closing = { code, reason, cancel };
    this.flush();
  }

  /** Hands everything to the socket, full or not, and closes. */
  stop(code: number, reason: string): void {
    if (this.used !== undefined) this.outbox.force(this.used.link);
    this.closeAll(code, reason);
  }

  private closeAll(code: number, reason: string): void {
    this.closing?.cancel();
    this.closing = undefined;
    this.outbox.pause();
    this.dialer.cancel();
    this.outbox.giveUp('closed');
    this.dropAll(code, reason);
  }

  private forget(entry: LinkEntry): boolean {
    if (!entry.open) return false;
    entry.open = false;
    entry.settled();
    this.links.delete(entry.id);
    return true;
  }

  private step(event: LinkEvent): void {
    if (this.choice === undefined) return;
    const { state, effects } = stepLinkChoice(this.choice, event);
    this.choice = state;
    for (const effect of effects) this.apply(effect);
  }

  private apply(effect: LinkEffect): void {
    const entry = this.links.get(effect.id);
    switch (effect.kind) {
      case 'send':
        return entry?.link.send(linkFrame(effect.frame, effect.number));
      case 'close':
        if (entry === undefined) return;
        if (effect.why === 'duplicate') this.host.counters.duplicates++;
        if (effect.why === 'unsettled') {
          return this.close(entry, closeCodes.unsettled, 'the peer broke the link protocol');
        }
        this.forget(entry);
        return entry.link.close(closeCodes[effect.why], effect.why);
      case 'in-use':
        return entry === undefined ? undefined : this.inUse(entry);
      case 'out-of-use':
        return this.outOfUse();
      default:
        return effect satisfies never;
    }
  }

  private inUse(entry: LinkEntry): void {
    entry.settled();
    this.dialer.succeeded();
    this.unsettled = 0;
    this.used = entry;
    entry.unheardSince = this.host.environment.clock.now();
    entry.link.onDrain = () => {
      if (this.used === entry) this.outbox.drained(entry.link);
    };
    this.outbox.relink(entry.link.peer.uid);
    this.host.counters.connects++;
    this.host.connected(entry.link.peer);
    this.flush();
  }

  private outOfUse(): void {
    const entry = this.used;
    if (entry === undefined) return;
    this.used = undefined;
    this.outbox.pause();
    this.closing?.cancel();
    this.closing = undefined;
    const { clean, why } = entry.open ? { clean: false, why: 'replaced by a newer link' } : this.closeWhy;
    this.host.disconnected(entry.link.peer, clean, why);
  }
}
