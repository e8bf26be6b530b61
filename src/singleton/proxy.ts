/**
 * The proxy of one singleton on one node: decides to whom the sender stream is open, opens it again after every change,
 * and turns what cannot be delivered into dead letters. It looks at the same `hostOf` as the manager.
 */
import type { Cancel } from '../actor/environment.ts';
import { logUnsendable } from '../actor/unsendable_log.ts';
import type { Member } from '../cluster/member.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { Address } from '../transport/contract.ts';
import type { SendFailure } from '../transport/peers_contract.ts';
import type { Delivery, OpenOutcome } from './delivery_host.ts';
import type { Sender } from './in_flight.ts';
import { inOneLine } from './delivery_filter.ts';
import { deliverEnvelope, type OpenedMessage, openEnvelope, type OpenMessage, type RefuseMessage } from './messages.ts';
import {
  type DeliveryMode,
  type LostReason,
  type Opened,
  type OpenTarget,
  type OverflowPolicy,
  SenderStream,
  type StreamPort,
  type Transmission,
  type Unsendable,
} from './sender_stream.ts';

/** The host's side on this same node, when it is the host. */
export interface LocalHost {
  /** Undefined: not hosting at the moment; the open is remembered and answered by `announced` later. */
  open(stream: string, message: OpenMessage): (OpenOutcome & { epoch: number; plannedSince: number }) | undefined;
  /** `stale`: the stream must be opened again. */
  offer(stream: string, epoch: number, delivery: Omit<Delivery, 'bytes'>): Transmission | 'stale';
}

export interface ProxyOptions {
  readonly bufferSize: number;
  readonly bufferBytes: number;
  readonly overflow: OverflowPolicy;
  readonly delivery: DeliveryMode;
}

/** What a proxy needs of its node; a caller from outside has something that looks like it. */
export interface ProxyNode
  extends Pick<MembershipNode, 'environment' | 'address' | 'uid' | 'messages' | 'sendSystem' | 'sendUser' | 'linked'> {
  view(): { readonly members: readonly ProxyPeer[] };
}

/** A member, as far as it matters here. */
export type ProxyPeer = Pick<Member, 'uid' | 'address' | 'status'>;

export interface ProxyPort {
  readonly name: string;
  readonly node: ProxyNode;
  readonly local: LocalHost;
  /** The member that should host it, in the view of this node, and the role that counts for it. */
  host(): ProxyPeer | undefined;
  role(): string | undefined;
  /** What logs say in the place of a host that `host()` does not know. */
  readonly noHost?: string;
  /** A sender in the form in which it goes to another node. */
  senderField(sender: Sender): unknown;
  deadLetter(message: unknown, sender: Sender, reason: LostReason, detail: string): void;
}

/** Unanswered opens are repeated this often; a silent host is asked again after twice as long, then less and less often. */
const retryMs = 250;
/** Until a start says otherwise. */
const defaultBuffer = { messages: 1_000, bytes: 64 * 1024 * 1024 };
const longestStallMs = 5_000;

export class SingletonProxy implements StreamPort {
  readonly stream: SenderStream;
  readonly #port: ProxyPort;
  #mode: DeliveryMode = 'at-most-once';
  /** uid the stream is being opened to. */
  #opening: string | undefined;
  #hint: Address | undefined;
  #timer: Cancel | undefined;
  #stalledMs = 0;
  #askAfterMs = retryMs * 2;
  #overflowing = false;
  #ended = false;
  #suspended = false;
  #sentBytes = 0;
  readonly #sized = (bytes: number): void => void (this.#sentBytes = bytes);

