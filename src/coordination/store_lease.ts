/** The lease of one owner over any backend: runs the holder, owns its timer and its one request. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { hold } from './holder.ts';
import {
  type HolderEffect,
  type HolderEvent,
  type HolderState,
  initialHolder,
  type Instant,
  instantOf,
  within,
} from './holder_state.ts';
import { type Lease, LeaseError, type LeaseGrant, type ResolvedLease } from './lease.ts';
import { checkedAnswer, type LeaseStore, type ReleaseAnswer, type StoreAnswer } from './lease_store.ts';

interface Waiter<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

/** What a lease has been through, for metrics. All only grow. */
export interface LeaseCounts {
  readonly acquired: number;
  readonly denied: number;
  readonly failed: number;
  readonly lost: number;
  readonly releasesFailed: number;
}

/** A lease over a `LeaseStore`: all that a backend has to bring is three conditional requests. */
export class StoreLease implements Lease {
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly renewalIntervalMs: number;
  readonly #environment: Environment;
  readonly #store: LeaseStore;
  #state: HolderState;
  #retryInMs: number | undefined;
  #refusal: string | undefined;
  #timer: Cancel | undefined;
  #inFlight: { readonly id: number; readonly abort: AbortController; readonly cancelTimeout: Cancel } | undefined;
  #acquires: Waiter<LeaseGrant | false>[] = [];
  #above = 0;
  #releases: Waiter<void>[] = [];
  #handlers = new Set<{ readonly run: (reason: string) => void }>();
  #checkBooked = false;
  readonly #counts = { acquired: 0, denied: 0, failed: 0, lost: 0, releasesFailed: 0 };

  constructor(store: LeaseStore, config: ResolvedLease, environment: Environment) {
    this.name = config.name;
    this.owner = config.owner;
    this.ttlMs = config.ttlMs;
    this.renewalIntervalMs = config.renewalIntervalMs;
    this.#store = store;
    this.#environment = environment;
    this.#state = initialHolder(config);
  }

  get deadline(): number {
    return this.checkAlive() ? this.#state.term?.deadline ?? -Infinity : -Infinity;
  }

  get token(): number {
    return this.checkAlive() ? this.#state.token : 0;
  }

  get retryInMs(): number | undefined {
    return this.#retryInMs;
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  get counts(): LeaseCounts {
    return { ...this.#counts };
  }

  acquire(): Promise<boolean> {
    return this.acquireWithToken().then((grant) => grant !== false);
  }

  acquireWithToken(above = 0): Promise<LeaseGrant | false> {
    this.#above = Math.max(this.#above, above);
    return new Promise((resolve, reject) => {
      this.#acquires.push({ resolve, reject });
      this.#feed({ kind: 'acquire' });
    });
  }

  release(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#releases.push({ resolve, reject });
      this.#feed({ kind: 'release' });
    });
  }

  abandon(): void {
    this.#feed({ kind: 'abandon' });
  }

  checkAlive(): boolean {
    const { phase, term } = this.#state;
    if (phase !== 'held' || term === undefined) return false;
    const { clock } = this.#environment;
    if (within(term, { now: clock.now(), wall: clock.wall() })) return true;
    if (within(term, this.#instant())) return true;
    this.#bookCheck();
    return false;
  }

  onLost(handler: (reason: string) => void): Cancel {
    const entry = { run: handler };
    this.#handlers.add(entry);
    return () => void this.#handlers.delete(entry);
  }

  #instant(): Instant {
    return instantOf(this.#environment.clock);
  }

  /** Whoever asked may be in the middle of something: the loss is told in a turn of its own, even if timers are dead. */
  #bookCheck(): void {
    if (this.#checkBooked) return;
    this.#checkBooked = true;
    this.#environment.turns.schedule(() => {
      this.#checkBooked = false;
      this.#feed({ kind: 'check' });
    });
  }

