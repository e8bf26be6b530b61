/** A caller from outside: the singletons of a cluster from a browser, a Worker or a script, without being a member. */
import { AskRef, Asks } from '../actor/ask.ts';
import { DeadLetters } from '../actor/dead_letters.ts';
import type { Cancel, Environment } from '../actor/environment.ts';
import { EventStream } from '../actor/event_stream.ts';
import type { ActorRef } from '../actor/ref.ts';
import { WireError } from '../cluster/wire_checks.ts';
import { coreLimits as limits } from '../limits.ts';
import type { Sender } from '../singleton/in_flight.ts';
import type { SingletonName } from '../singleton/naming.ts';
import { nameOf } from '../singleton/singleton_name.ts';
import type { Ledger } from '../singleton/sender_stream.ts';
import type { DialFailure } from '../transport/contract.ts';
import { DecodeError, FrameError } from '../wire/errors.ts';
import { LeanCodec } from '../wire/lean_codec.ts';
import { CallerNode } from './caller_node.ts';
import type { ConnectOptions } from './caller_options.ts';
import { CallerStream } from './caller_stream.ts';
import { CallerConnection } from './connection.ts';
import type { CallerDial } from './dial.ts';
import type { ToCaller, Welcome } from './messages.ts';
import { NowhereRef, Receiver } from './receiver.ts';
import { schemes } from './schemes.ts';
import { StallWatch } from './stall_watch.ts';

/** `forbidden` and `host` concern one singleton. `refused`: a try to connect came to nothing. */
export type CallerEvent =
  | { readonly kind: 'connected'; readonly url: string }
  | { readonly kind: 'disconnected'; readonly why: string }
  | { readonly kind: 'refused'; readonly url: string; readonly code: string; readonly detail: string }
  /** Another process hosts it, or none does: what a receiver was registered with may be gone. */
  | { readonly kind: 'host'; readonly singleton: string; readonly known: boolean };

export interface CallerParts {
  readonly environment: Environment;
  readonly urls: readonly string[];
  readonly dial: CallerDial;
  readonly options: ConnectOptions;
}

/** A call that the present state does not allow. */
export class CallerStateError extends Error {
  override readonly name = 'CallerStateError';
}

const closeLookMs = 10;

/**
 * A program outside of the cluster that calls its singletons, from `connect` or `Cluster.connect`. It owns what it
 * tells until that is acknowledged, and reconnects by itself.
 */
export class Caller {
  readonly deadLetters: DeadLetters;
  /** `ref(Class | key | name)`: the same refs as on a member, with `tell` and `ask`. */
  readonly singleton: { ref<T>(name: SingletonName<T>): ActorRef<T> };
  readonly #environment: Environment;
  readonly #options: ConnectOptions;
  readonly #connection: CallerConnection;
  readonly #node: CallerNode;
  readonly #asks: Asks;
  readonly #streams = new Map<string, CallerStream>();
  readonly #receivers = new Map<string, Receiver<any>>();
  readonly #listeners = new Set<(event: CallerEvent) => void>();
  #welcome: Welcome | undefined;
  #url: string | undefined;
  #nextReceiver = 0;
  readonly #stall: StallWatch;
  #closing: Promise<void> | undefined;

