/**
 * What a caller has in the place of a cluster node, so that the same proxy runs in both: a view of nothing but the hosts its
 * gateway names, and two ways to send, both of which end at that gateway. It keeps no message; what cannot go now stays
 * with the proxy.
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import { coreLimits as limits } from '../limits.ts';
import type { Sender } from '../singleton/in_flight.ts';
import type { ProxyNode, ProxyPeer } from '../singleton/proxy.ts';
import { encodingFailure } from '../transport/envelope_pipe.ts';
import type { Envelope, MessageCheck, SendFailure, Sized } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { LeanCodec } from '../wire/lean_codec.ts';
import type { CallerConnection } from './connection.ts';
import { costOf, RateBucket } from './rate.ts';

export interface CallerNodePort {
  readonly environment: Environment;
  readonly codec: LeanCodec;
  readonly connection: () => CallerConnection;
  /** The lowest sequence number of this singleton that is not settled. */
  base(name: string): number;
  /** The receiver's name; `undefined` for a ref that no answer could reach. */
  receiverOf(sender: Sender): string | undefined;
  /** What had to wait may be tried again. */
  retry(): void;
}

/** Of a `streamOpen` after its name. */
type StartFields = [base: number, next: number, lastSentEpoch: number, repeat: boolean];

const wait: SendFailure = { reason: 'queue-full', detail: 'not now' };
/** Hosts that only a hint has named. */
const keptHints = 64;

export class CallerNode implements ProxyNode {
  readonly environment: Environment;
  readonly address = 'caller:0';
  readonly uid = 'caller';
  readonly #port: CallerNodePort;
  /** By singleton: the uid of its host. */
  readonly #hosts = new Map<string, string>();
  readonly #hinted = new Set<string>();
  #view: { readonly members: readonly ProxyPeer[] } = { members: [] };
  #bucket: RateBucket;
  #refill: Cancel | undefined;
  /** Times a message had to wait for the rate. */
  slowed = 0;

  constructor(port: CallerNodePort) {
    this.#port = port;
    this.environment = port.environment;
    this.#bucket = new RateBucket(limits.callerRate, limits.callerRate, port.environment.clock.now());
  }

  /** A new connection: nothing is known of any host, and this is the rate to keep to. What was said before counts on. */
  begin(rate: number): void {
    this.#hosts.clear();
    this.#hinted.clear();
    if (rate !== this.#bucket.perSecond) this.#bucket = new RateBucket(rate, rate, this.environment.clock.now());
    this.#look();
  }

  /** True when that is news. */
  host(name: string, uid: string | undefined): boolean {
    if (this.#hosts.get(name) === uid) return false;
    if (uid === undefined) this.#hosts.delete(name);
    else this.#hosts.set(name, uid);
    this.#look();
    return true;
  }

  /** A host said that this process is the one to ask. */
  hint(uid: string): void {
    if (this.#hinted.size >= keptHints) this.#hinted.clear();
    this.#hinted.add(uid);
    this.#look();
  }

  hostOf(name: string): string | undefined {
    return this.#hosts.get(name);
  }

  memberFor(name: string): ProxyPeer | undefined {
    const uid = this.#hosts.get(name);
    return uid === undefined ? undefined : this.#view.members.find((member) => member.uid === uid);
  }

  view(): { readonly members: readonly ProxyPeer[] } {
    return this.#view;
  }

  #look(): void {
    const uids = new Set([...this.#hinted, ...this.#hosts.values()]);
    this.#view = { members: [...uids].map((uid) => ({ uid, address: uid, status: 'up' })) };
  }

  /** Nothing stays here, so nothing is copied. */
  readonly messages: MessageCheck = {
    weigh: (message) => {
      const body = this.#encoded(message);
      return body instanceof Uint8Array ? body.length : body;
    },
    copy: (value) => ({ value }),
  };

  linked(): boolean {
    return !this.#port.connection().congested;
  }

  sendSystem(_address: string, envelope: Envelope, uid = ''): void {
    if (envelope[0] !== codes.streamOpen) return;
    this.#bucket.take(1, this.environment.clock.now());
    const [, name, base, next, lastSentEpoch, repeat] = envelope as unknown as [number, string, ...StartFields];
    const start = { name, base, next, lastSentEpoch, repeat };
    this.#port.connection().send({ kind: 'open', host: uid, start });
  }

  sendUser(_address: string, envelope: Envelope, uid = '', sized?: Sized): SendFailure | undefined {
    const [, name, epoch, seq, repeat, sender, message] = envelope as [
      number,
      string,
      number,
      number,
      number,
      Sender | null,
      unknown,
    ];
    const connection = this.#port.connection();
    if (connection.congested || seq - this.#port.base(name) >= limits.callerWindow || !this.#mayTake(1)) return wait;
    const receiver = sender === null || sender === undefined ? null : this.#port.receiverOf(sender);
    if (receiver === undefined) {
      return {
        reason: 'unserializable',
        detail: 'the sender is neither a receiver of this caller nor one of its asks',
      };
    }
    const body = this.#encoded(message);
    if (!(body instanceof Uint8Array)) return body;
    const cost = costOf(body.length);
    if (!this.#mayTake(cost)) return wait;
    const told = { name, epoch, seq, repeat: repeat !== 0, receiver, body };
    if (connection.send({ kind: 'told', host: uid, told }, 'user') !== 'queued') return wait;
    this.#bucket.take(cost, this.environment.clock.now());
    sized?.(body.length);
    return undefined;
  }

  #encoded(message: unknown): Uint8Array<ArrayBuffer> | SendFailure {
    try {
      return this.#port.codec.encode(message);
    } catch (error) {
      return encodingFailure(error);
    }
  }

  #mayTake(cost: number): boolean {
    const waitMs = this.#bucket.waitMs(cost, this.environment.clock.now());
    if (waitMs === 0) return true;
    this.slowed += 1;
    this.#refill ??= this.environment.timers.set(waitMs, () => {
      this.#refill = undefined;
      this.#port.retry();
    });
    return false;
  }

  end(): void {
    this.#refill?.();
    this.#refill = undefined;
  }
}
