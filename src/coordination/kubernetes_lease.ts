import type { Cancel, Environment } from '../actor/environment.ts';
import { checkOptions, mayHoldSecret, OptionsError, type Rule, type Rules, rules } from '../actor/options.ts';
import { realEnvironment } from '../actor/real_environment.ts';
import { limits } from '../limits.ts';
import type { HttpMeans } from './http_means.ts';
import { type ApiAnswer, KubernetesApi, type KubernetesRecord, tokenAnnotation } from './kubernetes_api.ts';
import { checkAccess } from './kubernetes_credentials.ts';
import {
  type LeaseContext,
  type LeaseFactory,
  leaseRules,
  type LeaseSettings,
  required,
  resolveLease,
  settingsFor,
} from './lease.ts';
import type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from './lease_store.ts';
import { StoreLease } from './store_lease.ts';

/** Options of `KubernetesLease`. In a pod with a service account none is required. */
export interface KubernetesSettings extends LeaseSettings {
  readonly namespace?: string;
  /** `https://…`. With `authToken` and `caCert`; without all three the account that the pod has mounted is used. */
  readonly apiServerUrl?: string;
  readonly authToken?: string;
  /** PEM text. */
  readonly caCert?: string;
  /**
   * A record of another holder is never waited for longer than this, whatever it says: so no owner may have a longer term.
   * The same for all owners. Default 300 000 ms.
   */
  readonly maxTermMs?: number;
  /** Replaces the runtime's `fetch` and files. */
  readonly means?: HttpMeans;
}

const family = 'KubernetesLease';
const renewalFloorMs = 500;
const tries = 3;
const conflictWaitMs = 100;

const nameRule: Rule = {
  rule:
    "must be a name Kubernetes takes: at most 253 lower case letters, digits, '-' and '.', with a letter or digit at both ends",
  accepts: (value) =>
    typeof value === 'string' && value.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(value),
};
const namespaceRule: Rule = {
  rule: "must be at most 63 lower case letters, digits and '-', with a letter or digit at both ends",
  accepts: (value) => typeof value === 'string' && value.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value),
};
const httpsRule: Rule = {
  rule: 'must be an https URL without a name, a password or a query',
  accepts: (value) => {
    if (typeof value !== 'string' || !URL.canParse(value)) return false;
    const { protocol, search, hash, username, password } = new URL(value);
    return protocol === 'https:' && [search, hash, username, password].every((part) => part === '');
  },
};

const optionRules: Rules<KubernetesSettings> = {
  ...leaseRules,
  name: nameRule,
  namespace: namespaceRule,
  apiServerUrl: httpsRule,
  authToken: rules.text(limits.leaseAnswerChars),
  caCert: rules.text(limits.leaseAnswerChars),
  maxTermMs: rules.durationMs(1_000),
  means: rules.object,
};

const notWritten = { kind: 'error', why: 'the API took a write, and gave another record than was written' } as const;

function isOwn(record: KubernetesRecord, owner: string, token: number): boolean {
  return record.holder === owner && record.token === token;
}

/** How it works is said at `KubernetesLease`. */
export class KubernetesLeaseStore implements LeaseStore {
  readonly #api: KubernetesApi;
  readonly #environment: Environment;
  readonly #maxTermMs: number;
  /** Since when the record has been as it is, on this node's monotonic clock. */
  #seen: { readonly resourceVersion: string; readonly at: number } | undefined;
  /** Of the present tenure. */
  #record: KubernetesRecord | undefined;

  constructor(api: KubernetesApi, environment: Environment, maxTermMs: number) {
    this.#api = api;
    this.#environment = environment;
    this.#maxTermMs = maxTermMs;
  }