  constructor({ environment, urls, dial, options }: CallerParts) {
    this.#environment = environment;
    this.#options = options;
    const events = new EventStream(environment.log);
    this.deadLetters = new DeadLetters(events, environment.log);
    this.#asks = new Asks(environment, 'caller', (ask, message, sender) => {
      this.deadLetters.publish({ message, sender, recipient: ask.path, reason: 'terminated', detail: 'late reply' });
    });
    const codec = new LeanCodec({
      maxBytes: limits.callerMessageBytes,
      refs: {
        toWire: (value) => value instanceof Receiver ? ['', schemes.receiver, value.id, 0] : undefined,
        fromWire: ([, scheme, name]) => this.#refFrom(scheme, name),
      },
    });
    this.#node = new CallerNode({
      environment,
      codec,
      connection: () => this.#connection,
      base: (name) => this.#streams.get(name)?.base ?? 1,
      receiverOf: (sender) => receiverOf(sender),
      retry: () => this.#retry(),
    });
    this.#connection = new CallerConnection({
      environment,
      urls,
      dial,
      connected: (url, welcome) => this.#connected(url, welcome),
      disconnected: (why) => this.#disconnected(why),
      refused: (url, failure) => this.#refused(url, failure),
      message: (message) => this.#message(message, codec),
      drained: () => this.#retry(),
    });
    this.#stall = new StallWatch({
      environment,
      streams: () => this.#streams.values(),
      hosted: (name) => this.#node.hostOf(name) !== undefined,
      giveUp: (why) => this.#connection.giveUp(why),
    });
    this.singleton = { ref: (name) => this.#stream(nameOf(name)).ref };
  }

  /** For `connect`. */
  start(): void {
    this.#connection.start();
  }

  get state(): 'connected' | 'connecting' | 'closed' {
    return this.#connection.state;
  }

  /** The node it is connected to at present. */
  get url(): string | undefined {
    return this.#url;
  }

  /** What the token allows, as the node said that it was connected to last. */
  get grant(): Pick<Welcome, 'clusterName' | 'singletons' | 'tell' | 'ask'> | undefined {
    return this.#welcome;
  }

  /** What became of the messages told to this singleton: told = acknowledged + dead-lettered + buffered, at any moment. */
  ledger(name: SingletonName<any>): Ledger {
    return this.#stream(nameOf(name)).ledger();
  }

  /** Calls `listener` with every change from now on. */
  subscribe(listener: (event: CallerEvent) => void): Cancel {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * A ref that singletons can send to, when it is the sender of a `tell` or is in a message. `stop()` ends it.
   * @throws CallerStateError at the bound
   */
  receiver<T = unknown>(receive: (message: T) => void): Receiver<T> {
    if (this.#receivers.size >= limits.callerReceivers) {
      throw new CallerStateError(`a caller has at most ${limits.callerReceivers} receivers`);
    }
    const id = `r-${(this.#nextReceiver += 1).toString(36)}`;
    const receiver = new Receiver<T>(id, receive, {
      remove: ({ id: gone }) => void this.#receivers.delete(gone),
      failed: ({ path }, error) => this.#environment.log.error('a receiver failed', { path, error }),
    });
    this.#receivers.set(id, receiver);
    return receiver;
  }

  /**
   * Waits (`closeTimeoutMs`) until everything told is acknowledged, then ends: what is left becomes dead letters, and asks
   * fail. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { clock, timers } = this.#environment;
    const deadline = clock.now() + (this.#options.closeTimeoutMs ?? 5_000);
    const unsettled = (): boolean => [...this.#streams.values()].some(({ proxy }) => proxy.stream.buffered > 0);
    while (unsettled() && clock.now() < deadline) {
      await new Promise<void>((resolve) => void timers.set(closeLookMs, resolve));
    }
    this.#stall.end();
    this.#node.end();
    for (const { proxy } of this.#streams.values()) proxy.end();
    this.#asks.close();
    this.#connection.close();
    this.#url = undefined;
  }

  #stream(name: string): CallerStream {
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    if (this.#streams.size >= limits.callerNames) {
      throw new CallerStateError(`a caller uses at most ${limits.callerNames} singletons`);
    }
    const { bufferSize = 10_000, bufferBytes = 16 * 1024 * 1024, overflow = 'drop-newest', delivery = 'at-most-once' } =
      this.#options;
    const stream = new CallerStream(name, { bufferSize, bufferBytes, overflow, delivery }, {
      node: this.#node,
      asks: this.#asks,
      deadLetters: this.deadLetters,
      connected: () => this.state === 'connected',
      forbidden: (singleton, sender) => this.#forbidden(singleton, sender),
    });
    this.#streams.set(name, stream);
    if (this.#closing !== undefined) stream.proxy.end();
    else this.#use(name);
    return stream;
  }

  #forbidden(name: string, sender: Sender): string | undefined {
    if (this.#welcome === undefined) return undefined;
    const { singletons, tell, ask } = this.#welcome;
    if (singletons !== undefined && !singletons.includes(name)) return `the token is not for singleton ${name}`;
    if (sender === undefined ? tell : ask) return undefined;
    return `the token does not allow ${sender === undefined ? 'tell' : 'ask'}`;
  }

  #use(name: string): void {
    const allowed = this.#welcome?.singletons?.includes(name) ?? true;
    if (allowed) this.#connection.send({ kind: 'use', name });
  }

  #connected(url: string, welcome: Welcome): void {
    const before = this.#welcome ?? welcome;
    const less = (before.tell && !welcome.tell) || (before.ask && !welcome.ask);
    this.#welcome = welcome;
    this.#url = url;
    this.#node.begin(welcome.rate);
    for (const { name, proxy } of this.#streams.values()) {
      // Told before it was known, or under a grant that has been changed.
      const never = welcome.singletons !== undefined && !welcome.singletons.includes(name);
      if (never) proxy.stream.terminate('forbidden', `the token is not for singleton ${name}`);
      else if (less) proxy.stream.terminate('forbidden', 'the token allows less than it did');
      if (!never) this.#use(name);
    }
    this.#stall.begin();
    this.#tell({ kind: 'connected', url });
  }

  #disconnected(why: string): void {
    this.#url = undefined;
    this.#stall.end();
    this.#node.begin(this.#welcome?.rate ?? limits.callerRate);
    for (const { proxy } of this.#streams.values()) proxy.onView();
    if (this.#closing === undefined) this.#environment.log.info('the connection to the cluster is lost', { why });
    this.#tell({ kind: 'disconnected', why });
  }

  #refused(url: string, { code, detail }: DialFailure): void {
    this.#environment.log.debug('connecting to the cluster failed', { url, code, detail });
    this.#tell({ kind: 'refused', url, code, detail });
  }

  #message(message: Exclude<ToCaller, { kind: 'welcome' | 'pong' }>, codec: LeanCodec): void {
    switch (message.kind) {
      case 'host':
        return this.#host(message.name, message.uid);
      case 'answer': {
        const [, name] = message.envelope;
        if (typeof name !== 'string') throw new WireError('an answer without a name');
        return this.#streams.get(name)?.answered(message.host, message.envelope);
      }
      case 'reply':
        return this.#reply(message.receiver, message.body, codec);
      default:
        return message satisfies never;
    }
  }

  #host(name: string, uid: string | undefined): void {
    const stream = this.#streams.get(name);
    if (stream === undefined || !this.#node.host(name, uid)) return;
    for (const { proxy } of this.#streams.values()) proxy.onView();
    this.#tell({ kind: 'host', singleton: name, known: uid !== undefined });
  }

  #reply(id: string, body: Uint8Array, codec: LeanCodec): void {
    const receiver = this.#asks.find(id) ?? this.#receivers.get(id);
    let message: unknown;
    try {
      message = codec.decode(body);
    } catch (error) {
      if (!(error instanceof DecodeError) && !(error instanceof FrameError)) throw error;
      if (receiver instanceof AskRef) receiver.fail(error);
      this.#environment.log.warn('an answer does not decode', { why: error.message });
      return;
    }
    if (receiver !== undefined) return receiver.tell(message);
    this.deadLetters.publish({ message, sender: undefined, recipient: id, reason: 'no-such-actor' });
  }

  #refFrom(scheme: string, name: string): ActorRef<any> {
    if (scheme === schemes.singleton) return this.#stream(name).ref;
    const own = scheme === schemes.receiver ? this.#receivers.get(name) : undefined;
    return own ?? new NowhereRef((message, sender) => {
      this.deadLetters.publish({ message, sender, recipient: '/nowhere', reason: 'no-such-actor' });
    });
  }

  #retry(): void {
    for (const { proxy } of this.#streams.values()) proxy.stream.pump();
  }

  #tell(event: CallerEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        this.#environment.log.error('a subscriber failed', { event: event.kind, error });
      }
    }
  }
}

/** Undefined for a sender that no answer could reach. */
function receiverOf(sender: Sender): string | undefined {
  const ref = sender?.underlying();
  if (ref instanceof AskRef) return ref.path.slice('/temp/'.length);
  return ref instanceof Receiver ? ref.id : undefined;
}
