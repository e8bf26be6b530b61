/** The connection of a caller, kept up: the shell of `connection_state.ts`, with hello, keep-alive and frames. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { WireError } from '../cluster/wire_checks.ts';
import { coreLimits as limits } from '../limits.ts';
import { closeCodes } from '../transport/close_codes.ts';
import type { DialFailure, Link } from '../transport/contract.ts';
import { EnvelopePipe } from '../transport/envelope_pipe.ts';
import { batchContent, type Envelope, type Lane } from '../wire/batch.ts';
import { DecodeError, FrameError } from '../wire/errors.ts';
import { LeanCodec } from '../wire/lean_codec.ts';
import {
  type ConnectionEffect,
  type ConnectionEvent,
  type ConnectionState,
  initialConnection,
  stepConnection,
} from './connection_state.ts';
import type { CallerDial } from './dial.ts';
import { type FromCaller, fromCallerEnvelope, readToCaller, type ToCaller, type Welcome } from './messages.ts';

export interface ConnectionPort {
  readonly environment: Environment;
  readonly urls: readonly string[];
  readonly dial: CallerDial;
  connected(url: string, welcome: Welcome): void;
  disconnected(why: string): void;
  /** A try to connect came to nothing. */
  refused(url: string, failure: DialFailure): void;
  message(message: Exclude<ToCaller, { kind: 'welcome' | 'pong' }>): void;
  /** There is room again for what had to wait. */
  drained(): void;
}

/** Contents travel in the frames as bytes. */
const frames = /* @__PURE__ */ new LeanCodec({ maxBytes: limits.callerFrameBytes - 64 });

export class CallerConnection {
  readonly #port: ConnectionPort;
  #state: ConnectionState = initialConnection;
  #session = 0;
  #dialling: Cancel | undefined;
  #waiting: Cancel | undefined;
  #pinging: Cancel | undefined;
  /** The deadline of the welcome, while there is a link and none came. */
  #greeting: Cancel | undefined;
  #link: EnvelopePipe | undefined;
  #heardAt = 0;
  #welcomed: Welcome | undefined;

  constructor(port: ConnectionPort) {
    this.#port = port;
  }

