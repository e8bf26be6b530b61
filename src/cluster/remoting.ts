/**
 * Actors of other nodes as if they were here: refs that travel in messages, tell, ask, stop and death watch over links.
 *
 * Only actors under `/user`, and those who asked, can be reached from outside; a path is taken exactly as it is spelled.
 */
import { LocalActorRef } from '../actor/local_ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { RefProvider } from '../actor/ref_provider.ts';
import { ActorRef } from '../actor/ref.ts';
import { logUnsendable } from '../actor/unsendable_log.ts';
import type { TerminationCause } from '../actor/watch.ts';
import { fastPaths } from '../fast_paths.ts';
import { limits } from '../limits.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import type { Envelope, Peers, SendFailure } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { RefResolver, WireRef } from '../wire/extension.ts';
import {
  DeadRef,
  isReachable,
  parseRemotePath,
  parseVirtualPath,
  remotePath,
  RemoteRef,
  type RemoteSender,
  type RemoteTarget,
  virtualPath,
} from './remote_ref.ts';
import { senderOf, type Target, targetOf, type Tell, tellOf, terminatedOf } from './remote_messages.ts';
import { RemoteMail } from './remote_mail.ts';
import { IncomingWatches, OutgoingWatches } from './remote_watch.ts';
import { shown, WireError } from './wire_checks.ts';

/** Refs that mean the same on every node (a singleton's): they travel by name and come to life as the receiver's own. */
export interface VirtualRefs {
  readonly scheme: string;
  /** Undefined for refs of another kind. Asked for every ref that is sent. */
  nameOf(ref: ActorRef<any>): string | undefined;
  refFor(name: string): ActorRef<any> | undefined;
}

export interface RemotingOptions {
  readonly system: ActorSystem;
  /** This process. */
  readonly uid: string;
  /** Whether `peer` may reach the actor at `path`. Default: any actor under `/user`, and asks. */
  readonly admits?: (peer: PeerIdentity, path: string) => boolean;
  readonly mail?: RemoteMail;
}

const WARN_EVERY_MS = 60_000;

export class Remoting implements RemoteSender, RefProvider {
  /** For the codec of this node's links. */
  readonly refs: RefResolver;
  readonly outgoing: OutgoingWatches;
  readonly incoming: IncomingWatches;
  /** Messages from peers that were refused: a bad shape, a path that may not be reached from outside, or no room. */
  refused = 0;
  private readonly system: ActorSystem;
  private readonly uid: string;
  private readonly admits: (peer: PeerIdentity, path: string) => boolean;
  private readonly virtual: VirtualRefs[] = [];
  private peers: Pick<Peers, 'sendSystem' | 'sendUser' | 'address'> | undefined = undefined;
  readonly mail: RemoteMail;
  private warnedAt = -Infinity;

  constructor(options: RemotingOptions) {
    this.system = options.system;
    this.uid = options.uid;
    this.mail = options.mail ?? new RemoteMail();
    this.admits = options.admits ?? (() => true);
    this.refs = { toWire: (value) => this.toWire(value), fromWire: (ref) => this.fromWire(ref) };
    this.outgoing = new OutgoingWatches((address, envelope, uid) => this.peers?.sendSystem(address, envelope, uid));
    // A notice follows what the actor had sent before it ended, so it takes the same lane, unless that one is full.
    this.incoming = new IncomingWatches((address, envelope, uid) => {
      if (this.peers?.sendUser(address, envelope, uid) !== undefined) this.peers.sendSystem(address, envelope, uid);
    });
  }

  /** Connects the actor system with its links. */
  attach(peers: Pick<Peers, 'sendSystem' | 'sendUser' | 'address'>): void {
    this.peers = peers;
    this.system.refProvider = this;
  }

  addVirtualRefs(refs: VirtualRefs): void {
    this.virtual.push(refs);
  }

  // What the owner of the links passes on.

  connected(peer: PeerIdentity): void {
    this.outgoing.linked(peer);
  }

  disconnected(peer: PeerIdentity): void {
    this.incoming.drop(peer.uid);
  }

  /** The member is removed, or down and proven gone: actors that watch its actors are told. */
  nodeGone(_address: Address, uid: string): void {
    this.incoming.drop(uid);
    this.outgoing.nodeGone(uid);
  }

