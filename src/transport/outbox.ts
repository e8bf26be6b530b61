/** What waits to be sent to one peer: two lanes, and the rule which of them may use the socket. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { fastPaths } from '../fast_paths.ts';
import { sharedFrame } from '../wire/batch.ts';
import type { Envelope, Lane } from '../wire/frames.ts';
import type { Link } from './contract.ts';
import type { PeerCounters } from './peer_counters.ts';
import { largeBytes, type Returned, SendQueue } from './send_queue.ts';

export interface OutboxOwner {
  readonly environment: Environment;
  readonly counters: PeerCounters;
  /** A user message that will not be sent. */
  undeliverable(envelope: Envelope, reason: string): void;
  /** The socket may have room again. */
  retry(): void;
  /** See `PeersOptions`. */
  readonly frameBytes?: number | undefined;
}

/** How often a socket that is too full is looked at; not every runtime tells when it has drained. */
const POLL_MS = 2;

export class Outbox {
  readonly system: SendQueue;
  readonly user: SendQueue;
  private readonly owner: OutboxOwner;
  private polling: Cancel | undefined = undefined;

  constructor(owner: OutboxOwner) {
    this.owner = owner;
    const frames = owner.frameBytes === undefined ? {} : { frameBytes: owner.frameBytes };
    const { peerSystemQueue, peerQueueMessages, peerQueueBytes: maxBytes } = limits;
    this.system = new SendQueue({
      lane: 'system',
      keepsEnvelopes: false,
      maxMessages: peerSystemQueue,
      maxBytes,
      ...frames,
    });
    this.user = new SendQueue({
      lane: 'user',
      keepsEnvelopes: true,
      maxMessages: peerQueueMessages,
      maxBytes,
      ...frames,
    });
  }

  get empty(): boolean {
    return this.system.empty && this.user.empty;
  }

  /** A full socket is being waited for. */
  get waiting(): boolean {
    return this.polling !== undefined;
  }

  /** The system lane first, and while the socket has much unsent only that. True when all is handed over. */
  pump(link: Link): boolean {
    if (link.bufferedBytes() <= limits.socketBufferBytes) this.sendJointly(link);
    this.send(link, this.system, 'system', limits.systemBufferBytes);
    this.send(link, this.user, 'user', limits.socketBufferBytes);
    if (this.empty) return true;
    this.polling ??= this.owner.environment.timers.set(POLL_MS, () => {
      this.polling = undefined;
      this.owner.retry();
    });
    return false;
  }

  /** A user message as the frame that goes next. False when it has to be queued: it is small, or it would have to wait. */
  sendNow(link: Link, bytes: Uint8Array): boolean {
    if (bytes.length < largeBytes || link.copies !== true || !fastPaths.onTheSpot) return false;
    if (!this.empty && (this.waiting || !this.pump(link))) return false;
    if (link.bufferedBytes() > limits.socketBufferBytes) return false;
    const frame = sharedFrame('user', bytes);
    if (frame === undefined) return false;
    link.send(frame);
    this.owner.counters.sent('user', frame.length, 1);
    return true;
  }

  /** The socket has sent something; cheap when nobody waits for it. */
  drained(link: Link): void {
    if (this.polling === undefined || link.bufferedBytes() > limits.socketBufferBytes / 2) return;
    this.pause();
    this.owner.retry();
  }

  /** Hands everything over, whatever the socket has unsent. */
  force(link: Link): void {
    this.send(link, this.system, 'system', Infinity);
    this.send(link, this.user, 'user', Infinity);
  }

  pause(): void {
    this.polling?.();
    this.polling = undefined;
  }

  /** A new link to process `uid`: what was meant for another one is given back. */
  relink(uid: string): void {
    this.giveBack(this.system.relink(uid), 'restarted');
    this.giveBack(this.user.relink(uid), 'restarted');
  }

  /** What is queued will not be sent. */
  giveUp(reason: string): void {
    this.giveBack(this.system.drain(), reason);
    this.giveBack(this.user.drain(), reason);
  }

  /** One frame with what both lanes have to send, the system lane's before the other's: one wake-up for the receiver. */
  private sendJointly(link: Link): void {
    const joint = this.user.nextBehind(this.system);
    if (joint === undefined) return;
    link.send(joint.frame);
    this.owner.counters.sent('user', joint.frame.length, joint.messages);
  }

  private send(link: Link, queue: SendQueue, lane: Lane, maxBuffered: number): void {
    while (!queue.empty && link.bufferedBytes() <= maxBuffered) {
      const { frame, messages } = queue.next()!;
      link.send(frame);
      this.owner.counters.sent(lane, frame.length, messages);
    }
  }

  private giveBack(returned: Returned, reason: string): void {
    if (returned.messages === 0) return;
    this.owner.counters.drop(reason, returned.messages);
    for (const envelope of returned.envelopes) this.owner.undeliverable(envelope, reason);
  }
}