  get state(): 'connected' | 'connecting' | 'closed' {
    if (this.#state.kind === 'open') return 'connected';
    return this.#state.kind === 'closed' ? 'closed' : 'connecting';
  }

  get congested(): boolean {
    return this.#state.kind !== 'open' || this.#link === undefined || this.#link.congested;
  }

  start(): void {
    this.#feed({ kind: 'start' });
  }

  /** Nothing is kept for a later connection. */
  send(message: FromCaller, lane: Lane = 'system'): 'queued' | 'full' | 'closed' {
    if (this.#state.kind !== 'open' || this.#link === undefined) return 'closed';
    return this.#link.send(lane, fromCallerEnvelope(message));
  }

  /** Gives the present connection up and tries the next address. */
  giveUp(why: string): void {
    this.#feed({ kind: 'lost', why });
  }

  close(): void {
    if (this.#state.kind === 'open') this.send({ kind: 'bye' });
    this.#feed({ kind: 'close' });
    this.#waiting?.();
  }

  #feed(event: ConnectionEvent): void {
    const { urls, environment } = this.#port;
    const { state, effects } = stepConnection(this.#state, event, urls.length, environment.random.next());
    this.#state = state;
    for (const effect of effects) this.#run(effect);
  }

  #run(effect: ConnectionEffect): void {
    switch (effect.kind) {
      case 'dial':
        return this.#dial(this.#port.urls[effect.at]!);
      case 'wait':
        this.#waiting = this.#port.environment.timers.set(effect.ms, () => this.#feed({ kind: 'due' }));
        return;
      case 'hang-up':
        return this.#hangUp(effect.why);
      case 'connected':
        return this.#port.connected(this.#port.urls[effect.at]!, this.#welcomed!);
      case 'disconnected':
        return this.#port.disconnected(effect.why);
      case 'refused':
        return this.#port.refused(this.#port.urls[effect.at]!, effect.failure);
      default:
        return effect satisfies never;
    }
  }

  #dial(url: string): void {
    let failed = false;
    const fail = (failure: DialFailure) => {
      if (failed) return;
      failed = true;
      this.#dialling = undefined;
      this.#feed({ kind: 'failed', failure });
    };
    this.#dialling = this.#port.dial(url, {
      opened: (link) => {
        this.#dialling = undefined;
        if (this.#state.kind !== 'dialling') return link.close(1000, 'cancelled');
        this.#greet(link, fail);
      },
      failed: fail,
      frame: (link, bytes) => this.#frame(link, bytes),
      closed: (link, close) => {
        if (this.#link?.link !== link) return;
        this.#link.ended();
        this.#drop();
        const why = `the connection was closed (${close.code} ${close.reason.replace(/\p{Cc}/gu, ' ')})`;
        if (this.#state.kind === 'dialling') fail({ reason: 'reset', code: 'closed', detail: why });
        else this.#feed({ kind: 'lost', why });
      },
    });
  }

  #greet(link: Link, fail: (failure: DialFailure) => void): void {
    const { environment } = this.#port;
    this.#link = new EnvelopePipe(link, {
      environment,
      encode: (envelope) => frames.encode(envelope),
      maxMessages: limits.callerQueueMessages,
      maxBytes: limits.callerQueueBytes,
      socketBytes: limits.socketBufferBytes / 4,
      onDrain: () => this.#port.drained(),
    });
    this.#heardAt = environment.clock.now();
    this.#greeting = environment.timers.set(limits.handshakeMs, () => {
      this.#hangUp('no welcome');
      fail({ reason: 'timeout', code: 'deadline', detail: 'the node did not say welcome in time' });
    });
  }

  #frame(link: Link, bytes: Uint8Array): void {
    const own = this.#link;
    if (own?.link !== link) return;
    this.#heardAt = this.#port.environment.clock.now();
    try {
      for (const envelope of frames.decodeSequence(batchContent(bytes, limits.frameBytes))) {
        if (this.#link !== own) return;
        if (!Array.isArray(envelope)) throw new WireError('an envelope that is no array');
        this.#take(own, readToCaller(envelope as unknown as Envelope));
      }
    } catch (error) {
      const malformed = error instanceof FrameError || error instanceof DecodeError || error instanceof WireError;
      if (!malformed) throw error;
      this.#port.environment.log.warn('a malformed frame came from the cluster', { why: error.message });
      this.giveUp(`a malformed frame: ${error.message}`);
    }
  }

  #take(link: EnvelopePipe, message: ToCaller): void {
    if (message.kind === 'pong') return;
    if (message.kind !== 'welcome') return this.#state.kind === 'open' ? this.#port.message(message) : undefined;
    if (this.#state.kind !== 'dialling') return;
    this.#greeting?.();
    this.#session += 1;
    this.#welcomed = message.welcome;
    link.send('system', fromCallerEnvelope({ kind: 'hello', session: this.#session }));
    this.#ping();
    this.#feed({ kind: 'welcome' });
  }

  #ping(): void {
    this.#pinging = this.#port.environment.timers.set(limits.callerPingMs, () => {
      const silentMs = this.#port.environment.clock.now() - this.#heardAt;
      if (silentMs > limits.callerPingMs * 3) return this.giveUp(`nothing was heard for ${Math.round(silentMs)} ms`);
      this.send({ kind: 'ping' });
      this.#ping();
    });
  }

  #hangUp(why: string): void {
    this.#dialling?.();
    this.#dialling = undefined;
    const link = this.#link;
    this.#drop();
    link?.close(closeCodes.goingAway, why.slice(0, 100));
  }

  #drop(): void {
    this.#pinging?.();
    this.#greeting?.();
    this.#link = undefined;
  }
}
