/** The `Transport` of a simulated process. Identities are taken as given; names and secrets are compared as text. */
import type { Cancel } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type {
  Address,
  CallerGateEvents,
  DialFailure,
  DialReason,
  Link,
  LinkClose,
  PeerIdentity,
  ProbeOutcome,
  SeedAnswer,
  Transport,
  TransportEvents,
} from '../transport/contract.ts';
import { splitAddress } from '../cluster/member.ts';
import { ListenError } from '../transport/errors.ts';
import { protocolVersion } from '../transport/protocol.ts';
import { SimEnd } from './sim_connection.ts';
import type { SimProcess } from './sim_process.ts';

/** Options of a `SimTransport`. */
export interface SimTransportOptions {
  readonly uid: string;
  readonly clusterName: string;
  readonly roles?: readonly string[];
  /** What the node says it runs on. Default 'memory'. */
  readonly runtime?: string;
  /** Nodes with different secrets reject each other. Default ''. */
  readonly secret?: string;
  /** Nodes that speak different ones reject each other. Default: that of this version. */
  readonly protocol?: number;
  /** What this node answers to `GET /cluster/seed`; undefined while it cannot. */
  readonly seedAnswer?: () => SeedAnswer | undefined;
}

/** The transport of a node in a simulated world. */
export class SimTransport implements Transport {
  readonly process: SimProcess;
  readonly identity: PeerIdentity;
  readonly secret: string;
  readonly protocol: number;
  #seedAnswer: () => SeedAnswer | undefined;
  #events: TransportEvents | undefined;
  #callers: CallerGateEvents | undefined;
  #ends = new Set<SimEnd>();
  #dials = new Map<SimEnd, (outcome: Link | DialFailure) => void>();

  constructor(process: SimProcess, options: SimTransportOptions) {
    this.process = process;
    this.secret = options.secret ?? '';
    this.protocol = options.protocol ?? protocolVersion;
    this.identity = {
      address: process.host.address,
      uid: options.uid,
      clusterName: options.clusterName,
      roles: options.roles ?? [],
      runtime: options.runtime ?? 'memory',
    };
    this.#seedAnswer = options.seedAnswer ?? (() => undefined);
  }

