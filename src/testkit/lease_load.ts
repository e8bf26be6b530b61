/**
 * What a run of the profile `lease` draws beside the usual: the backend of its leases, their terms, and who survives a split;
 * and what one of `lease-majority` does.
 */
import type { DowningStrategy } from '../cluster/downing/contract.ts';
import { LeaseMajority } from '../cluster/downing/lease_majority.ts';
import { decideBy } from '../cluster/downing/weigh.ts';
import { type LeaseContext, type LeaseFactory, resolveLease } from '../coordination/lease.ts';
import { QuorumLease } from '../coordination/quorum_lease.ts';
import { StoreLease } from '../coordination/store_lease.ts';
import { type LeaseBackend, leaseFaultKinds } from './lease_backend.ts';
import type { Prng } from './prng.ts';
import type { SimProcess } from './sim_process.ts';

export interface LeaseLoad {
  readonly kind: 'store' | 'quorum';
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  /** Addresses. */
  readonly voters: readonly string[];
  /** Membership alone would let both sides of a split host. */
  readonly everySideLives: boolean;
}

/** Clocks in the simulator are up to 200 ppm off true time, each. */
const driftBound = 5e-4;

export function drawLeases(random: Prng, addresses: readonly string[]): LeaseLoad {
  const kind = random.chance(0.5) ? 'store' : 'quorum';
  const odd = addresses.length - (addresses.length + 1) % 2;
  const voters = kind === 'quorum'
    ? random.shuffled(addresses).slice(0, random.chance(0.5) ? odd : Math.min(3, odd))
    : [];
  const ttlMs = random.between(1_000, 8_000);
  return {
    kind,
    ttlMs,
    maxTtlMs: Math.ceil(ttlMs * random.between(1, 1.5)),
    voters,
    everySideLives: random.chance(0.5),
  };
}

export function leaseFactory(load: LeaseLoad, backend: LeaseBackend, process: SimProcess): LeaseFactory {
  const { ttlMs } = load;
  if (load.kind === 'quorum') return QuorumLease.factory({ ttlMs, driftBound });
  return ({ name, owner, environment }: LeaseContext) =>
    new StoreLease(
      backend.client(process),
      resolveLease('SimulatedLease', { name, owner, ttlMs, driftBound }, 10),
      environment,
    );
}

/** Of a run whose splits are decided by a lease. */
export interface ArbiterLoad {
  readonly minorityDelayMs: number;
  readonly acquireTimeoutMs: number;
  readonly role: string | undefined;
}

export function drawArbiter(random: Prng): ArbiterLoad {
  return {
    minorityDelayMs: random.chance(0.5) ? 5_000 : random.between(0, 6_000),
    acquireTimeoutMs: random.between(1_000, 6_000),
    role: random.chance(0.2) ? 'worker' : undefined,
  };
}

export function arbiterOf(load: ArbiterLoad, backend: LeaseBackend, process: SimProcess): LeaseMajority {
  const { minorityDelayMs, acquireTimeoutMs, role } = load;
  return new LeaseMajority({
    minorityDelayMs,
    acquireTimeoutMs,
    ...(role === undefined ? {} : { role }),
    lease: ({ name, owner, ttlMs, environment }) =>
      new StoreLease(
        backend.client(process),
        resolveLease('SimulatedLease', { name, owner, driftBound, ...(ttlMs === undefined ? {} : { ttlMs }) }, 10),
        environment,
      ),
  });
}

/** `lease-late` and so on, with `milliseconds` or `milliseconds node`. Answers whether it was such an action. */
export function leaseAction(backend: LeaseBackend, action: string, argument: string): boolean {
  const kind = leaseFaultKinds.find((known) => action === `lease-${known}`);
  if (kind === undefined) return false;
  const [forMs, node] = argument.split(' ');
  backend.fault(kind, node, Number(forMs));
  return true;
}

/**
 * Each side of a split takes the other one out and goes on: what nobody should use, and what only a lease survives. Nothing
 * of membership then keeps two instances apart.
 */
export const everySideLives: DowningStrategy = {
  name: 'every-side-lives',
  parameters: {},
  decide: (situation) => decideBy(situation, () => 'kept'),
  keeps: () => true,
};
