/** The options of a cluster node: a plain object, or the same through a builder. */
import type { Address, SeedAnswer, Transport } from '../transport/contract.ts';
import type { Runtime, TlsOptions } from '../transport/runtime.ts';
import type { Secret } from '../transport/secret_keys.ts';
import type { CallerGrant } from './caller_grants.ts';
import type { DowningOption } from './downing/mod.ts';

/**
 * How a node may found a cluster when it finds none. `cold-start` (default): by pledges from a majority of the seed list.
 * `immediate`: at once, whatever the seeds say. `never`: it only joins. A number: alone after so many milliseconds.
 */
export type SelfElection = 'cold-start' | 'immediate' | 'never' | number;

/**
 * A class with `static readonly kind` (its constructor gets the props of the spawn), or a named factory. A class without
 * one is known by its own name, with a warning, since bundlers rename classes.
 */
export type KindOption =
  | (abstract new (...args: never[]) => unknown)
  | { readonly name: string; readonly factory: (props: any) => unknown };

export interface FailureDetectorSettings {
  /** Default 500 ms. */
  readonly heartbeatMs?: number;
  /** Default 2 000 ms; at least two heartbeats. */
  readonly unreachableAfterMs?: number;
}

/** False: no HTTP but the upgrade and `GET /cluster/seed`. A function gets the Hono app and may add to it, or return its own. */
export type HttpOption = boolean | ((app: unknown) => unknown);

/** What a transport must tell others about its node. */
export interface TransportIdentity {
  readonly uid: string;
  readonly clusterName: string;
  readonly roles: readonly string[];
  /** 'bun', 'deno', 'node', 'edge'; 'memory' where none is known. */
  readonly runtime: string;
  readonly seedAnswer: () => SeedAnswer;
}

export type TransportFactory = (identity: TransportIdentity) => Transport;

/** Options of `Cluster.join` as a plain object; `ClusterOptions` builds the same. All fields are optional. */
export interface ClusterSettings {
  /** Name of the cluster; nodes of another name are refused. Default: the actor system's name. */
  readonly name?: string;
  /** The host other nodes dial; never a wildcard. Default 127.0.0.1. */
  readonly host?: string;
  /** Where to listen; 0 (default) takes a free port. */
  readonly port?: number;
  /** The interface to listen on, possibly a wildcard. Default: `host`. */
  readonly bindHost?: string;
  /** The port other nodes dial, where a forwarder stands in between. Default: the one listened on. */
  readonly advertisedPort?: number;
  /** `host:port` or `http(s)://host:port`, at most 64; this node may be among them. Default none: found a cluster at once. */
  readonly seeds?: readonly (Address | string)[];
  /** At most 32, of at most 64 characters each. */
  readonly roles?: readonly string[];
  /** Actor kinds that can be spawned on this node by name. */
  readonly kinds?: readonly KindOption[];
  /** Shared by all nodes; at least 16 characters (best: 32 random bytes as text). `also` lists others to accept. */
  readonly secret?: Secret;
  /** Allows addresses that other machines can reach without a secret: anyone may then join. Default false. */
  readonly insecure?: boolean;
  /**
   * For networks without TLS: a keyed checksum and a number on every frame of nodes and callers, so that nobody on the path
   * can change, drop, repeat or invent one. A link has it when either side asks, and nobody in between can switch it off.
   * Needs a secret; refused together with `tls`, which does this and hides the content too. Default false.
   */
  readonly frameIntegrity?: boolean;
  /** PEM texts. With it every node of the cluster speaks TLS. */
  readonly tls?: TlsOptions;
  /** Bearer token of the HTTP operations; at least 16 characters. Without one they are refused. */
  readonly token?: string;
  /** A strategy, a provider, or the name of a strategy without parameters. Default `keep-majority`. */
  readonly downing?: DowningOption;
  readonly failureDetector?: FailureDetectorSettings;
  /** How long a split must stay the same before it is decided. Default by cluster size: 3 s up to 5 members. */
  readonly stableAfterMs?: number;
  /** Between repair rounds; changes are pushed at once. Default 1 000 ms. */
  readonly gossipIntervalMs?: number;
  readonly selfElection?: SelfElection;
  /** `Cluster.join` fails after this. Default 60 000 ms. */
  readonly joinTimeoutMs?: number;
  /** `leave()` goes on after this, hand-overs done or not. Default 15 000 ms. */
  readonly leaveTimeoutMs?: number;
  /** Replaces the runtime found by the package. */
  readonly runtime?: Runtime;
  /** Replaces the WebSocket transport: makes one for a node of this identity. */
  readonly transport?: TransportFactory;
  /** Nobody becomes `up` before the cluster has had this many members. Default 1. */
  readonly minMembers?: number;
  /** Shown to people. Default ''. */
  readonly appVersion?: string;
  /** See `TimingOptions` for this and the next four. */
  readonly handOverTimeoutMs?: number;
  readonly stopBoundMs?: number;
  readonly driftBound?: number;
  readonly gateWindowMs?: number;
  readonly removalMarginMs?: number;
  /**
   * Addresses of the members that grant quorum leases, the same on every node; an odd number of them. Default none: then no
   * `QuorumLease` can be used.
   */
  readonly leaseVoters?: readonly string[];
  /** Longest term of a quorum lease, the same on every node. A voter that restarts votes again after it. Default 30 000 ms. */
  readonly leaseMaxTtlMs?: number;
  /**
   * Join again as a new member after being removed without having asked for it: a lost split, a pause that others took for
   * death, an operator's `down`. Default true; false: this node stays out, and `cluster.whenEnded` says why.
   */
  readonly rejoin?: boolean;
  /**
   * Who may read members, singletons, events and metrics over HTTP: `open` (default), everybody who reaches the port;
   * `token`, who has the bearer token.
   */
  readonly reads?: 'open' | 'token';
  /**
   * Who may connect from outside (`Cluster.connect`), and what for. Default none: then this node takes no callers. Only the
   * nodes that callers connect to need it.
   */
  readonly callers?: readonly CallerGrant[];
  /** Default true. */
  readonly http?: HttpOption;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Values<T> = readonly (T | readonly T[])[];

/**
 * `ClusterOptions.create().withHost('10.0.0.1').withPort(4000)`. Values are checked when the node joins. List fields take
 * values, lists or both; a second call replaces the first. Printing a builder shows no secret.
 */
export class ClusterOptions {
  readonly #settings: Mutable<ClusterSettings> = {};