  /** True when the message was one of remoting's. Never throws for what is in it. */
  receive(peer: PeerIdentity, envelope: Envelope, bytes: number): boolean {
    switch (envelope[0]) {
      case codes.tell:
        this.read(peer, () => tellOf(envelope), (tell) => this.receiveTell(peer, tell, bytes));
        return true;
      case codes.stop:
        this.read(peer, () => targetOf(envelope), (target) => this.localActor(peer, target)?.stop());
        return true;
      case codes.watch:
        this.read(peer, () => targetOf(envelope), (target) => this.receiveWatch(peer, target));
        return true;
      case codes.unwatch:
        this.read(peer, () => targetOf(envelope), ({ path, incarnation }) => {
          this.incoming.unwatch(peer, path, incarnation);
        });
        return true;
      case codes.terminated:
        this.read(peer, () => terminatedOf(envelope), ({ path, incarnation, cause }) => {
          this.outgoing.terminated(peer, path, incarnation, cause);
        });
        return true;
      default:
        return false;
    }
  }

  /** A tell that had been queued and was not sent. True when the envelope was one of remoting's. */
  undeliverable(address: Address, envelope: Envelope, reason: string): boolean {
    // A lost notice is repaired when the watch is repeated.
    if (envelope[0] === codes.stop || envelope[0] === codes.terminated) return true;
    if (envelope[0] !== codes.tell) return false;
    const [, localPath, from, message] = envelope as readonly [number, string, unknown, unknown];
    const own = senderOf(from);
    const sender = from instanceof ActorRef ? from : own && this.system.resolve(own.path);
    this.system.deadLetters.publish({
      message,
      sender,
      recipient: `${address}${localPath}`,
      reason: reason === 'restarted' ? 'terminated' : 'unreachable',
      detail: reason,
    });
    return true;
  }

  tell(ref: RemoteRef<any>, message: unknown, sender: ActorRef<any> | undefined): void {
    const envelope: Envelope = [codes.tell, ref.localPath, this.senderField(sender), message, ref.incarnation];
    const failure = this.sendUser(ref, envelope);
    if (failure === undefined) return;
    const { reason, detail } = failure;
    if (reason === 'unserializable' || reason === 'too-large') {
      const text = `a message to ${ref.path} could not be sent: ${detail}`;
      logUnsendable(this.system.environment, text, { reason, path: ref.path });
    }
    const letterReason = reason === 'closed' ? 'unreachable' : reason;
    this.system.deadLetters.publish({ message, sender, recipient: ref.path, reason: letterReason, detail });
  }

  ask<R>(ref: ActorRef<any>, message: unknown, timeoutMs: number | undefined): Promise<R> {
    return this.system.asks.ask<R>(ref, message, timeoutMs);
  }

  stop(ref: RemoteRef<any>): void {
    this.sendUser(ref, [codes.stop, ref.localPath, ref.incarnation]);
  }

  private sendUser(ref: RemoteRef<any>, envelope: Envelope): SendFailure | undefined {
    if (this.peers === undefined) return { reason: 'closed', detail: 'this node has no links' };
    return this.peers.sendUser(ref.address, envelope, ref.uid);
  }

  /** Actors of this node go without address: the receiver knows whose link it is. */
  senderField(sender: ActorRef<any> | undefined): unknown {
    if (sender === undefined) return null;
    if (!fastPaths.shortSenders) return sender;
    const wire = this.toWire(sender);
    return wire !== undefined && wire[1] === this.uid ? [wire[2], wire[3]] : sender;
  }

  // RefProvider

  qualify(ref: ActorRef<any>): string {
    const wire = this.toWire(ref.underlying());
    if (wire === undefined) return ref.path;
    const [address, uid, localPath, incarnation] = wire;
    if (address === '') return virtualPath(uid, localPath);
    return `${remotePath({ address, uid, localPath })}#${incarnation}`;
  }