  #feed(event: HolderEvent): void {
    const step = hold(this.#state, event, this.#instant());
    this.#state = step.state;
    for (const effect of step.effects) this.#carryOut(effect);
  }

  #carryOut(effect: HolderEffect): void {
    switch (effect.kind) {
      case 'send':
        return this.#send(effect);
      case 'cancel':
        if (this.#inFlight?.id === effect.id) this.#end();
        return;
      case 'set-timer':
        this.#timer?.();
        this.#timer = this.#environment.timers.set(effect.ms, () => this.#feed({ kind: 'timer' }));
        return;
      case 'clear-timer':
        this.#timer?.();
        this.#timer = undefined;
        return;
      case 'acquired': {
        this.#counts.acquired += 1;
        this.#retryInMs = undefined;
        this.#refusal = undefined;
        const { token, previous } = effect;
        return this.#settleAcquires(({ resolve }) => resolve(previous === undefined ? { token } : { token, previous }));
      }
      case 'not-acquired':
        this.#counts[effect.failed ? 'failed' : 'denied'] += 1;
        this.#retryInMs = effect.retryInMs;
        this.#refusal = effect.failed ? undefined : effect.why;
        return this.#settleAcquires(({ resolve, reject }) =>
          effect.failed ? reject(new LeaseError(`lease ${this.name}: ${effect.why}`)) : resolve(false)
        );
      case 'released':
        return this.#settleReleases(({ resolve }) => resolve());
      case 'not-released':
        this.#counts.releasesFailed += 1;
        return this.#settleReleases(({ reject }) =>
          reject(new LeaseError(`lease ${this.name} could not be released: ${effect.why}`))
        );
      case 'lost':
        this.#counts.lost += 1;
        return this.#tellLost(effect.why);
      default:
        return effect satisfies never;
    }
  }

  #settleAcquires(settle: (waiter: Waiter<LeaseGrant | false>) => void): void {
    const waiters = this.#acquires;
    this.#acquires = [];
    waiters.forEach(settle);
  }

  #settleReleases(settle: (waiter: Waiter<void>) => void): void {
    const waiters = this.#releases;
    this.#releases = [];
    waiters.forEach(settle);
  }

  #tellLost(why: string): void {
    const { log } = this.#environment;
    log.warn(`lease ${this.name}: lost`, { why, owner: this.owner });
    for (const { run } of [...this.#handlers]) {
      try {
        run(why);
      } catch (error) {
        log.error(`lease ${this.name}: a handler of its loss threw`, { error });
      }
    }
  }

  #send({ id, request: kind, token, timeoutMs }: Extract<HolderEffect, { kind: 'send' }>): void {
    const abort = new AbortController();
    const answered = (answer: unknown): void => {
      if (this.#inFlight?.id !== id) return;
      this.#end();
      this.#feed({ kind: 'answer', id, answer: checkedAnswer(answer) });
    };
    const cancelTimeout = this.#environment.timers.set(
      timeoutMs,
      () => answered({ kind: 'error', why: `no answer within ${timeoutMs} ms` }),
    );
    this.#inFlight = { id, abort, cancelTimeout };
    this.#ask(kind, token, abort.signal).then(
      answered,
      (error: unknown) => answered({ kind: 'error', why: error instanceof Error ? error.message : String(error) }),
    );
  }

  async #ask(
    kind: 'acquire' | 'renew' | 'release',
    token: number,
    signal: AbortSignal,
  ): Promise<StoreAnswer | ReleaseAnswer> {
    const request = { name: this.name, owner: this.owner, ttlMs: this.ttlMs, signal };
    switch (kind) {
      case 'acquire':
        return this.#store.acquire({ ...request, above: this.#above });
      case 'renew':
        return this.#store.renew({ ...request, token });
      case 'release':
        return this.#store.release(request);
      default:
        return kind satisfies never;
    }
  }

  #end(): void {
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    inFlight?.cancelTimeout();
    inFlight?.abort.abort();
  }
}
