/** Leases of one process, for tests and for a cluster that lives in one process. */
import type { Clock, Environment } from '../actor/environment.ts';
import { realEnvironment } from '../actor/real_environment.ts';
import { type LeaseContext, type LeaseFactory, type LeaseSettings, resolveLease, settingsFor } from './lease.ts';
import type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from './lease_store.ts';
import { StoreLease } from './store_lease.ts';

interface MemoryRecord {
  owner: string | undefined;
  token: number;
  expiresAt: number;
}

/**
 * Keeps one owner per name, strictly: a name that is held is refused to everybody else, whoever releases what. Tokens grow
 * by one with each tenure and are never forgotten.
 */
export class MemoryLeaseStore implements LeaseStore {
  readonly #clock: Clock;
  readonly #records = new Map<string, MemoryRecord>();

  /** @param clock whose monotonic time counts; default the real one */
  constructor(clock: Clock = realEnvironment().clock) {
    this.#clock = clock;
  }

  /** Who holds `name` at this moment. */
  holderOf(name: string): string | undefined {
    const record = this.#records.get(name);
    return record && this.#isHeld(record) ? record.owner : undefined;
  }

  acquire({ name, owner, ttlMs, above = 0 }: StoreRequest): Promise<StoreAnswer> {
    const record = this.#records.get(name) ?? { owner: undefined, token: 0, expiresAt: -Infinity };
    if (this.#isHeld(record) && record.owner !== owner) return Promise.resolve(this.#held(record));
    const previous = record.token;
    const token = Math.max(previous, above) + 1;
    this.#records.set(name, { owner, token, expiresAt: this.#clock.now() + ttlMs });
    return Promise.resolve({ kind: 'granted', token, previous });
  }

  renew({ name, owner, ttlMs, token }: StoreRequest & { readonly token: number }): Promise<StoreAnswer> {
    const record = this.#records.get(name);
    if (!record || record.owner !== owner || record.token !== token) {
      return Promise.resolve(record && this.#isHeld(record) ? this.#held(record) : { kind: 'held' });
    }
    record.expiresAt = this.#clock.now() + ttlMs;
    return Promise.resolve({ kind: 'granted', token });
  }

  release({ name, owner }: StoreRequest): Promise<ReleaseAnswer> {
    const record = this.#records.get(name);
    if (record?.owner === owner) record.owner = undefined;
    return Promise.resolve({ kind: 'released' });
  }

  #isHeld(record: MemoryRecord): boolean {
    return record.owner !== undefined && this.#clock.now() < record.expiresAt;
  }

  #held(record: MemoryRecord): StoreAnswer {
    const expiresInMs = record.expiresAt - this.#clock.now();
    return { kind: 'held', expiresInMs, ...(record.owner === undefined ? {} : { by: record.owner }) };
  }
}

const family = 'MemoryLease';
const renewalFloorMs = 100;

/** A lease among the nodes of one process: for tests, and to learn with. */
export class MemoryLease extends StoreLease {
  /** @throws OptionsError */
  constructor(store: MemoryLeaseStore, settings: LeaseSettings, environment: Environment = realEnvironment()) {
    super(store, resolveLease(family, settings, renewalFloorMs), environment);
  }

  /** For `StartSingletonOptions.lease`: name and owner are the singleton's. */
  static factory(store: MemoryLeaseStore, settings: Omit<LeaseSettings, 'owner'>): LeaseFactory {
    resolveLease(family, { name: 'checked', ttlMs: 1_000, ...settings, owner: 'checked' }, renewalFloorMs);
    return (context: LeaseContext) =>
      new MemoryLease(
        store,
        settingsFor(context, settings),
        context.environment,
      );
  }
}