  /** With `before`, its stream goes on as that of a new sender. */
  constructor(port: ProxyPort, before?: SingletonProxy) {
    this.#port = port;
    this.stream = before?.stream ?? new SenderStream(defaultBuffer.messages, defaultBuffer.bytes, 'drop-newest');
    this.stream.attach(this);
    if (before) {
      this.#mode = before.#mode;
      this.stream.renew(this.#mode);
    }
  }

  configure(options: ProxyOptions): void {
    this.#mode = options.delivery;
    this.stream.configure(options.bufferSize, options.bufferBytes, options.overflow);
  }

  tell(message: unknown, sender: Sender): void {
    this.stream.tell(message, sender);
    if (this.#ended) return this.stream.terminate('terminated', 'this node has left the cluster');
    if (this.stream.target === undefined && this.#opening === undefined) this.retarget();
    this.#arm();
  }

  /** The view, or what is known about the host, has changed. */
  retarget(): void {
    if (this.#ended || this.#suspended) return;
    const host = this.#believed();
    const open = this.stream.target;
    if (open && host?.uid === open.uid) return;
    if (open) this.stream.closed();
    if (host === undefined || this.stream.buffered === 0) {
      this.#opening = undefined;
    } else if (this.#opening !== host.uid) {
      this.#open(host);
    }
    this.#arm();
  }

  #believed(): ProxyPeer | undefined {
    const view = this.#port.node.view();
    const hinted = this.#hint &&
      view.members.find((member) => member.address === this.#hint && member.status !== 'down');
    return hinted || this.#port.host();
  }

  #open(host: ProxyPeer): void {
    this.#opening = host.uid;
    const { name, node } = this.#port;
    const { base, next, lastSentEpoch } = this.stream;
    const message: OpenMessage = { name, base, next, lastSentEpoch, repeat: this.#mode === 'at-least-once' };
    if (host.uid !== node.uid) return node.sendSystem(host.address, openEnvelope(message), host.uid);
    const outcome = this.#port.local.open(node.uid, message);
    if (outcome === undefined) return;
    const { verdict, epoch } = outcome;
    if (verdict === 'forgotten') return this.#forgotten(host.uid);
    this.#opened({ uid: node.uid, address: node.address, epoch }, { ...outcome, verdict });
  }

  /** The host at `address` answered an open, or announced itself after a move. */
  onOpened(uid: string, address: Address, message: OpenedMessage): void {
    if (this.#ended || this.#suspended) return;
    const target = { uid, address, epoch: message.epoch };
    if (message.verdict === 'forgotten') {
      // Late, where the stream has been opened since.
      if (this.stream.target === undefined && this.#opening === uid) this.#forgotten(uid);
      return;
    }
    if (message.verdict === 'announced') {
      const { base, next, lastSentEpoch } = this.stream;
      const open = this.stream.target;
      if (open && open.epoch >= message.epoch) return;
      const nothingDoubtful = base === next || inOneLine(lastSentEpoch, message);
      if (!nothingDoubtful || (base === next && message.next !== base)) return this.#reopen(uid);
      return this.#opened(target, { ...message, verdict: 'continued' });
    }
    const open = this.stream.target;
    if (open && (open.epoch > message.epoch || (open.epoch === message.epoch && open.uid !== uid))) return;
    if (this.#opening !== uid && open?.uid !== uid) return;
    // The answer to an open that was repeated: what is on its way now was sent after the first answer, to this same host.
    if (message.verdict === 'crash' && inOneLine(this.stream.lastSentEpoch, message)) return;
    this.#opened(target, { ...message, verdict: message.verdict });
  }

  /** The host remembers nothing of this stream: what is on its way is settled as after a crash, and the rest goes on. */
  #forgotten(uid: string): void {
    this.stream.renew(this.#mode);
    this.#reopen(uid);
  }

  #reopen(uid: string): void {
    this.stream.closed();
    const member = this.#port.node.view().members.find((candidate) => candidate.uid === uid);
    if (member && this.stream.buffered > 0) this.#open(member);
    else this.#opening = undefined;
  }

  #opened(target: OpenTarget, outcome: Omit<Opened, 'target'>): void {
    this.#opening = undefined;
    this.#stalledMs = 0;
    this.#askAfterMs = retryMs * 2;
    this.stream.opened({ target, ...outcome }, this.#mode);
    this.#arm();
  }

  onAcknowledge(prefix: number, others: readonly number[]): void {
    if (!this.stream.acknowledged(prefix, others)) return;
    this.#stalledMs = 0;
    this.#askAfterMs = retryMs * 2;
    if (this.stream.waiting > 0) this.stream.pump();
    else this.#overflowing = false;
  }

  onRefuse(uid: string, message: RefuseMessage): void {
    const open = this.stream.target;
    if (open?.uid !== uid && this.#opening !== uid) return;
    if (message.why !== 'not-host' && open?.uid === uid && open.epoch !== message.epoch && message.why === 'gap') {
      return;
    }
    this.stream.closed();
    this.#opening = undefined;
    if (message.why === 'gap') return this.#reopen(uid);
    const hinted = message.hint !== undefined && message.hint !== this.#hint ? message.hint : undefined;
    this.#hint = hinted;
    if (hinted !== undefined || message.why === 'epoch') this.retarget();
    // Without news the next try waits for the timer or for a change of the view.
    this.#arm();
  }

  /** For the host on this node, which has room again. */
  pump(): void {
    if (!this.#ended && !this.#suspended) this.stream.pump();
  }

  /** A new view outdates every hint. */
  onView(): void {
    this.#hint = undefined;
    this.retarget();
  }

  /** This node is out of the cluster, and will be back: what is told meanwhile is kept. */
  suspend(): void {
    this.#timer?.();
    this.#timer = undefined;
    this.#suspended = true;
    this.stream.closed();
  }

  /** This node is out of the cluster for good. */
  end(): void {
    this.#ended = true;
    this.#timer?.();
    this.#timer = undefined;
    this.stream.terminate('terminated', 'this node has left the cluster');
  }

  transmit(target: OpenTarget, seq: number, message: unknown, sender: Sender, repeat: boolean): Transmission {
    const { name, node } = this.#port;
    if (target.uid === node.uid) {
      const outcome = this.#port.local.offer(node.uid, target.epoch, { seq, message, sender, repeat });
      if (outcome !== 'stale') return outcome;
      this.stream.closed();
      return 'wait';
    }
    // What waits for a link to a host that has crashed would count as sent, although it never was.
    if (!node.linked(target.address, target.uid)) return 'wait';
    const envelope = deliverEnvelope(name, target.epoch, seq, repeat, this.#port.senderField(sender), message);
    const failure = node.sendUser(target.address, envelope, target.uid, this.#sized);
    if (failure === undefined) return this.#sentBytes;
    return unsendable(failure) ?? 'wait';
  }

  /** The same for a message that stays on this node: what is refused does not depend on where the host is. */
  weigh(message: unknown): number | Unsendable {
    return weightOf(message, this.#port.node);
  }

  lost(message: unknown, sender: Sender, reason: LostReason, detail: string): void {
    if (reason === 'buffer-overflow' && !this.#overflowing) {
      this.#overflowing = true;
      const { name, node } = this.#port;
      node.environment.log.warn(`singleton ${name}: the buffer is full, messages become dead letters`, {
        role: this.#port.role(),
        host: this.#port.host()?.address ?? this.#port.noHost ?? 'nobody has started it',
      });
    }
    if (reason === 'unserializable' || reason === 'too-large') {
      const { name, node } = this.#port;
      logUnsendable(node.environment, `singleton ${name}: a message cannot be sent`, { reason, detail });
    }
    this.#port.deadLetter(message, sender, reason, detail);
  }

  /** One timer while anything is unsettled: repeats opens, and asks a host that acknowledges nothing how far it got. */
  #arm(): void {
    if (this.#timer || this.#ended || this.#suspended || this.stream.buffered === 0) return;
    this.#timer = this.#port.node.environment.timers.set(retryMs, () => {
      this.#timer = undefined;
      this.#tick();
      this.#arm();
    });
  }

  #tick(): void {
    const open = this.stream.target;
    if (open === undefined) {
      this.#opening = undefined;
      return this.retarget();
    }
    this.stream.pump();
    this.#stalledMs += retryMs;
    if (this.#stalledMs < this.#askAfterMs || open.uid === this.#port.node.uid) return;
    this.#stalledMs = 0;
    this.#askAfterMs = Math.min(longestStallMs, this.#askAfterMs * 2);
    const member = this.#port.node.view().members.find((candidate) => candidate.uid === open.uid);
    if (member) this.#open(member);
  }
}

export function weightOf(message: unknown, { messages }: Pick<ProxyNode, 'messages'>): number | Unsendable {
  const weight = messages.weigh(message);
  return typeof weight === 'number' ? weight : unsendable(weight) ?? 0;
}

/** Undefined for what may go another time. */
export function unsendable({ reason, detail }: SendFailure): Unsendable | undefined {
  return reason === 'unserializable' || reason === 'too-large' ? { reason, detail } : undefined;
}
