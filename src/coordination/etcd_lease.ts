import type { Environment } from '../actor/environment.ts';
import { checkOptions, mayHoldSecret, OptionsError, type Rules, rules } from '../actor/options.ts';
import { realEnvironment } from '../actor/real_environment.ts';
import { limits } from '../limits.ts';
import { count, decode, encode, EtcdGateway } from './etcd_gateway.ts';
import { at, type HttpMeans } from './http_means.ts';
import {
  type LeaseContext,
  type LeaseFactory,
  leaseRules,
  type LeaseSettings,
  resolveLease,
  settingsFor,
} from './lease.ts';
import type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from './lease_store.ts';
import { StoreLease } from './store_lease.ts';

/** Options of `EtcdLease`. Only `endpoints` is required. */
export interface EtcdSettings extends LeaseSettings {
  /** `http://host:2379` or `https://…`, each a member of one etcd cluster. Asked in turn until one answers. */
  readonly endpoints?: readonly string[];
  /** With `password`, where etcd's authentication is on. */
  readonly username?: string;
  readonly password?: string;
  /** PEM text of the authority that signed the endpoints' certificates. Default: the runtime's own. */
  readonly ca?: string;
  /** Keys are `<prefix><name>/holder` and `<prefix><name>/last`. Default `singlet/leases/`. */
  readonly prefix?: string;
  /** Replaces the runtime's `fetch`. */
  readonly means?: HttpMeans;
}

const family = 'EtcdLease';
const renewalFloorMs = 100;
const releaseTries = 3;

const endpointRule = {
  rule: 'is a URL such as http://127.0.0.1:2379, without a path and without a name or password',
  accepts: (value: unknown) => {
    if (typeof value !== 'string' || !URL.canParse(value)) return false;
    const { protocol, pathname, search, hash, username, password } = new URL(value);
    return /^https?:$/.test(protocol) && pathname === '/' &&
      [search, hash, username, password].every((part) => part === '');
  },
};

const optionRules: Rules<EtcdSettings> = {
  ...leaseRules,
  endpoints: rules.listOf(endpointRule, limits.etcdEndpoints, mayHoldSecret),
  username: rules.text(255),
  password: rules.text(1_024),
  ca: rules.text(limits.leaseAnswerChars),
  prefix: rules.text(255),
  means: rules.object,
};

interface Holder {
  readonly owner: string;
  /** The token. */
  readonly revision: number;
  readonly lease: string;
}

/** How it works is said at `EtcdLease`. */
export class EtcdLeaseStore implements LeaseStore {
  readonly #gateway: EtcdGateway;
  readonly #prefix: string;
  /** etcd's id of the present tenure's term. */
  #lease: string | undefined;

  constructor(gateway: EtcdGateway, prefix: string) {
    this.#gateway = gateway;
    this.#prefix = prefix;
  }

