/** One connected caller, on the node that it is connected to. It is answerable for what the caller's token allows. */
import type { Environment } from '../actor/environment.ts';
import type { ResolvedGrant } from '../cluster/caller_grants.ts';
import { WireError } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import { closeCodes } from '../transport/close_codes.ts';
import type { Link } from '../transport/contract.ts';
import { EnvelopePipe } from '../transport/envelope_pipe.ts';
import { batchContent, type Envelope, type Lane } from '../wire/batch.ts';
import { Codec } from '../wire/codec.ts';
import { FrameError } from '../wire/errors.ts';
import { FrameReader } from '../wire/frames.ts';
import {
  type CallerStamp,
  type FromCaller,
  type HostStep,
  readFromCaller,
  type ToCaller,
  toCallerEnvelope,
  type Told,
} from './messages.ts';
import { costOf, type RateBucket } from './rate.ts';

/** What a session needs of its node. */
export interface SessionPort {
  readonly environment: Environment;
  readonly clusterName: string;
  /** The uid of the member that is to host `name`. */
  hostOf(name: string): string | undefined;
  /** The uid of the member at this address. */
  uidAt(address: string): string | undefined;
  /** False: that process is no member. */
  toHost(stamp: CallerStamp, host: string, step: HostStep): boolean;
  deliver(stamp: CallerStamp, host: string, told: Told): boolean;
  /** The caller has said which of its connections this is. */
  begun(session: GatewaySession): void;
  ended(session: GatewaySession, why: SessionEnd): void;
}

export type SessionEnd = 'closed' | 'malformed' | 'forbidden' | 'too-fast' | 'too-slow' | 'silent' | 'replaced' | 'bye';

const endCodes: Readonly<Record<Exclude<SessionEnd, 'closed'>, number>> = {
  'malformed': closeCodes.malformedFrame,
  'forbidden': closeCodes.forbidden,
  'too-fast': closeCodes.tooFast,
  'too-slow': closeCodes.tooSlow,
  'silent': closeCodes.silent,
  'replaced': closeCodes.replaced,
  'bye': 1000,
};

const frames = new Codec({ maxBytes: limits.callerFrameBytes - 64 });

export class GatewaySession {
  readonly id: string;
  readonly grant: ResolvedGrant;
  /** Singletons in use, each with the host the caller was told of last. */
  readonly names = new Map<string, string | undefined>();
  /** 0 until the caller has said it. */
  number = 0;
  heardAt: number;
  readonly #port: SessionPort;
  readonly #link: EnvelopePipe;
  readonly #bucket: RateBucket;
  readonly #reader = new FrameReader(frames);
  #over = false;

