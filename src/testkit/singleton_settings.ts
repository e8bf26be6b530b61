/** What one run of the singleton program draws: who starts what, with which roles, seeds, strategy and leases. */
import type { CallerGrant } from '../cluster/caller_grants.ts';
import type { DowningOption } from '../cluster/downing/mod.ts';
import type { Address } from '../transport/contract.ts';
import { type ArbiterLoad, drawArbiter, drawLeases, everySideLives, type LeaseLoad } from './lease_load.ts';
import { persistentKinds } from './persistent_worker.ts';
import type { RunContext } from './program.ts';
import { type WorkerKind, workerKinds } from './workload_actors.ts';

/** What is drawn once per run. */
export interface RunSettings {
  readonly kinds: readonly WorkerKind[];
  readonly seeds: readonly Address[];
  readonly downing: DowningOption;
  /** By address: roles of the node, and the names of the singletons it starts. */
  readonly nodes: ReadonlyMap<Address, { readonly roles: readonly string[]; readonly starts: ReadonlySet<string> }>;
  readonly plannedOnly: boolean;
  /** Every side of a split lives on. */
  readonly sidesLive: boolean;
  /** Of all singletons; undefined: none has one. */
  readonly leases: LeaseLoad | undefined;
  /** Decides about splits; undefined: `downing` does. */
  readonly arbiter: ArbiterLoad | undefined;
  /** Mean time between two messages of one sender to one singleton. */
  readonly tellEveryMs: number;
  /** Who may call from outside. */
  readonly callers?: readonly CallerGrant[];
  /** See `NodeSettings`. */
  readonly gossipToAllUpTo?: number;
}

/** From the seed. */
export function drawSettings({ random, addresses, profile }: RunContext): RunSettings {
  const drawn = random.shuffled(workerKinds).slice(0, random.integer(2, 5));
  const { plannedOnly } = profile;
  // Where leases are at stake, one at least should mostly be caught in the middle of a handler.
  const busy = workerKinds.filter((kind) => profile.leases === true && kind.name === 'busy' && !drawn.includes(kind));
  const kinds = profile.disks === true
    ? [...random.shuffled(persistentKinds).slice(0, random.integer(1, 2)), ...drawn.slice(0, 1)]
    : [...drawn, ...busy];
  const workers = addresses.filter(() => plannedOnly || random.chance(0.7));
  const nodes = new Map(addresses.map((address) => {
    const roles = workers.length === 0 || workers.includes(address) ? ['worker'] : [];
    const starts = new Set(kinds.filter(() => plannedOnly || random.chance(0.9)).map((kind) => kind.name));
    return [address, { roles, starts }];
  }));
  // Somebody must be able to host each of them.
  const [first] = [...nodes.values()].filter((node) => node.roles.length > 0);
  for (const kind of kinds) first?.starts.add(kind.name);
  const all = random.chance(0.7) || addresses.length < 3;
  const seeds = all ? addresses : random.shuffled(addresses).slice(0, random.integer(2, addresses.length));
  const downing = random.chance(0.85) ? 'keep-majority' : 'keep-oldest';
  const tellEveryMs = random.between(120, 700);
  const leases = profile.leases === true ? drawLeases(random, addresses) : undefined;
  const arbiter = profile.arbiter === true ? drawArbiter(random) : undefined;
  const sidesLive = profile.sidesLive === true || leases?.everySideLives === true;
  return {
    kinds,
    seeds,
    downing: sidesLive ? everySideLives : downing,
    nodes,
    plannedOnly,
    sidesLive,
    leases,
    arbiter,
    tellEveryMs,
  };
}
