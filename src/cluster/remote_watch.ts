/**
 * Death watch between nodes. Watches are named, not numbered, and sent again whenever a link to the watched node comes into
 * use; the watched node forgets them with the link. So a lost message on either side is repaired by the next link, and
 * nothing is left behind: an actor that died in between is reported by the repeated watch.
 */
import type { Cancel } from '../actor/environment.ts';
import type { LocalActorRef } from '../actor/local_ref.ts';
import type { TerminationCause } from '../actor/watch.ts';
import { limits } from '../limits.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { RemoteTarget } from './remote_ref.ts';

export type SendTo = (address: Address, envelope: Envelope, uid: string) => void;

type Ended = (cause: TerminationCause) => void;

interface Outgoing {
  readonly target: RemoteTarget;
  readonly listeners: Set<Ended>;
}

function keyOf(path: string, incarnation: number): string {
  return `${incarnation} ${path}`;
}

/** The watches of this node's actors on actors of other nodes. */
export class OutgoingWatches {
  private readonly send: SendTo;
  /** By process, then by actor. */
  private readonly byUid = new Map<string, Map<string, Outgoing>>();
  /** Processes that are known to be gone, oldest first. */
  private readonly gone = new Set<string>();

  constructor(send: SendTo) {
    this.send = send;
  }

  /** Remote actors that are watched. */
  get size(): number {
    let size = 0;
    for (const watches of this.byUid.values()) size += watches.size;
    return size;
  }

  watch(target: RemoteTarget, ended: Ended): Cancel {
    if (this.gone.has(target.uid)) {
      ended('unreachable');
      return () => {};
    }
    const watches = this.byUid.get(target.uid) ?? new Map<string, Outgoing>();
    this.byUid.set(target.uid, watches);
    const key = keyOf(target.localPath, target.incarnation);
    const outgoing = watches.get(key) ?? { target, listeners: new Set<Ended>() };
    const first = outgoing.listeners.size === 0;
    watches.set(key, outgoing);
    // One function may watch twice, and each time counts.
    const listener: Ended = (cause) => ended(cause);
    outgoing.listeners.add(listener);
    if (first) this.sendWatch(outgoing);
    return () => this.cancel(outgoing, key, listener);
  }

  /** A link to this process is in use: it knows of no watch of ours now. */
  linked(peer: PeerIdentity): void {
    for (const outgoing of this.byUid.get(peer.uid)?.values() ?? []) this.sendWatch(outgoing);
  }

  terminated(peer: PeerIdentity, path: string, incarnation: number, cause: TerminationCause): void {
    const watches = this.byUid.get(peer.uid);
    const key = keyOf(path, incarnation);
    const outgoing = watches?.get(key);
    if (watches === undefined || outgoing === undefined || outgoing.target.address !== peer.address) return;
    this.forget(watches, key, peer.uid);
    for (const ended of [...outgoing.listeners]) ended(cause);
  }

  /** The process is not in the cluster any more, and never will be again. */
  nodeGone(uid: string): void {
    this.gone.add(uid);
    if (this.gone.size > limits.tombstones) this.gone.delete(this.gone.values().next().value!);
    const watches = this.byUid.get(uid);
    this.byUid.delete(uid);
    for (const outgoing of watches?.values() ?? []) {
      const listeners = [...outgoing.listeners];
      outgoing.listeners.clear();
      for (const ended of listeners) ended('unreachable');
    }
  }

  private sendWatch({ target }: Outgoing): void {
    this.send(target.address, [codes.watch, target.localPath, target.incarnation], target.uid);
  }

  private cancel(outgoing: Outgoing, key: string, listener: Ended): void {
    const { uid, address, localPath, incarnation } = outgoing.target;
    const watches = this.byUid.get(uid);
    if (!outgoing.listeners.delete(listener) || outgoing.listeners.size > 0) return;
    if (watches?.get(key) !== outgoing) return;
    this.forget(watches, key, uid);
    this.send(address, [codes.unwatch, localPath, incarnation], uid);
  }

  private forget(watches: Map<string, Outgoing>, key: string, uid: string): void {
    watches.delete(key);
    if (watches.size === 0) this.byUid.delete(uid);
  }
}

/** The watches of other nodes on actors of this one. */
export class IncomingWatches {
  private readonly send: SendTo;
  private readonly byUid = new Map<string, Map<string, Cancel>>();

  constructor(send: SendTo) {
    this.send = send;
  }

  get size(): number {
    let size = 0;
    for (const watches of this.byUid.values()) size += watches.size;
    return size;
  }

  /** `actor` undefined: nobody is there, which the watcher is told at once. False when the peer watches too many. */
  watch(peer: PeerIdentity, path: string, incarnation: number, actor: LocalActorRef<any> | undefined): boolean {
    const tell = (cause: TerminationCause) =>
      this.send(peer.address, [codes.terminated, path, incarnation, cause], peer.uid);
    if (actor === undefined) {
      tell('no-such-actor');
      return true;
    }
    const watches = this.byUid.get(peer.uid) ?? new Map<string, Cancel>();
    const key = keyOf(path, incarnation);
    if (watches.has(key)) return true;
    if (watches.size >= limits.watchesPerPeer) return false;
    let over = false;
    const cancel = actor.onTermination((cause) => {
      over = true;
      this.forget(peer.uid, key);
      tell(cause);
    });
    if (over) return true;
    this.byUid.set(peer.uid, watches);
    watches.set(key, cancel);
    return true;
  }

  unwatch(peer: PeerIdentity, path: string, incarnation: number): void {
    const key = keyOf(path, incarnation);
    this.byUid.get(peer.uid)?.get(key)?.();
    this.forget(peer.uid, key);
  }

  /** The link or the whole process is gone; if it lives, it watches again. */
  drop(uid: string): void {
    for (const cancel of this.byUid.get(uid)?.values() ?? []) cancel();
    this.byUid.delete(uid);
  }

  private forget(uid: string, key: string): void {
    const watches = this.byUid.get(uid);
    watches?.delete(key);
    if (watches?.size === 0) this.byUid.delete(uid);
  }
}