  resolve(qualified: string): ActorRef<any> | undefined {
    const virtual = parseVirtualPath(qualified);
    if (virtual !== undefined) return this.virtual.find((refs) => refs.scheme === virtual.scheme)?.refFor(virtual.name);
    const parts = /^(.+?)(?:#(\d{1,16}))?$/.exec(qualified);
    if (parts === null) return undefined;
    const incarnation = Number(parts[2] ?? 0);
    const target = parseRemotePath(parts[1]!);
    if (target === undefined) return this.localRef(parts[1]!, incarnation);
    if (target.uid === this.uid) return this.localRef(target.localPath, incarnation);
    return new RemoteRef({ ...target, incarnation }, this);
  }

  watch(target: ActorRef<any>, watcher: LocalActorRef<any>, ended: (cause: TerminationCause) => void): () => void {
    if (target instanceof RemoteRef) return this.outgoing.watch(target, ended);
    this.system.log.warn(`${watcher.path} watches ${target.path}, which is not an actor that can be watched`);
    ended('no-such-actor');
    return () => {};
  }

  /** A ref to an actor of another node by its parts. */
  refTo(target: RemoteTarget): ActorRef<any> {
    return this.fromWire([target.address, target.uid, target.localPath, target.incarnation]);
  }

  // Refs in messages

  private toWire(value: object): WireRef | undefined {
    if (!(value instanceof ActorRef)) return undefined;
    const ref = value.underlying();
    for (const { scheme, nameOf } of this.virtual) {
      const name = nameOf(ref);
      if (name !== undefined) return ['', scheme, name, 0];
    }
    if (ref instanceof RemoteRef) return [ref.address, ref.uid, ref.localPath, ref.incarnation];
    return [this.peers?.address ?? '', this.uid, ref.path, ref.incarnation];
  }

  private fromWire([address, uid, localPath, incarnation]: WireRef): ActorRef<any> {
    if (localPath.length > limits.pathChars || address.length > limits.hostChars + 8 || uid.length > limits.hostChars) {
      throw new TypeError('its parts are too long');
    }
    if (!Number.isSafeInteger(incarnation) || incarnation < 0) throw new TypeError('its incarnation is no integer');
    if (address === '') return this.virtualRef(uid, localPath);
    if (uid !== this.uid) return new RemoteRef({ address, uid, localPath, incarnation }, this);
    return (isReachable(localPath) ? this.localRef(localPath, incarnation) : undefined) ??
      this.deadRef(localPath, incarnation);
  }

  private virtualRef(scheme: string, name: string): ActorRef<any> {
    const ref = this.virtual.find((refs) => refs.scheme === scheme)?.refFor(name);
    if (ref === undefined) throw new TypeError(`nothing here is called ${shown(scheme)} ${shown(name)}`);
    return ref;
  }

  private deadRef(localPath: string, incarnation: number): ActorRef<any> {
    const publish = (message: unknown, sender: ActorRef<any> | undefined) =>
      this.system.deadLetters.publish({ message, sender, recipient: localPath, reason: 'no-such-actor' });
    return new DeadRef(localPath, incarnation, publish, (ref, message, timeoutMs) => this.ask(ref, message, timeoutMs));
  }

  /** Exactly this path and, unless 0, exactly this incarnation. */
  private localRef(localPath: string, incarnation: number): ActorRef<any> | undefined {
    const ref = this.system.resolve(localPath);
    return ref === undefined || (incarnation !== 0 && ref.incarnation !== incarnation) ? undefined : ref;
  }

  // What peers ask for

  private receiveTell(peer: PeerIdentity, { path, from, message, incarnation }: Tell, bytes: number): void {
    if (!this.reachable(peer, path)) return;
    const sender = this.senderFrom(peer, from);
    const target = this.localRef(path, incarnation);
    if (target instanceof LocalActorRef) {
      const share = this.mail.share(peer.uid, bytes);
      if (share !== undefined) return target.deliver(message, sender, share);
      this.refuse(peer, 'the mailboxes here hold as much from other nodes as they may');
    } else if (target !== undefined) return target.tell(message, sender);
    const reason = target === undefined ? 'no-such-actor' : 'mailbox-overflow';
    this.system.deadLetters.publish({ message, sender, recipient: path, reason });
  }

  senderFrom(peer: Pick<PeerIdentity, 'address' | 'uid'>, from: unknown): ActorRef<any> | undefined {
    if (from instanceof ActorRef) return from;
    const own = senderOf(from);
    if (own === undefined) return undefined;
    const { address, uid } = peer;
    return new RemoteRef({ address, uid, localPath: own.path, incarnation: own.incarnation }, this);
  }

  private receiveWatch(peer: PeerIdentity, target: Target): void {
    const actor = this.localActor(peer, target);
    if (this.incoming.watch(peer, target.path, target.incarnation, actor)) return;
    this.refuse(peer, `it watches more than ${limits.watchesPerPeer} actors`);
  }

  private localActor(peer: PeerIdentity, { path, incarnation }: Target): LocalActorRef<any> | undefined {
    const ref = this.reachable(peer, path) ? this.localRef(path, incarnation) : undefined;
    return ref instanceof LocalActorRef ? ref : undefined;
  }

  private reachable(peer: PeerIdentity, localPath: string): boolean {
    if (isReachable(localPath) && this.admits(peer, localPath)) return true;
    this.refuse(peer, `${shown(localPath)} may not be reached from outside`);
    return false;
  }

  private read<T>(peer: PeerIdentity, decode: () => T, run: (decoded: T) => void): void {
    let decoded: T;
    try {
      decoded = decode();
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return this.refuse(peer, error.message);
    }
    run(decoded);
  }

  private refuse(peer: PeerIdentity, why: string): void {
    this.refused++;
    const now = this.system.environment.clock.now();
    if (now - this.warnedAt < WARN_EVERY_MS) return;
    this.warnedAt = now;
    this.system.log.warn(`a message from ${peer.address} was refused: ${why}`, { peer: peer.address, uid: peer.uid });
  }
}