  async acquire(request: StoreRequest): Promise<StoreAnswer> {
    const { name, owner, signal } = request;
    for (let step = 0; step < tries; step += 1) {
      if (step > 0) await this.#wait();
      const found = await this.#api.get(name, signal);
      if (found.kind === 'error') return found;
      const record = found.kind === 'record' ? found.record : undefined;
      const held = record && record.holder !== owner ? this.#heldBy(record, request.ttlMs) : undefined;
      if (held) return held;
      const next = record && record.token > 0 ? record.token + 1 : Math.floor(this.#environment.clock.wall());
      const token = Math.max(next, (request.above ?? 0) + 1);
      const object = this.#write(request, record, token);
      const written = await (record ? this.#api.replace(name, object, signal) : this.#api.create(object, signal));
      switch (written.kind) {
        case 'record':
          if (!isOwn(written.record, owner, token)) return notWritten;
          this.#record = written.record;
          return { kind: 'granted', token, ...(record && record.token > 0 ? { previous: record.token } : {}) };
        case 'error':
          return written;
        case 'conflict':
        case 'missing':
          break;
        default:
          return written satisfies never;
      }
    }
    return { kind: 'error', why: 'others kept changing the record', retryInMs: conflictWaitMs };
  }

  /** Undefined when the record is free: given up, or not renewed for its own duration while this node looked. */
  #heldBy(record: KubernetesRecord, ttlMs: number): StoreAnswer | undefined {
    const now = this.#environment.clock.now();
    if (this.#seen?.resourceVersion !== record.resourceVersion) {
      this.#seen = { resourceVersion: record.resourceVersion, at: now };
    }
    if (record.holder === '') return undefined;
    // A record that names no duration is given one of this node's.
    const term = record.durationSeconds > 0 ? record.durationSeconds * 1_000 : ttlMs;
    const expiresInMs = this.#seen.at + Math.min(term, this.#maxTermMs) - now;
    return expiresInMs > 0 ? { kind: 'held', by: record.holder, expiresInMs } : undefined;
  }

  async renew(request: StoreRequest & { readonly token: number }): Promise<StoreAnswer> {
    const { name, owner, token, signal } = request;
    for (let step = 0; step < tries; step += 1) {
      if (step > 0) await this.#wait();
      const record = this.#record;
      if (!record) return { kind: 'held' };
      const written = await this.#api.replace(name, this.#write(request, record, token), signal);
      if (written.kind === 'record' && isOwn(written.record, owner, token)) {
        this.#record = written.record;
        return { kind: 'granted', token };
      }
      if (written.kind === 'error') return written;
      // Somebody else's write, or a late one of this owner: the record tells.
      const found = await this.#api.get(name, signal);
      if (found.kind === 'error') return found;
      if (found.kind !== 'record' || !isOwn(found.record, owner, token)) {
        this.#record = undefined;
        const by = found.kind === 'record' ? found.record.holder : '';
        return { kind: 'held', ...(by === '' || by === owner ? {} : { by }) };
      }
      this.#record = found.record;
    }
    return { kind: 'error', why: 'others kept changing the record' };
  }

  async release({ name, owner, signal }: StoreRequest): Promise<ReleaseAnswer> {
    for (let step = 0; step < tries; step += 1) {
      if (step > 0) await this.#wait();
      const found = await this.#api.get(name, signal);
      if (found.kind === 'error') return found;
      if (found.kind !== 'record' || found.record.holder !== owner) return this.#released();
      const { object } = found.record;
      const spec = {
        ...(object['spec'] as object),
        holderIdentity: '',
        leaseDurationSeconds: 1,
        renewTime: this.#time(),
      };
      const written: ApiAnswer = await this.#api.replace(name, { ...object, spec }, signal);
      if (written.kind === 'error') return written;
      if (written.kind === 'record') return this.#released();
    }
    return { kind: 'error', why: 'others kept changing the record' };
  }

  #released(): ReleaseAnswer {
    this.#record = undefined;
    return { kind: 'released' };
  }

  #write({ name, owner, ttlMs }: StoreRequest, record: KubernetesRecord | undefined, token: number): object {
    const object = record?.object ?? { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    const metadata = { ...(object['metadata'] as Record<string, unknown> | undefined), name };
    const renews = record?.holder === owner && record.token === token;
    const time = this.#time();
    return {
      ...object,
      metadata: {
        ...metadata,
        annotations: { ...(metadata as { annotations?: object }).annotations, [tokenAnnotation]: String(token) },
      },
      spec: {
        ...(object['spec'] as object | undefined),
        holderIdentity: owner,
        leaseDurationSeconds: Math.ceil(ttlMs / 1_000),
        leaseTransitions: (record?.transitions ?? 0) + (record === undefined || record.holder === owner ? 0 : 1),
        renewTime: time,
        ...(renews ? {} : { acquireTime: time }),
      },
    };
  }

  /** For people; nobody compares it. Kubernetes wants microseconds. */
  #time(): string {
    return new Date(this.#environment.clock.wall()).toISOString().replace('Z', '000Z');
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => void (this.#environment.timers.set(conflictWaitMs, resolve) satisfies Cancel));
  }
}

/**
 * A lease as an object of `coordination.k8s.io/v1`, with nothing but `fetch`. Every write carries the resourceVersion that was
 * read, so that of two writers one is refused. Another holder's record is taken for dead when it has not changed for the
 * duration it names while this node looked, on this node's monotonic clock; the times in it are for people. The token is an
 * annotation that grows with each tenure; a release empties the holder and keeps the object. Where an operator deletes the
 * object, tokens go on from the wall clock.
 */
export class KubernetesLease extends StoreLease {
  /** @throws OptionsError naming the field; never showing the token */
  constructor(settings: KubernetesSettings, environment: Environment = realEnvironment()) {
    const { namespace, apiServerUrl, authToken, caCert, maxTermMs = 300_000, means, ...lease } = checked(settings);
    const config = resolveLease(family, lease, renewalFloorMs);
    const api = new KubernetesApi(
      required(family, 'namespace', namespace),
      { apiServerUrl, authToken, caCert },
      environment,
      means,
    );
    if (config.ttlMs > maxTermMs) {
      const rule = `must be at most maxTermMs (${maxTermMs}), after which others take the record for dead`;
      throw new OptionsError(family, 'ttlMs', config.ttlMs, rule);
    }
    super(new KubernetesLeaseStore(api, environment, maxTermMs), config, environment);
  }

  /** For `StartSingletonOptions.lease`: owner, and the name unless it is given, are the singleton's. */
  static factory(settings: Omit<KubernetesSettings, 'owner'>): LeaseFactory {
    required(family, 'namespace', checked(settings).namespace);
    return (context: LeaseContext) =>
      new KubernetesLease(
        settingsFor(context, settings),
        context.environment,
      );
  }
}

function checked(settings: KubernetesSettings): KubernetesSettings {
  const { apiServerUrl, authToken } = settings;
  if (apiServerUrl !== undefined && !httpsRule.accepts(apiServerUrl) && mayHoldSecret(apiServerUrl)) {
    throw new OptionsError(family, 'apiServerUrl', '(hidden)', httpsRule.rule);
  }
  if (authToken !== undefined && !optionRules.authToken.accepts(authToken)) {
    throw new OptionsError(family, 'authToken', '(hidden)', optionRules.authToken.rule);
  }
  checkOptions(family, settings, optionRules);
  checkAccess(family, settings);
  return settings;
}