  async acquire({ name, owner, ttlMs, signal }: StoreRequest): Promise<StoreAnswer> {
    const found = await this.#find(name, signal);
    if (found && found.owner !== owner) return this.#held(found, signal);
    const seconds = Math.ceil(ttlMs / 1_000);
    const granted = await this.#gateway.call('/v3/lease/grant', { TTL: String(seconds) }, signal);
    const lease = String(at(granted, 'ID') ?? '');
    if (lease === '' || count(at(granted, 'TTL')) * 1_000 < ttlMs) {
      return { kind: 'error', why: 'etcd granted a shorter term than it was asked for' };
    }
    const answer = await this.#gateway.call('/v3/kv/txn', {
      compare: [this.#unchanged(name, found)],
      success: [
        { request_range: { key: this.#key(name, 'last') } },
        { request_put: { key: this.#key(name, 'holder'), value: encode(owner), lease } },
        { request_put: { key: this.#key(name, 'last'), value: encode(owner) } },
      ],
      failure: [{ request_range: { key: this.#key(name, 'holder') } }],
    }, signal);
    if (at(answer, 'succeeded') !== true) {
      this.#revoke(lease);
      const winner = holderOf(at(answer, 'responses', 0, 'response_range'));
      // An earlier request of this owner that came late is no rival.
      if (winner && winner.owner !== owner) return this.#held(winner, signal);
      return { kind: 'error', why: 'the key changed meanwhile', retryInMs: 50 };
    }
    this.#lease = lease;
    const previous = count(at(answer, 'responses', 0, 'response_range', 'kvs', 0, 'mod_revision'));
    return { kind: 'granted', token: count(at(answer, 'header', 'revision')), previous };
  }

  async renew({ name, owner, token, signal }: StoreRequest & { readonly token: number }): Promise<StoreAnswer> {
    const kept = await this.#gateway.call('/v3/lease/keepalive', { ID: this.#lease }, signal);
    // No term left: it ended, and the key with it.
    const alive = count(at(kept, 'result', 'TTL')) > 0;
    const found = await this.#find(name, signal);
    if (alive && found?.owner === owner && found.revision === token) return { kind: 'granted', token };
    return { kind: 'held', ...(found && found.owner !== owner ? { by: found.owner } : {}) };
  }

  async release({ name, owner, signal }: StoreRequest): Promise<ReleaseAnswer> {
    const lease = this.#lease;
    for (let tries = 0; tries < releaseTries; tries += 1) {
      const found = await this.#find(name, signal);
      if (found?.owner !== owner) break;
      const answer = await this.#gateway.call('/v3/kv/txn', {
        compare: [this.#unchanged(name, found)],
        success: [{ request_delete_range: { key: this.#key(name, 'holder') } }],
      }, signal);
      if (at(answer, 'succeeded') === true) break;
      if (tries === releaseTries - 1) return { kind: 'error', why: 'the key kept changing' };
    }
    this.#lease = undefined;
    if (lease !== undefined) this.#revoke(lease);
    return { kind: 'released' };
  }

  async #held(holder: Holder, signal: AbortSignal): Promise<StoreAnswer> {
    const left = await this.#gateway.call('/v3/lease/timetolive', { ID: holder.lease }, signal)
      // Its JSON leaves out a zero: less than a second is left then, or nothing.
      .then((answer) => Number(at(answer, 'TTL') ?? 0), () => undefined);
    // Whole seconds, and etcd looks for ended terms twice a second.
    const expiresInMs = left === undefined || Number.isNaN(left) ? undefined : Math.max(100, left * 1_000);
    return { kind: 'held', by: holder.owner, ...(expiresInMs === undefined ? {} : { expiresInMs }) };
  }

  /** A term of no use ends by itself too: nobody waits for this, and it goes on when the request that began it is over. */
  #revoke(lease: string): void {
    this.#gateway.call('/v3/lease/revoke', { ID: lease }, new AbortController().signal).catch(() => undefined);
  }

  async #find(name: string, signal: AbortSignal): Promise<Holder | undefined> {
    return holderOf(await this.#gateway.call('/v3/kv/range', { key: this.#key(name, 'holder') }, signal));
  }

  #key(name: string, part: 'holder' | 'last'): string {
    return encode(`${this.#prefix}${name}/${part}`);
  }

  /** True in a transaction while the key is as it was found. */
  #unchanged(name: string, found: Holder | undefined): object {
    return {
      key: this.#key(name, 'holder'),
      target: 'MOD',
      result: 'EQUAL',
      mod_revision: String(found?.revision ?? 0),
    };
  }
}

function holderOf(range: unknown): Holder | undefined {
  const kv = at(range, 'kvs', 0);
  if (kv === undefined) return undefined;
  return {
    owner: decode(at(kv, 'value')),
    revision: count(at(kv, 'mod_revision')),
    lease: String(at(kv, 'lease') ?? '0'),
  };
}

/**
 * A lease in etcd 3.4 or later, over its JSON gateway with nothing but `fetch`. The key of the holder is bound to a lease of
 * etcd, so that it goes when it is not kept alive; etcd counts terms on its leader's monotonic clock and lengthens them when
 * the leader changes. The token is the revision of the transaction that wrote the key: it grows over releases and deletions
 * for as long as etcd keeps its data. All changes are conditional on the key's revision. etcd knows whole seconds: terms are
 * rounded up there, and shorter ones than its own minimum (1.5 election time-outs) last that long; the holder keeps to its own.
 */
export class EtcdLease extends StoreLease {
  /** @throws OptionsError naming the field; never showing the password */
  constructor(settings: EtcdSettings, environment: Environment = realEnvironment()) {
    const { endpoints = [], username, password, ca, prefix = 'singlet/leases/', means, ...lease } = checked(settings);
    const config = resolveLease(family, lease, renewalFloorMs);
    const gateway = new EtcdGateway(
      {
        endpoints: endpoints.map((endpoint) => new URL(endpoint).origin),
        username,
        password,
        ca,
        endpointTimeoutMs: config.requestTimeoutMs / Math.min(3, endpoints.length),
      },
      environment,
      means,
    );
    super(new EtcdLeaseStore(gateway, prefix), config, environment);
  }

  /** For `StartSingletonOptions.lease`: name and owner are the singleton's. */
  static factory(settings: Omit<EtcdSettings, 'owner'>): LeaseFactory {
    checked(settings);
    return (context: LeaseContext) =>
      new EtcdLease(
        settingsFor(context, settings),
        context.environment,
      );
  }
}

function checked(settings: EtcdSettings): EtcdSettings {
  const { password } = settings;
  if (password !== undefined && !optionRules.password.accepts(password)) {
    throw new OptionsError(family, 'password', '(hidden)', optionRules.password.rule);
  }
  checkOptions(family, settings, optionRules);
  if (settings.endpoints === undefined || settings.endpoints.length === 0) {
    throw new OptionsError(family, 'endpoints', settings.endpoints, 'must name at least one endpoint');
  }
  if ((settings.username === undefined) !== (password === undefined)) {
    throw new OptionsError(family, 'username', settings.username, 'must be given together with password');
  }
  return settings;
}
