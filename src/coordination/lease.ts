/**
 * Leases: a right that at most one owner has at a time, for a bounded time, granted by something outside of both halves of
 * a split. The idea and its arithmetic are those of Gray and Cheriton ("Leases", 1989); the growing token that lets a store
 * refuse a holder from before is the sequencer of Burrows' "Chubby" paper (2006).
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import { checkOptions, OptionsError, type Rules, rules } from '../actor/options.ts';
import { limits } from '../limits.ts';

/** One owner's end of a lease. An object is used by one owner and for one name. */
export interface Lease {
  readonly name: string;
  /** Who holds it, unique per process start: `address#uid` within a cluster. */
  readonly owner: string;
  readonly ttlMs: number;
  /** Monotonic milliseconds up to which it is held; -Infinity while it is not. Moves on with each renewal. */
  readonly deadline: number;
  /** Of the present tenure; 0 while it is not held. */
  readonly token: number;
  /**
   * After `acquire` answered false: in how many milliseconds another try is worth it, which is when the term of the present
   * holder is expected to end. Undefined when nobody knows.
   */
  readonly retryInMs: number | undefined;
  /** After `acquire` answered false: why, for people, where more is known than that somebody else has it. */
  readonly refusal?: string | undefined;
  /** True when it is held now (also if it was before), false when somebody else has it. Rejects with `LeaseError`. */
  acquire(): Promise<boolean>;
  /**
   * Like `acquire`, with the token: a safe integer that grows with every tenure of this name, whoever has it, releases
   * included. `previous` is the token of the tenure right before, where the backend can tell. `above` is one that was in use
   * before, should the backend have forgotten it (all voters restarted, a backup restored): all but etcd's go on from there.
   */
  acquireWithToken(above?: number): Promise<LeaseGrant | false>;
  /**
   * Gives it up: from this call on it is not held and not renewed. Resolves when the backend knows, also when there was
   * nothing to give up; rejects with `LeaseError` when it could not be told, and others wait for the end of the term then.
   */
  release(): Promise<void>;
  /** Is it held right now? One look at the clock; asks nobody. */
  checkAlive(): boolean;
  /** Calls `handler` once per loss, in a later turn at the latest. A release is no loss. */
  onLost(handler: (reason: string) => void): Cancel;
  /** Stops renewing and forgets it, without telling anybody. For the end of a process. */
  abandon(): void;
}

/** A lease that was won: its fencing token, and the one before where the backend knows it. */
export interface LeaseGrant {
  readonly token: number;
  readonly previous?: number;
}

/** The backend gave no usable answer; whether it acted is unknown. */
export class LeaseError extends Error {
  override readonly name = 'LeaseError';
}

/** Options that all leases have. All fields are optional; what is missing comes from the singleton. */
export interface LeaseSettings {
  /** What is leased. At most 255 characters; backends may be stricter. */
  readonly name?: string;
  readonly owner?: string;
  /** Length of a term, milliseconds, at least 100. */
  readonly ttlMs?: number;
  /** From the start of one renewal to the next. Default: a third of the term, and no less than the backend's floor. */
  readonly renewalIntervalMs?: number;
  /** One request. Default: half a term, at most 10 000 ms. */
  readonly requestTimeoutMs?: number;
  /** How far apart two clocks may run, as a fraction. Default 0.0002. */
  readonly driftBound?: number;
}

/** Checked `LeaseSettings` with every default filled in. Times in milliseconds. */
export interface ResolvedLease {
  readonly name: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly renewalIntervalMs: number;
  readonly requestTimeoutMs: number;
  readonly driftBound: number;
}

export const leaseRules: Rules<LeaseSettings> = {
  name: rules.text(limits.typeNameChars),
  owner: rules.text(limits.leaseOwnerChars),
  ttlMs: rules.durationMs(100),
  renewalIntervalMs: rules.durationMs(10),
  requestTimeoutMs: rules.durationMs(10),
  driftBound: rules.number(0, 0.1),
};

/**
 * @param family named in errors
 * @param floorMs the shortest default of `renewalIntervalMs`
 * @throws OptionsError
 */
export function resolveLease(family: string, settings: LeaseSettings, floorMs: number): ResolvedLease {
  checkOptions(family, settings, leaseRules);
  const { ttlMs } = settings;
  const name = required(family, 'name', settings.name);
  const owner = required(family, 'owner', settings.owner);
  const term = required(family, 'ttlMs', ttlMs);
  const { renewalIntervalMs = Math.min(Math.max(term / 3, floorMs), term / 2) } = settings;
  if (renewalIntervalMs > term / 2) {
    const rule = `must be at most half of ttlMs (${term}), so that a lost renewal can be repeated`;
    throw new OptionsError(family, 'renewalIntervalMs', renewalIntervalMs, rule);
  }
  const { requestTimeoutMs = Math.min(10_000, term / 2) } = settings;
  return Object.freeze({
    name,
    owner,
    ttlMs: term,
    renewalIntervalMs,
    requestTimeoutMs,
    driftBound: settings.driftBound ?? 2e-4,
  });
}

/** @throws OptionsError when the value is missing */
export function required<T>(family: string, field: string, value: T | undefined): T {
  if (value === undefined) throw new OptionsError(family, field, value, 'is required');
  return value;
}

/** What a singleton gives to the factory of its lease. */
export interface LeaseContext {
  /** Name of the singleton. */
  readonly name: string;
  readonly owner: string;
  readonly environment: Environment;
  /** The cluster's. */
  readonly driftBound: number;
  /** The term, where the factory's settings name none. */
  readonly ttlMs?: number;
  /** The voters of the cluster, where `leaseVoters` configures some. */
  readonly arbiter?: unknown;
}

/** The settings of a lease that is made for `context`: what the factory's own leave out comes from there. */
export function settingsFor<T extends LeaseSettings>(context: LeaseContext, settings: T): T & LeaseSettings {
  const { name, owner, driftBound, ttlMs } = context;
  return { driftBound, ...(ttlMs === undefined ? {} : { ttlMs }), ...settings, name: settings.name ?? name, owner };
}

/** Makes the lease of one owner. Called once per start, before the first acquire. */
export type LeaseFactory = (context: LeaseContext) => Lease;

/**
 * A backend grants a lease again to its owner: two processes under one owner would both hold it.
 * @throws OptionsError
 */
export function checkLeaseOwner(family: string, lease: Lease, uid: string): Lease {
  if (typeof lease.owner === 'string' && lease.owner.includes(uid)) return lease;
  const rule = `must contain this process's uid ${uid}, as no other process's does; a factory is given a fitting one`;
  throw new OptionsError(family, 'lease.owner', lease.owner, rule);
}
