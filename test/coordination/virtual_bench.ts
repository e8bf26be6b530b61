/** A bench for the lease contract on a virtual clock, over any store. */
import { LeaseError, type LeaseSettings, resolveLease } from '../../src/coordination/lease.ts';
import type { LeaseStore } from '../../src/coordination/lease_store.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { LeaseBench } from '../contract/lease_contract.ts';

/** Turns the answers of a store into errors, or loses them. */
export class FaultyStore implements LeaseStore {
  broken: string | undefined;
  muted: string | undefined;
  readonly #store: LeaseStore;
  readonly calls: string[] = [];

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  acquire(request: Parameters<LeaseStore['acquire']>[0]) {
    return this.#call('acquire', request.owner, () => this.#store.acquire(request));
  }
  renew(request: Parameters<LeaseStore['renew']>[0]) {
    return this.#call('renew', request.owner, () => this.#store.renew(request));
  }
  release(request: Parameters<LeaseStore['release']>[0]) {
    return this.#call('release', request.owner, () => this.#store.release(request));
  }

  async #call<T>(what: string, owner: string, run: () => Promise<T>): Promise<T> {
    this.calls.push(`${owner} ${what}`);
    if (this.broken === owner) throw new LeaseError('the backend is broken');
    const answer = await run();
    return this.muted === owner ? new Promise<T>(() => {}) : answer;
  }
}

export class VirtualBench implements LeaseBench {
  readonly environment: ManualEnvironment = new ManualEnvironment();
  readonly ttlMs: number;
  readonly faults: FaultyStore;

  constructor(ttlMs: number, store: (environment: ManualEnvironment) => LeaseStore) {
    this.ttlMs = ttlMs;
    this.faults = new FaultyStore(store(this.environment));
  }

  open(name: string, owner: string, settings: LeaseSettings = {}): StoreLease {
    return new StoreLease(
      this.faults,
      resolveLease('Lease', { name, owner, ttlMs: this.ttlMs, ...settings }, 10),
      this.environment,
    );
  }

  elapse(ms: number): Promise<void> {
    return this.environment.elapse(ms);
  }

  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => void (settled = true);
    promise.then(done, done);
    for (let step = 0; step < 10_000; step += 1) {
      await this.environment.settle();
      if (settled) break;
      await this.environment.elapse(5);
    }
    return promise;
  }

  breakFor(owner: string | undefined): void {
    this.faults.broken = owner;
  }
  muteFor(owner: string | undefined): void {
    this.faults.muted = owner;
  }
  now(): number {
    return this.environment.clock.now();
  }
  async close(): Promise<void> {}
}
