/**
 * Where callers from outside connect: a path of its own on the node's port, so that a proxy can publish it without the
 * path of the nodes. Until a caller has proved a token it may send two small frames; what it can cost a node until then is
 * one of a bounded number of places, for a bounded time, and the newest always gets one.
 */
import type { Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { callerResponder } from './caller_responder.ts';
import type { CallerGateEvents, Link } from './contract.ts';
import { rejectCloseCodes } from './handshake.ts';
import { callerPath, callerSubprotocol, nonceBytes } from './protocol.ts';
import { RefusalLog } from './refusal_log.ts';
import type { Runtime, Socket, UpgradeEndpoint } from './runtime.ts';
import { brokenSealCode } from './sealed_socket.ts';
import { Session } from './session.ts';
import type { TokenKeys } from './token_keys.ts';

export interface CallerGateOptions {
  readonly runtime: Pick<Runtime, 'randomBytes'>;
  readonly environment: Environment;
  readonly clusterName: string;
  readonly keys: TokenKeys;
  /** Asks callers for frame integrity. Default false. */
  readonly frameIntegrity?: boolean;
}

/** For the metrics. */
export interface CallerGateCounters {
  /** Open now: with a proven token, and without one yet. */
  connected: number;
  pending: number;
  /** 503, or closed after the upgrade, because of a limit. */
  refused: number;
  /** Ended before a token was proved to make room for a newer one. */
  evicted: number;
  /** Handshakes without success. */
  failed: number;
  /** Connections ended by a frame whose seal did not fit. */
  forged: number;
}

export class CallerGate {
  readonly counters: CallerGateCounters = { connected: 0, pending: 0, refused: 0, evicted: 0, failed: 0, forged: 0 };
  readonly endpoint: UpgradeEndpoint;
  readonly #options: CallerGateOptions;
  readonly #refusals: RefusalLog;
  /** Oldest first. */
  readonly #pending = new Set<Session>();
  readonly #sessions = new Map<Link, Session>();
  #events: CallerGateEvents | undefined;

  constructor(options: CallerGateOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options.environment);
    this.endpoint = {
      socketPath: callerPath,
      subprotocol: callerSubprotocol,
      admit: () => this.#admit(),
      onSocket: (socket, remote) => this.#onSocket(socket, remote),
    };
  }

  attach(events: CallerGateEvents): void {
    this.#events = events;
  }

  /** Ends every connection and takes no more. */
  close(code: number, reason: string): void {
    this.#events = undefined;
    for (const session of [...this.#pending, ...this.#sessions.values()]) session.close(code, reason);
  }

  #admit(): boolean {
    if (this.#events !== undefined && this.counters.connected < limits.callers) return true;
    this.counters.refused += 1;
    return false;
  }

  #onSocket(socket: Socket, remote: string): void {
    const unready = this.#events === undefined ? 'this node takes no callers now' : this.#events.unready();
    if (unready !== undefined) return refuse(socket, 'not-ready', unready);
    if (this.#pending.size >= limits.callerHandshakes) this.#evict();
    const { runtime, environment, clusterName, keys, frameIntegrity } = this.#options;
    const handshake = callerResponder(clusterName, runtime.randomBytes(nonceBytes), frameIntegrity);
    const proof = keys.proof();
    const session: Session = new Session(socket, handshake, proof, environment, {
      established: (_session, link) => this.#established(session, link, proof.owner, remote),
      failed: (_session, failure) => {
        this.counters.failed += 1;
        this.#refusals.refused({ ...failure, from: remote }, this.counters.failed);
      },
      frame: (link, bytes) => this.#events?.frame(link, bytes),
      closed: (link, close) => {
        if (close.code === brokenSealCode) this.counters.forged += 1;
        if (!this.#sessions.delete(link)) return;
        this.counters.connected = this.#sessions.size;
        this.#events?.closed(link, close);
      },
      ended: () => this.#settled(session),
    });
    this.#pending.add(session);
    this.counters.pending = this.#pending.size;
  }

  #established(session: Session, link: Link, owner: number | undefined, remote: string): void {
    this.#settled(session);
    if (this.#events === undefined) return session.close(rejectCloseCodes['not-ready'], 'not-ready: stopping');
    const room = this.#sessions.size < limits.callers;
    if (owner !== undefined && room) {
      this.#sessions.set(link, session);
      if (this.#events.accepted(link, owner)) {
        this.counters.connected = this.#sessions.size;
        return;
      }
      this.#sessions.delete(link);
    }
    this.counters.refused += 1;
    const detail = room ? 'too many callers use this token, or send too much' : 'this node takes no more callers';
    const code = 'too-many-connections';
    this.#refusals.refused({ reason: 'rejected', code, detail, from: remote }, this.counters.refused);
    session.close(rejectCloseCodes[code], `${code}: ${detail}`);
  }

  #settled(session: Session): void {
    this.#pending.delete(session);
    this.counters.pending = this.#pending.size;
  }

  /** A caller in earnest proves itself within a few round trips; who has waited longest is least likely one. */
  #evict(): void {
    const [oldest] = this.#pending;
    if (oldest === undefined) return;
    this.#settled(oldest);
    this.counters.evicted += 1;
    oldest.close(rejectCloseCodes['too-many-connections'], 'too-many-connections: no token was proved in time');
  }
}

function refuse(socket: Socket, code: 'not-ready', why: string): void {
  socket.onMessage = () => {};
  socket.onClose = () => {};
  socket.close(rejectCloseCodes[code], `${code}: ${why}`);
}
