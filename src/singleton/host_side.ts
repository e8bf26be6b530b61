/** The host's side of delivery on one node: who may send, what is refused, and what is acknowledged, as messages. */
import type { MembershipNode } from '../cluster/contract.ts';
import { countOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import type { Delivery, DeliveryHost, OpenOutcome } from './delivery_host.ts';
import { hostOf } from './host.ts';
import type { Sender } from './in_flight.ts';
import { acknowledgeEnvelope, openedEnvelope, type OpenMessage, refuseEnvelope } from './messages.ts';
import { isCaller, outsideAddress, type OutsideAnswers } from './outside.ts';
import { type LocalHost, type SingletonProxy, unsendable, weightOf } from './proxy.ts';
import type { Transmission } from './sender_stream.ts';

export interface HostSidePort {
  readonly name: string;
  readonly node: MembershipNode;
  readonly host: DeliveryHost;
  /** The sender's side on this same node. */
  readonly proxy: () => SingletonProxy;
  /** The sender that another node has put into a delivery. */
  readonly senderFrom: (peer: PeerIdentity, field: unknown) => Sender;
  /** Messages of this node are copied for the instance, as if they came from another one. */
  readonly copies: () => boolean;
  /** How answers reach senders that are no members. */
  readonly outside: OutsideAnswers | undefined;
}

export class HostSide implements LocalHost {
  readonly #port: HostSidePort;
  /** Senders that asked to open while this node was becoming host. */
  readonly #waiting = new Map<string, OpenMessage>();
  /** By peer: the stale epoch it was refused for last, so that a burst of deliveries is refused once. */
  readonly #refused = new Map<string, number>();
  #flushBooked = false;

  constructor(port: HostSidePort) {
    this.#port = port;
  }

  forget(uid: string): void {
    this.#port.host.forget(uid);
    this.#waiting.delete(uid);
    this.#refused.delete(uid);
  }

  /** Tells every sender it knows, and those that wait, that they may send. */
  announce(): void {
    const { host, node } = this.#port;
    const members = new Map(node.view().members.map((member) => [member.uid, member.address]));
    const addressOf = (uid: string) => isCaller(uid) ? outsideAddress : members.get(uid);
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [uid, message] of waiting) {
      const address = addressOf(uid);
      if (address !== undefined) this.#answerOpen(uid, address, message);
    }
    for (const uid of host.streams()) {
      const address = addressOf(uid);
      if (address === undefined || waiting.some(([other]) => other === uid)) continue;
      const state = host.state(uid);
      if (state) this.#sendOpened(uid, address, { ...state, verdict: 'announced' });
    }
    const proxy = this.#port.proxy();
    const open = proxy.stream.target;
    // Open to the instance before on this very node: what it had been sent is settled by opening anew, even if nothing
    // more is told.
    if (open?.uid === node.uid && open.epoch !== host.epoch) proxy.stream.closed();
    proxy.retarget();
  }

  #sendOpened(
    uid: string,
    address: string,
    outcome: Omit<OpenOutcome, 'verdict'> & { verdict: OpenOutcome['verdict'] | 'announced' },
  ): void {
    const { node } = this.#port;
    const { epoch, plannedSince } = this.#port.host;
    const message = { name: this.#port.name, epoch, plannedSince, ...outcome };
    if (uid === node.uid) this.#port.proxy().onOpened(uid, address, message);
    else this.#send(uid, address, openedEnvelope(message));
  }

  #answerOpen(uid: string, address: string, message: OpenMessage): void {
    const outcome = this.#port.host.open(uid, message);
    if (outcome) this.#sendOpened(uid, address, outcome);
    else {
      this.#port.node.environment.log.warn(
        `singleton ${this.#port.name}: too many sender streams, one more is refused`,
        { from: address },
      );
    }
  }

  open(stream: string, message: OpenMessage): (OpenOutcome & { epoch: number; plannedSince: number }) | undefined {
    const { host } = this.#port;
    if (host.epoch === 0) {
      this.#waiting.set(stream, message);
      return undefined;
    }
    const outcome = host.open(stream, message);
    return outcome && { ...outcome, epoch: host.epoch, plannedSince: host.plannedSince };
  }

  offer(stream: string, epoch: number, message: Omit<Delivery, 'bytes'>): Transmission | 'stale' {
    const { host, node, copies } = this.#port;
    const bytes = weightOf(message.message, node);
    if (typeof bytes !== 'number') return bytes;
    const copied = copies() ? node.messages.copy(message.message) : { value: message.message };
    if (!('value' in copied)) return unsendable(copied) ?? 'wait';
    if (host.epoch !== epoch || epoch === 0) return 'stale';
    const outcome = host.offer(stream, { ...message, message: copied.value, bytes });
    if (outcome === 'full') return 'wait';
    return outcome === 'gap' ? 'stale' : bytes;
  }

  onOpen(peer: PeerIdentity, message: OpenMessage): void {
    if (this.#port.host.epoch > 0) return this.#answerOpen(peer.uid, peer.address, message);
    const { node } = this.#port;
    const host = hostOf(node.view(), this.#port.name);
    if (host?.uid === node.uid) {
      if (this.#waiting.size < limits.streams || this.#waiting.has(peer.uid)) this.#waiting.set(peer.uid, message);
      return;
    }
    this.#refuse(peer, 'not-host', host?.address);
  }

  onDeliver(peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    const { host } = this.#port;
    const epoch = countOf(envelope[2], 'epoch');
    const seq = countOf(envelope[3], 'sequence number');
    const sender = this.#port.senderFrom(peer, envelope[5]);
    if (host.epoch !== epoch) {
      const other = hostOf(this.#port.node.view(), this.#port.name);
      if (this.#refused.get(peer.uid) === epoch) return;
      if (this.#refused.size >= limits.streams) this.#refused.clear();
      this.#refused.set(peer.uid, epoch);
      return this.#refuse(peer, host.epoch > 0 ? 'epoch' : 'not-host', other?.address);
    }
    const delivery = { seq, message: envelope[6], sender, bytes, repeat: envelope[4] === 1 };
    if (host.offer(peer.uid, delivery) === 'gap') this.#refuse(peer, 'gap', undefined);
  }

  /** The sender opens its stream again and sends what was turned away. */
  resume(stream: string): void {
    const { node } = this.#port;
    if (stream === node.uid) {
      // In a turn of its own: this comes from the middle of a handler.
      node.environment.turns.schedule(() => this.#port.proxy().pump());
      return;
    }
    const address = isCaller(stream)
      ? outsideAddress
      : node.view().members.find((member) => member.uid === stream)?.address;
    if (address !== undefined) this.#refuse({ uid: stream, address }, 'gap', undefined);
  }

  #refuse(
    peer: Pick<PeerIdentity, 'uid' | 'address'>,
    why: 'not-host' | 'epoch' | 'gap',
    hint: string | undefined,
  ): void {
    const { node, name, host: { epoch } } = this.#port;
    const refusal = { name, epoch, why, hint: hint === node.address ? undefined : hint };
    this.#send(peer.uid, peer.address, refuseEnvelope(refusal));
  }

  #send(uid: string, address: string, envelope: Envelope): void {
    if (isCaller(uid)) this.#port.outside?.answer(uid, envelope);
    else this.#port.node.sendSystem(address, envelope, uid);
  }

  acknowledge(stream: string, prefix: number, others: readonly number[]): void {
    const { node } = this.#port;
    if (stream === node.uid) return this.#port.proxy().onAcknowledge(prefix, others);
    const address = isCaller(stream)
      ? outsideAddress
      : node.view().members.find((member) => member.uid === stream)?.address;
    if (address !== undefined) {
      this.#send(stream, address, acknowledgeEnvelope({ name: this.#port.name, prefix, others }));
    }
  }

  bookFlush(): void {
    if (this.#flushBooked) return;
    this.#flushBooked = true;
    this.#port.node.beforeFlush(() => {
      this.#flushBooked = false;
      this.#port.host.flush();
    });
  }
}