  static create(): ClusterOptions {
    return new ClusterOptions();
  }

  /** A copy of what was set. */
  toSettings(): ClusterSettings {
    return { ...this.#settings };
  }

  withName(name: string): this {
    return this.#with('name', name);
  }

  withHost(host: string): this {
    return this.#with('host', host);
  }

  withPort(port: number): this {
    return this.#with('port', port);
  }

  withBindHost(bindHost: string): this {
    return this.#with('bindHost', bindHost);
  }

  withAdvertisedPort(advertisedPort: number): this {
    return this.#with('advertisedPort', advertisedPort);
  }

  withSeeds(...seeds: Values<string>): this {
    return this.#with('seeds', flat(seeds));
  }

  withRoles(...roles: Values<string>): this {
    return this.#with('roles', flat(roles));
  }

  withKinds(...kinds: Values<KindOption>): this {
    return this.#with('kinds', flat(kinds));
  }

  withSecret(secret: Secret): this {
    return this.#with('secret', secret);
  }

  withInsecure(insecure = true): this {
    return this.#with('insecure', insecure);
  }

  withFrameIntegrity(frameIntegrity = true): this {
    return this.#with('frameIntegrity', frameIntegrity);
  }

  withTls(tls: TlsOptions): this {
    return this.#with('tls', tls);
  }

  withToken(token: string): this {
    return this.#with('token', token);
  }

  withDowning(downing: DowningOption): this {
    return this.#with('downing', downing);
  }

  withFailureDetector(failureDetector: FailureDetectorSettings): this {
    return this.#with('failureDetector', failureDetector);
  }

  withStableAfterMs(stableAfterMs: number): this {
    return this.#with('stableAfterMs', stableAfterMs);
  }

  withGossipIntervalMs(gossipIntervalMs: number): this {
    return this.#with('gossipIntervalMs', gossipIntervalMs);
  }

  withSelfElection(selfElection: SelfElection): this {
    return this.#with('selfElection', selfElection);
  }

  withJoinTimeoutMs(joinTimeoutMs: number): this {
    return this.#with('joinTimeoutMs', joinTimeoutMs);
  }

  withLeaveTimeoutMs(leaveTimeoutMs: number): this {
    return this.#with('leaveTimeoutMs', leaveTimeoutMs);
  }

  withRuntime(runtime: Runtime): this {
    return this.#with('runtime', runtime);
  }

  withTransport(transport: TransportFactory): this {
    return this.#with('transport', transport);
  }

  withMinMembers(minMembers: number): this {
    return this.#with('minMembers', minMembers);
  }

  withAppVersion(appVersion: string): this {
    return this.#with('appVersion', appVersion);
  }

  withHandOverTimeoutMs(handOverTimeoutMs: number): this {
    return this.#with('handOverTimeoutMs', handOverTimeoutMs);
  }

  withStopBoundMs(stopBoundMs: number): this {
    return this.#with('stopBoundMs', stopBoundMs);
  }

  withDriftBound(driftBound: number): this {
    return this.#with('driftBound', driftBound);
  }

  withGateWindowMs(gateWindowMs: number): this {
    return this.#with('gateWindowMs', gateWindowMs);
  }

  withRemovalMarginMs(removalMarginMs: number): this {
    return this.#with('removalMarginMs', removalMarginMs);
  }

  withLeaseVoters(...leaseVoters: Values<string>): this {
    return this.#with('leaseVoters', leaseVoters.flat());
  }

  withLeaseMaxTtlMs(leaseMaxTtlMs: number): this {
    return this.#with('leaseMaxTtlMs', leaseMaxTtlMs);
  }

  withRejoin(rejoin: boolean): this {
    return this.#with('rejoin', rejoin);
  }

  withReads(reads: 'open' | 'token'): this {
    return this.#with('reads', reads);
  }

  withCallers(...callers: Values<CallerGrant>): this {
    return this.#with('callers', flat(callers));
  }

  withHttp(http: HttpOption): this {
    return this.#with('http', http);
  }

  #with<K extends keyof ClusterSettings>(field: K, value: ClusterSettings[K]): this {
    this.#settings[field] = value;
    return this;
  }
}

function flat<T>(values: Values<T>): readonly T[] {
  return values.flatMap((value) => value as T | T[]);
}
