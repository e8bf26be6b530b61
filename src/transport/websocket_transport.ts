/**
 * The transport of production: one port per node serves HTTP and the WebSocket upgrade of its peers. Links exist only
 * after the handshake of `handshake.ts`; until then a socket is a stranger that may send two small frames.
 */
import type { Cancel } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { formatAddress, type HostAndPort, parseAddress } from './address.ts';
import type {
  Address,
  DialFailure,
  Link,
  LinkClose,
  ProbeOutcome,
  SeedAnswer,
  Transport,
  TransportEvents,
} from './contract.ts';
import { nodeHandshake, rejectCloseCodes } from './handshake.ts';
import type { Side } from './hello.ts';
import { RefusalLog } from './refusal_log.ts';
import type { Listener, Socket } from './runtime.ts';
import { importSecret, type SecretKeys } from './secret_keys.ts';
import { nonceBytes, protocolVersion, sealBytes } from './protocol.ts';
import { brokenSealCode } from './sealed_socket.ts';
import { querySeed, seedPath, seedUrl } from './seed_query.ts';
import { Session, type SessionOwner } from './session.ts';
import {
  type CheckedOptions,
  checkOptions,
  clientTls,
  dialledHost,
  type FetchHandler,
  isLoopbackOrigin,
  type WebSocketTransportOptions,
} from './websocket_options.ts';

export const socketPath = '/cluster/ws';
export const subprotocol = `singlet.v${protocolVersion}`;

/** Numbers for the metrics; all but the first only grow. */
export interface TransportCounters {
  /** Inbound sockets open now, authenticated or not. */
  inbound: number;
  inboundRefused: number;
  handshakesFailed: number;
  /** Links that ended because a frame was not the one that was sent. */
  forgedFrames: number;
}

type DialDone = (outcome: Link | DialFailure) => void;

export class WebSocketTransport implements Transport {
  readonly counters: TransportCounters = { inbound: 0, inboundRefused: 0, handshakesFailed: 0, forgedFrames: 0 };
  readonly #options: CheckedOptions;
  readonly #sessions = new Map<Session, () => void>();
  readonly #pending = new Set<() => void>();
  readonly #refusals: RefusalLog;
  #fetch: FetchHandler;
  #address: Address;
  #keys: SecretKeys | undefined;
  #events: TransportEvents | undefined;
  #listener: Listener | undefined;
  #stopping: Promise<void> | undefined;

  /** Throws a `TransportOptionsError` naming field, value and rule. */
  constructor(options: WebSocketTransportOptions) {
    this.#options = checkOptions(options);
    this.#refusals = new RefusalLog(options.environment);
    this.#address = formatAddress(options.host, options.listen === false ? 0 : options.advertisedPort ?? options.port);
    this.#fetch = options.fetch ?? ((request) => this.#onlySeed(request));
  }

  /** Replaces the handler of all requests but the upgrade. */
  setFetch(handler: FetchHandler): void {
    this.#fetch = handler;
  }

  /** Rejects with a `ListenError` that names host, port and cause. */
  async start(events: TransportEvents): Promise<Address> {
    const options = this.#options;
    if (this.#events !== undefined) throw new Error('this transport has been started before');
    this.#events = events;
    if (options.secret === undefined) {
      options.environment.log.warn('no cluster secret: everything that can reach this address may join', {
        host: options.host,
        insecure: options.insecure === true,
      });
    }
    this.#keys = await importSecret(options.secret);
    if (options.listen === false) return this.#address;
    this.#listener = await options.runtime.listen({
      hostname: options.bindHost,
      port: options.port,
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      socketPath,
      subprotocol,
      maxFrameBytes: limits.frameBytes + sealBytes,
      ...(options.endpoints === undefined ? {} : { endpoints: options.endpoints }),
      fetch: (request) => this.#fetch(request),
      admit: () => this.#admit(),
      admitOrigin: (origin) => options.secret !== undefined || options.insecure === true || isLoopbackOrigin(origin),
      onSocket: (socket, remote) => this.#onInbound(socket, remote),
      onLost: (why) => this.#inTurn(() => this.#stopping === undefined ? events.listenerLost(why) : undefined),
    });
    if (this.#stopping !== undefined) await this.#listener.close();
    this.#address = formatAddress(options.host, options.advertisedPort ?? this.#listener.port);
    return this.#address;
  }