  start(events: TransportEvents): Promise<Address> {
    this.#events = events;
    return this.process.track(
      new Promise((resolve, reject) => {
        this.#soon(() => {
          if (this.process.world.network.listen(this)) resolve(this.identity.address);
          else reject(listenError(this.identity.address));
        });
      }),
    );
  }

  dial(address: Address, done: (outcome: Link | DialFailure) => void): Cancel {
    const network = this.process.world.network;
    const attempt = this.#attempt<Link | DialFailure>(
      done,
      () => failure('timeout', `no answer from ${address}`),
      limits.dialMs,
    );
    if (address === this.identity.address) {
      this.#soon(() => attempt.finish(failure('rejected', 'this is the own address')));
      return attempt.cancel;
    }
    network.knock(this.process, address, (outcome, listener) => {
      if (!attempt.waiting()) return;
      if (outcome === 'refused' || listener === undefined) {
        return attempt.finish(failure('refused', `${address} refused the connection`));
      }
      attempt.extend(limits.handshakeMs);
      const end = this.#newEnd(listener, attempt);
      network.carry(this.process, listener.process, () => listener.#handshake(end, this));
    });
    return attempt.cancel;
  }

  probe(address: Address, done: (outcome: ProbeOutcome) => void): Cancel {
    const attempt = this.#attempt<ProbeOutcome>(done, () => 'timeout', limits.dialMs);
    this.process.world.network.knock(this.process, address, (outcome) => attempt.finish(outcome));
    return attempt.cancel;
  }

  seed(address: string, done: (answer: SeedAnswer | DialFailure) => void): Cancel {
    const target = address.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
    const network = this.process.world.network;
    const attempt = this.#attempt<SeedAnswer | DialFailure>(
      done,
      () => failure('timeout', `no answer from ${target}`),
      limits.dialMs,
    );
    network.knock(this.process, target, (outcome, listener) => {
      if (!attempt.waiting()) return;
      if (outcome === 'refused' || listener === undefined) {
        return attempt.finish(failure('refused', `${target} refused the connection`));
      }
      network.carry(this.process, listener.process, () => {
        const answer = listener.#seedAnswer() ?? failure('other', `${target} is not ready`);
        network.carry(listener.process, this.process, () => attempt.finish(answer));
      });
    });
    return attempt.cancel;
  }

  stop(): Promise<void> {
    for (const end of [...this.#ends]) end.close(1000, 'stopped');
    return this.process.track(
      new Promise((resolve) => {
        this.#soon(() => {
          this.process.world.network.unlisten(this);
          this.#events = undefined;
          resolve();
        });
      }),
    );
  }

  /** Called by the network when the listener dies under the process. */
  listenerDied(): void {
    this.#soon(() => this.#events?.listenerLost('the listening socket failed'));
  }

  serveCallers(events: CallerGateEvents): void {
    this.#callers = events;
  }

  /** Who takes callers here, while this process listens. */
  get callers(): CallerGateEvents | undefined {
    return this.#events && this.#callers;
  }

  /** The ends that `stop` closes. */
  get ends(): Set<SimEnd> {
    return this.#ends;
  }

  // What the ends of this transport's connections call.

  opened(end: SimEnd): void {
    const dial = this.#dials.get(end);
    if (dial === undefined) {
      this.#events?.accepted(end);
      return;
    }
    this.#dials.delete(end);
    if (end.connection.dialledOpensFirst) end.transmit({ kind: 'open' });
    dial(end);
  }

  frame(end: SimEnd, bytes: Uint8Array): void {
    this.#events?.frame(end, bytes);
  }

  closed(end: SimEnd, close: LinkClose): void {
    this.#ends.delete(end);
    this.#events?.closed(end, close);
  }

  failed(end: SimEnd, why: string): void {
    const finish = this.#dials.get(end);
    this.#dials.delete(end);
    this.#ends.delete(end);
    finish?.(failure('reset', why));
  }

  /** The dialling side of a new connection, still in its handshake. */
  #newEnd(listener: SimTransport, attempt: Attempt<Link | DialFailure>): SimEnd {
    const network = this.process.world.network;
    const end = new SimEnd({
      peer: listener.identity,
      dialled: true,
      process: this.process,
      owner: this,
      connection: network.newConnection(),
      out: network.path(this.process.host, listener.process.host),
    });
    end.awaits = listener.process;
    this.#ends.add(end);
    network.remember(end);
    this.#dials.set(end, attempt.finish);
    attempt.onGivenUp = () => {
      this.#dials.delete(end);
      this.#ends.delete(end);
      end.close(4000, 'the dial was given up');
    };
    return end;
  }

  /** Runs on the listening side, when the dialler's proof has come. */
  #handshake(dialler: SimEnd, from: SimTransport): void {
    const network = this.process.world.network;
    const rejection = this.#rejection(from);
    if (rejection !== undefined || this.#events === undefined) {
      network.carry(this.process, from.process, () => from.#rejected(dialler, rejection ?? 'stopping'));
      return;
    }
    const end = new SimEnd({
      peer: from.identity,
      dialled: false,
      process: this.process,
      owner: this,
      connection: dialler.connection,
      out: network.path(this.process.host, from.process.host),
    });
    this.#ends.add(end);
    network.remember(end);
    end.other = dialler;
    dialler.other = end;
    dialler.awaits = undefined;
    if (!end.connection.dialledOpensFirst) {
      end.state = 'open';
      end.transmit({ kind: 'open' });
      this.opened(end);
    } else {
      end.transmit({ kind: 'open' });
    }
  }

  #rejection(from: SimTransport): string | undefined {
    if (from.protocol !== this.protocol) return 'protocol';
    if (from.identity.clusterName !== this.identity.clusterName) return 'cluster name';
    return from.secret === this.secret ? undefined : 'secret';
  }

  #rejected(end: SimEnd, why: string): void {
    const finish = this.#dials.get(end);
    this.#dials.delete(end);
    this.#ends.delete(end);
    end.finish({ code: 4001, reason: why, clean: true });
    finish?.(failure('rejected', why));
  }

  #soon(run: () => void): void {
    this.process.world.schedule(this.process.world.now + 0.02, this.process, 'io', run);
  }

  #attempt<T>(done: (outcome: T) => void, timedOut: () => T, timeoutMs: number): Attempt<T> {
    return new Attempt(this.process, done, timedOut, timeoutMs);
  }
}

/** One question with one answer: finished once, cancelled, or timed out. */
class Attempt<T> {
  onGivenUp: (() => void) | undefined;
  #process: SimProcess;
  #done: ((outcome: T) => void) | undefined;
  #timedOut: () => T;
  #cancelTimer: Cancel;

  constructor(process: SimProcess, done: (outcome: T) => void, timedOut: () => T, timeoutMs: number) {
    this.#process = process;
    this.#done = done;
    this.#timedOut = timedOut;
    this.#cancelTimer = this.#arm(timeoutMs);
  }

  waiting(): boolean {
    return this.#done !== undefined;
  }

  extend(timeoutMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#arm(timeoutMs);
  }

  readonly finish = (outcome: T): void => {
    const done = this.#done;
    this.#done = undefined;
    this.#cancelTimer();
    done?.(outcome);
  };

  readonly cancel = (): void => {
    if (this.#done === undefined) return;
    this.#done = undefined;
    this.#cancelTimer();
    this.onGivenUp?.();
  };

  #arm(timeoutMs: number): Cancel {
    return this.#process.timers.set(timeoutMs, () => {
      const done = this.#done;
      if (done === undefined) return;
      this.#done = undefined;
      this.onGivenUp?.();
      done(this.#timedOut());
    });
  }
}

function failure(reason: DialReason, detail: string): DialFailure {
  return { reason, code: reason, detail };
}

function listenError(address: Address): ListenError {
  const [host, port] = splitAddress(address);
  return new ListenError(host, port, 'port-in-use');
}