  /** @param bucket pays for what the caller says; it may have served another connection before */
  constructor(id: string, grant: ResolvedGrant, link: Link, bucket: RateBucket, port: SessionPort) {
    this.id = id;
    this.grant = grant;
    this.#port = port;
    this.heardAt = port.environment.clock.now();
    this.#bucket = bucket;
    this.#link = new EnvelopePipe(link, {
      environment: port.environment,
      encode: (envelope) => frames.encode(envelope),
      maxMessages: limits.callerQueueMessages,
      maxBytes: limits.callerQueueBytes,
      socketBytes: limits.socketBufferBytes / 4,
    });
    const { clusterName } = port;
    const { name, singletons, tell, ask, messagesPerSecond: rate } = grant;
    this.say({ kind: 'welcome', welcome: { clusterName, grant: name, singletons, tell, ask, rate } });
  }

  get stamp(): CallerStamp {
    return { id: this.id, session: this.number };
  }

  say(message: ToCaller, lane: Lane = 'system'): void {
    if (!this.#over && this.#link.send(lane, toCallerEnvelope(message)) === 'full') this.end('too-slow');
  }

  received(bytes: Uint8Array): void {
    if (this.#over) return;
    this.heardAt = this.#port.environment.clock.now();
    // Bytes are paid for before anything is decoded.
    if (!this.#pay(costOf(bytes.length) - 1)) return this.end('too-fast');
    try {
      for (const envelope of this.#read(bytes)) {
        if (this.#over) return;
        if (!this.#pay(1)) return this.end('too-fast');
        this.#take(readFromCaller(envelope));
      }
    } catch (error) {
      if (!(error instanceof FrameError) && !(error instanceof WireError)) throw error;
      this.end('malformed', error.message);
    }
  }

  /** @throws FrameError */
  #read(bytes: Uint8Array): readonly Envelope[] {
    batchContent(bytes, limits.callerFrameBytes);
    const frame = this.#reader.read(bytes);
    // Contents travel as bytes: what is around them always decodes.
    if (frame.kind !== 'messages' || frame.failed > 0) {
      throw new FrameError('envelope', 'a message that does not decode');
    }
    return frame.envelopes;
  }

  #pay(cost: number): boolean {
    return this.#bucket.take(cost, this.#port.environment.clock.now());
  }

  #take(message: FromCaller): void {
    if (this.number === 0 && message.kind !== 'hello') return this.end('malformed', 'no hello');
    switch (message.kind) {
      case 'hello':
        if (this.number !== 0 || message.session === 0) return this.end('malformed', 'a wrong hello');
        this.number = message.session;
        return this.#port.begun(this);
      case 'use':
        if (this.#admits(message.name)) this.#use(message.name);
        return;
      case 'open':
        if (this.#admits(message.start.name)) this.#open(message.host, message.start);
        return;
      case 'told':
        return this.#told(message.host, message.told);
      case 'ping':
        return this.say({ kind: 'pong' });
      case 'bye':
        for (const name of this.names.keys()) this.#step(name, { kind: 'end', name });
        return this.end('bye');
      default:
        return message satisfies never;
    }
  }

  #admits(name: string): boolean {
    const { singletons } = this.grant;
    if (singletons !== undefined && !singletons.includes(name)) {
      this.end('forbidden', `this token is not for singleton ${name}`);
      return false;
    }
    if (this.names.has(name)) return true;
    if (this.names.size >= limits.callerNames) {
      this.end('forbidden', `a caller uses at most ${limits.callerNames} singletons`);
      return false;
    }
    return true;
  }

  #use(name: string): void {
    const host = this.#port.hostOf(name);
    this.names.set(name, host);
    this.say({ kind: 'host', name, uid: host });
    this.attach(name);
  }

  /** The host learns by which way this caller can be answered, and that it is still there. */
  attach(name: string): void {
    this.#step(name, { kind: 'attach', name });
  }

  #step(name: string, step: HostStep): void {
    const host = this.names.get(name);
    if (host !== undefined) this.#port.toHost(this.stamp, host, step);
  }

  #open(host: string, start: Extract<HostStep, { kind: 'open' }>['start']): void {
    if (!this.names.has(start.name)) this.#use(start.name);
    if (!this.#port.toHost(this.stamp, host, { kind: 'open', start })) this.#tellHost(start.name);
  }

  #told(host: string, told: Told): void {
    if (!this.#admits(told.name)) return;
    const { tell, ask } = this.grant;
    if (told.receiver === null ? !tell : !ask) {
      return this.end('forbidden', `this token may not ${told.receiver === null ? 'tell' : 'ask'}`);
    }
    if (!this.#port.deliver(this.stamp, host, told)) this.#tellHost(told.name);
  }

  /** It believes in a host that is none. */
  #tellHost(name: string): void {
    const uid = this.#port.hostOf(name);
    this.names.set(name, uid);
    this.say({ kind: 'host', name, uid });
  }

  /** The view has changed. */
  rehost(hostOf: (name: string) => string | undefined): void {
    for (const [name, told] of this.names) {
      const uid = hostOf(name);
      if (uid === told) continue;
      this.names.set(name, uid);
      this.say({ kind: 'host', name, uid });
      this.attach(name);
    }
  }

  end(why: Exclude<SessionEnd, 'closed'>, detail = ''): void {
    if (this.#over) return;
    this.#over = true;
    this.#link.close(endCodes[why], detail === '' ? why : `${why}: ${detail}`.slice(0, 100));
    this.#port.ended(this, why);
  }

  /** The link is gone. */
  closed(): void {
    if (this.#over) return;
    this.#over = true;
    this.#link.ended();
    this.#port.ended(this, 'closed');
  }
}