  dial(address: Address, done: DialDone): Cancel {
    const target = parseAddress(address);
    const keys = this.#keys;
    const failure = this.#undialable(address, target);
    if (target === undefined || keys === undefined || failure !== undefined) {
      return this.#later(() => done(failure ?? notStarted));
    }
    const { runtime, tls } = this.#options;
    const host = formatAddress(dialledHost(target.host, tls !== undefined), target.port);
    const pending = this.#pendingCall(() => done(stopped));
    let session: Session | undefined;
    const cancelDial = runtime.dial({
      url: `${tls === undefined ? 'ws' : 'wss'}://${host}${socketPath}`,
      subprotocol,
      timeoutMs: limits.dialMs,
      maxFrameBytes: limits.frameBytes + sealBytes,
      ...(tls?.ca === undefined ? {} : { tls: clientTls(tls) }),
    }, (outcome) => {
      if ('reason' in outcome) {
        const failure = { ...outcome, code: outcome.reason };
        if (pending.finish()) this.#inTurn(() => done(failure));
      } else if (pending.over()) {
        outcome.close(1000, 'cancelled');
      } else {
        session = this.#open(outcome, 'initiator', address, keys, (result) => {
          if (pending.finish()) done(result);
        });
      }
    });
    pending.onAbort(() => {
      cancelDial();
      session?.close(1000, 'cancelled');
    });
    return pending.cancel;
  }

  probe(address: Address, done: (outcome: ProbeOutcome) => void): Cancel {
    const target = parseAddress(address);
    if (target === undefined) return this.#later(() => done('other'));
    const host = dialledHost(target.host, this.#options.tls !== undefined);
    return this.#options.runtime.probe(host, target.port, limits.dialMs, done);
  }

  seed(address: string, done: (answer: SeedAnswer | DialFailure) => void): Cancel {
    const { runtime, environment, tls } = this.#options;
    const url = seedUrl(address, tls !== undefined);
    if (url === undefined) {
      const detail = `seed ${JSON.stringify(address)}: must be host:port or an http(s) URL`;
      return this.#later(() => done({ reason: 'other', code: 'bad-address', detail }));
    }
    url.hostname = dialledHost(url.hostname, url.protocol === 'https:');
    let cancel: Cancel = () => {};
    const query = {
      url: url.href,
      timeoutMs: limits.dialMs,
      maxBytes: limits.seedAnswerBytes,
      tls: tls && clientTls(tls),
    };
    cancel = querySeed(runtime, environment.timers, query, (answer) => {
      if (!('reason' in answer) || answer.code !== 'unreachable') return done(answer);
      // `fetch` says only that it failed; a TCP connect tells a refused connection from the rest.
      cancel = runtime.probe(url.hostname.replace(/^\[|\]$/g, ''), portOf(url), limits.dialMs, (outcome) => {
        done(outcome === 'refused' || outcome === 'timeout' ? { ...answer, reason: outcome, code: outcome } : answer);
      });
    });
    return () => cancel();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    for (const abort of [...this.#pending]) abort();
    const ended = [...this.#sessions.keys()].map((session) =>
      new Promise<void>((resolve) => {
        this.#sessions.set(session, resolve);
        session.close(1000, 'node stopped');
      })
    );
    // Each socket ends within the adapter's own bound. The bind goes last: it is what others take for a sign of life.
    await Promise.all(ended);
    await this.#listener?.close();
  }

  #admit(): boolean {
    if (this.#stopping !== undefined) return false;
    if (this.counters.inbound < limits.inboundConnections) return true;
    this.counters.inboundRefused++;
    return false;
  }

  #onInbound(socket: Socket, remote: string): void {
    const keys = this.#keys;
    // Upgrades that were admitted together may overshoot; the newest goes.
    if (keys === undefined || !this.#admit()) {
      socket.onMessage = () => {};
      socket.onClose = () => {};
      socket.close(
        rejectCloseCodes['too-many-connections'],
        'too-many-connections: the node takes no more connections',
      );
      return;
    }
    this.counters.inbound++;
    this.#open(socket, 'responder', undefined, keys, (outcome) => {
      // A dial that its own side called off, since another link had opened meanwhile, is nothing to warn of.
      if (!('peer' in outcome)) {
        if (outcome.detail.includes('1000 cancelled')) return;
        return this.#refusals.refused({ ...outcome, from: remote }, this.counters.handshakesFailed);
      }
      this.#events?.accepted(outcome);
    });
  }

  #open(socket: Socket, side: Side, dialled: Address | undefined, keys: SecretKeys, done: DialDone): Session {
    const { runtime, environment, secret, clusterName, uid, roles, acceptAnyAddress, frameIntegrity } = this.#options;
    const own = {
      side,
      secured: secret !== undefined,
      integrity: frameIntegrity === true,
      clusterName,
      address: this.#address,
      uid,
      runtime: runtime.name,
      roles,
      nonce: runtime.randomBytes(nonceBytes),
    };
    const owner: SessionOwner = {
      established: (_session, link) => done(link),
      failed: (_session, failure) => {
        this.counters.handshakesFailed++;
        done(failure);
      },
      frame: (link, bytes) => this.#events?.frame(link, bytes),
      closed: (link: Link, close: LinkClose) => {
        if (close.code === brokenSealCode) this.counters.forgedFrames++;
        this.#events?.closed(link, close);
      },
      ended: (session) => {
        if (side === 'responder') this.counters.inbound--;
        const stopped = this.#sessions.get(session);
        this.#sessions.delete(session);
        stopped?.();
      },
    };
    const setup = { own, dialled: acceptAnyAddress === true ? undefined : dialled };
    const session = new Session(socket, nodeHandshake(setup), keys, environment, owner);
    this.#sessions.set(session, () => {});
    return session;
  }

  #undialable(address: Address, target: HostAndPort | undefined): DialFailure | undefined {
    if (target === undefined || target.port === 0) {
      return { reason: 'other', code: 'bad-address', detail: `${address}: must be host:port with a port above 0` };
    }
    return this.#stopping === undefined ? undefined : stopped;
  }

  #onlySeed(request: Request): Response {
    if (request.method !== 'GET' || new URL(request.url).pathname !== seedPath) {
      return new Response('not found\n', { status: 404 });
    }
    return Response.json(this.#options.seedAnswer());
  }

  #inTurn(run: () => void): void {
    this.#options.environment.turns.schedule(run);
  }

  #later(run: () => void): Cancel {
    let cancelled = false;
    this.#inTurn(() => cancelled ? undefined : run());
    return () => {
      cancelled = true;
    };
  }

  /** Bookkeeping of a call that ends once: by its answer, by its caller, or because the transport stops. */
  #pendingCall(onStop: () => void) {
    let over = false;
    let abortWork: () => void = () => {};
    const finish = () => {
      if (over) return false;
      over = true;
      this.#pending.delete(abort);
      return true;
    };
    const cancel = () => {
      if (finish()) abortWork();
    };
    const abort = () => {
      if (over) return;
      cancel();
      this.#inTurn(onStop);
    };
    this.#pending.add(abort);
    return { finish, cancel, over: () => over, onAbort: (run: () => void) => void (abortWork = run) };
  }
}

const stopped: DialFailure = { reason: 'other', code: 'stopped', detail: 'this node has stopped' };
const notStarted: DialFailure = { reason: 'other', code: 'not-started', detail: 'this node has not started yet' };

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}
