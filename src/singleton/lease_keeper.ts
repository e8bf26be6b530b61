/** The manager's lease: carries out its two effects, tells it the outcome, and answers for each message whether it is held. */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { Lease } from '../coordination/lease.ts';
import type { ManagerEvent } from './manager_state.ts';

export interface LeaseKeeperPort {
  readonly environment: Environment;
  feed(event: ManagerEvent): void;
  /** A release has ended, well or not. */
  released(): void;
}

/** For inspection. */
export interface LeaseReport {
  readonly state: 'free' | 'acquiring' | 'held' | 'releasing';
  readonly token: number;
  /** Until its local end, milliseconds; 0 while it is not held. */
  readonly remainingMs: number;
  /** Why it could not be had the last time, or was lost; undefined while that is mended. */
  readonly problem: string | undefined;
  readonly acquired: number;
  readonly denied: number;
  readonly failed: number;
  readonly lost: number;
}

/** A try is never repeated sooner. */
const minRetryMs = 20;
/** What a handler has at least before its term ends, milliseconds; in short terms a part of them. */
const stopReserveMs = 1_000;
const stopReservePart = 1 / 5;
/** Beyond the expected end of the other's term. */
const expiryReserveMs = 10;

export class LeaseKeeper {
  readonly lease: Lease;
  readonly #name: string;
  readonly #port: LeaseKeeperPort;
  readonly #retryMs: number;
  readonly #cancelLost: Cancel;
  readonly #counts = { acquired: 0, denied: 0, failed: 0, lost: 0 };
  /** Grows with each acquire and release, so that the outcome of an earlier one is not taken for the present one's. */
  #turn = 0;
  #acquiring = false;
  #granted = false;
  #releasing = 0;
  #problem: string | undefined;
  /** The last try had no usable answer. */
  #failing = false;

  constructor(name: string, lease: Lease, acquireRetryIntervalMs: number, port: LeaseKeeperPort) {
    this.#name = name;
    this.lease = lease;
    this.#retryMs = acquireRetryIntervalMs;
    this.#port = port;
    this.#cancelLost = lease.onLost((why) => this.#lost(why));
  }

  /** Is it held under this token at this moment? */
  holds(token: number): boolean {
    return this.#granted && this.lease.token === token;
  }

  /**
   * May a handler begin? Not shortly before the end of the term: it is to end while nobody else can have the lease. A renewal
   * makes it possible again.
   */
  mayBegin(token: number): boolean {
    if (!this.holds(token)) return false;
    const { deadline, ttlMs } = this.lease;
    return !(this.#port.environment.clock.now() >= deadline - Math.min(stopReserveMs, ttlMs * stopReservePart));
  }

  get releasing(): boolean {
    return this.#releasing > 0;
  }

  /** @param above the highest epoch that any member knows of: the token must be above it */
  acquire(above = 0): void {
    this.#turn += 1;
    this.#acquiring = true;
    void this.#acquire(this.#turn, above);
  }

  async #acquire(turn: number, above: number): Promise<void> {
    try {
      const grant = await this.lease.acquireWithToken(above);
      if (turn !== this.#turn) {
        // A late win, of no use to anybody; a later acquire of this node may have joined it, though.
        if (grant !== false && !this.#acquiring && !this.#granted) this.release();
        return;
      }
      this.#acquiring = false;
      if (grant !== false) return this.#won(grant.token, grant.previous);
      this.#counts.denied += 1;
      this.#denied(this.lease.refusal ?? 'another owner has it');
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#acquiring = false;
      this.#counts.failed += 1;
      this.#denied(error instanceof Error ? error.message : String(error), true);
    }
  }

  #won(token: number, previous: number | undefined): void {
    this.#granted = true;
    this.#counts.acquired += 1;
    this.#failing = false;
    const waited = this.#problem !== undefined;
    this.#port.feed({ kind: 'lease-granted', token, ...(previous === undefined ? {} : { previous }) });
    // Given back at once: what it waits for has not come.
    if (!this.#granted) return;
    this.#problem = undefined;
    if (waited) this.#port.environment.log.info(`singleton ${this.#name}: the lease is granted at last`);
  }

  /** One line when it begins and one when it is over, however often it is tried in between, and in how many words. */
  #denied(why: string, failed = false): void {
    const { log } = this.#port.environment;
    if (failed && !this.#failing) {
      log.warn(`singleton ${this.#name}: the lease cannot be asked for; it is tried again`, { why });
    } else if (!failed && this.#problem !== why) {
      log.info(`singleton ${this.#name}: waits for its lease`, { why });
    }
    this.#failing = failed;
    this.#problem = why;
    const asked = this.lease.retryInMs ?? NaN;
    const retryInMs = Number.isNaN(asked) ? this.#retryMs : Math.min(this.#retryMs, asked + expiryReserveMs);
    this.#port.feed({ kind: 'lease-denied', retryInMs: Math.max(minRetryMs, retryInMs), why });
  }

  /**
   * Also when nothing is held: an acquire whose answer was lost may have been granted.
   * @param useless why what was granted is given back, if that will not change by itself
   */
  release(useless?: string): void {
    if (useless !== undefined && useless !== this.#problem) {
      this.#port.environment.log.warn(`singleton ${this.#name}: the lease is of no use; it is tried again`, {
        why: useless,
      });
    }
    this.#problem = useless ?? this.#problem;
    this.#turn += 1;
    this.#acquiring = false;
    this.#granted = false;
    this.#releasing += 1;
    void this.#release();
  }

  async #release(): Promise<void> {
    try {
      await this.lease.release();
    } catch (error) {
      this.#port.environment.log.warn(`singleton ${this.#name}: others wait for the end of the term`, {
        why: error instanceof Error ? error.message : String(error),
      });
    } finally {
      this.#releasing -= 1;
      this.#port.released();
    }
  }

  #lost(why: string): void {
    if (!this.#granted) return;
    this.#granted = false;
    this.#counts.lost += 1;
    this.#problem = `lost: ${why}`;
    this.#port.feed({ kind: 'lease-lost', why });
  }

  report(): LeaseReport {
    const { lease } = this;
    const held = this.#granted && lease.checkAlive();
    const state = held ? 'held' : this.#releasing > 0 ? 'releasing' : this.#acquiring ? 'acquiring' : 'free';
    const remainingMs = held ? Math.max(0, Math.round(lease.deadline - this.#port.environment.clock.now())) : 0;
    return { state, token: held ? lease.token : 0, remainingMs, problem: this.#problem, ...this.#counts };
  }

  /** Another keeper has the lease, or nobody needs it: nothing is told any more. */
  detach(): void {
    this.#turn += 1;
    this.#granted = false;
    this.#cancelLost();
  }

  /** The node ends: nothing is renewed or told any more. */
  dispose(): void {
    this.detach();
    this.lease.abandon();
  }
}
