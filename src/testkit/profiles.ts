/** Kinds of runs: each profile draws hosts, a network and a fault plan from the seed. More can be registered. */
import type { Fault } from './fault.ts';
import type { Prng } from './prng.ts';
import { type DelayProfile, delayProfiles } from './sim_path.ts';
import { echoes } from './echo_plan.ts';
import * as edges from './edge_plans.ts';
import * as plans from './fault_plans.ts';
import { disks } from './disk_plans.ts';
import { amnesia, leases } from './lease_plans.ts';

/** A kind of simulated weather: how many hosts, how they are connected, and what goes wrong when. */
export interface Profile {
  readonly name: string;
  readonly description: string;
  /** Smallest and largest number of hosts. */
  readonly nodes: readonly [low: number, high: number];
  /** Probability that all hosts share one machine (loopback addresses, proven death applies). */
  readonly loopback: number;
  /** True when every move in such a run is planned: nothing may be lost, duplicated or reordered. */
  readonly plannedOnly: boolean;
  /** True when nodes only join: then no singleton moves at all. */
  readonly joinsOnly?: boolean;
  /** True when every singleton has a lease: then nothing excuses two, and what one of them does late must be refused. */
  readonly leases?: boolean;
  /** True when the lease backend decides who survives a split. */
  readonly arbiter?: boolean;
  /** True when there are persistent singletons, on disks that crash. */
  readonly disks?: boolean;
  /** True when nothing in such a run excuses two clusters: their node lists agree, and no side of a split is ever downed. */
  readonly oneCluster?: boolean;
  /** True when every side of a split lives on, as where operators down the other side by hand. */
  readonly sidesLive?: boolean;
  /** Time for the cluster to form before the first fault. */
  readonly settleMs: number;
  /** Length of the fault phase unless the caller says otherwise. */
  readonly faultMs: number;
  readonly delays: readonly DelayProfile[];
  /** Draws faults with times in `from … to`. */
  readonly plan: (context: PlanContext) => Fault[];
}

/** What a profile draws its faults from. */
export interface PlanContext {
  readonly random: Prng;
  readonly nodes: readonly string[];
  /** All hosts are on one machine. */
  readonly loopback: boolean;
  readonly from: number;
  readonly to: number;
}

const local = [delayProfiles.loopback, delayProfiles.lan] as const;
const anywhere = [delayProfiles.loopback, delayProfiles.lan, delayProfiles.lan, delayProfiles.wan] as const;

const base = {
  nodes: [3, 6] as const,
  loopback: 0.3,
  plannedOnly: false,
  settleMs: 10_000,
  faultMs: 60_000,
  delays: anywhere,
};

const registry = new Map<string, Profile>();

/** Adds a profile; a name can be taken once. */
export function registerProfile(profile: Profile): void {
  if (registry.has(profile.name)) throw new RangeError(`registerProfile: ${profile.name} is registered already`);
  registry.set(profile.name, profile);
}

/**
 * The profile of that name.
 * @throws RangeError that lists the names there are
 */
export function profileNamed(name: string): Profile {
  const profile = registry.get(name);
  if (profile === undefined) throw new RangeError(`profile ${name} is unknown; there are ${profileNames().join(', ')}`);
  return profile;
}

/** The names of all profiles. */
export function profileNames(): string[] {
  return [...registry.keys()];
}

const builtIn: readonly Profile[] = [
  {
    ...base,
    name: 'calm',
    description: 'no faults',
    nodes: [1, 7],
    plannedOnly: true,
    joinsOnly: true,
    faultMs: 20_000,
    plan: () => [],
  },
  {
    ...base,
    name: 'scale',
    description: 'a small cluster that 1, 2 or 5 nodes join at once',
    nodes: [3, 9],
    plannedOnly: true,
    joinsOnly: true,
    plan: plans.joins,
  },
  {
    ...base,
    name: 'leave',
    description: 'graceful leaves, several at once too, and returns',
    plannedOnly: true,
    plan: plans.leaves,
  },
  {
    ...base,
    name: 'rolling',
    description: 'a rolling restart of all nodes',
    plannedOnly: true,
    faultMs: 90_000,
    plan: plans.rolling,
  },
  {
    ...base,
    name: 'moves',
    description: 'operator moves, stops and starts of singletons',
    plannedOnly: true,
    plan: plans.operations,
  },
  {
    ...base,
    name: 'partition',
    description: 'cuts: clean, skewed, one-way, partial',
    loopback: 0,
    plan: plans.partitions,
  },
  { ...base, name: 'flap', description: 'short cuts on and off', loopback: 0, plan: plans.flaps },
  { ...base, name: 'pause', description: 'stopped processes and stalled event loops', plan: plans.pauses },
  { ...base, name: 'crash', description: 'kills and power failures', plan: plans.crashes },
  {
    ...base,
    name: 'restart',
    description: 'restarts at the same address, at once',
    loopback: 0.5,
    delays: local,
    plan: plans.restarts,
  },
  { ...base, name: 'churn', description: 'joins, leaves, crashes and restarts', nodes: [4, 9], plan: plans.churn },
  { ...base, name: 'drift', description: 'drifting and jumping clocks, short stalls', plan: plans.clocks },
  { ...base, name: 'links', description: 'reset, hung and slow connections', plan: plans.links },
  {
    ...base,
    name: 'lease',
    description: 'leases whose backend is late, silent, unsure or denies, and everything else at once',
    leases: true,
    loopback: 0.2,
    plan: leases,
  },
  {
    ...base,
    name: 'lease-majority',
    description:
      'splits that a lease decides, whose backend is late, silent, unsure or denies, and everything else at once',
    arbiter: true,
    nodes: [2, 5],
    loopback: 0.1,
    plan: leases,
  },
  {
    ...base,
    name: 'disk',
    description: 'persistent singletons: disks and databases that are slow, full, broken, away and lose power',
    nodes: [2, 4],
    disks: true,
    loopback: 0.5,
    plan: disks,
  },
  {
    ...base,
    name: 'amnesia',
    description: 'the holder of a lease is cut off while everybody else restarts, or hears old answers',
    leases: true,
    nodes: [3, 4],
    loopback: 0,
    faultMs: 80_000,
    plan: amnesia,
  },
  {
    ...base,
    name: 'founding',
    description: 'cuts while the cluster forms',
    nodes: [3, 7],
    loopback: 0,
    oneCluster: true,
    faultMs: 8_000,
    plan: edges.founding,
  },
  {
    ...base,
    name: 'impatience',
    description: 'an operator downs members as soon as they are cut off',
    nodes: [4, 7],
    loopback: 0,
    plan: edges.impatience,
  },
  {
    ...base,
    name: 'recounts',
    description: 'joins and leaves in the moment of a cut',
    nodes: [4, 7],
    loopback: 0,
    faultMs: 80_000,
    plan: edges.recounts,
  },
  {
    ...base,
    name: 'refusals',
    description: 'connections reset and refused though the process lives',
    plan: edges.refusals,
  },
  {
    ...base,
    name: 'reunion',
    description: 'both sides of each cut live on, and meet again',
    loopback: 0,
    sidesLive: true,
    faultMs: 80_000,
    plan: edges.reunions,
  },
  {
    ...base,
    name: 'crawl',
    description: 'operator moves over slow links',
    loopback: 0,
    delays: [delayProfiles.wan],
    plan: edges.crawls,
  },
  {
    ...base,
    name: 'echo',
    description: 'quick moves to and fro, stops and starts, while answers come late and by other ways',
    nodes: [3, 4],
    loopback: 0,
    plannedOnly: true,
    delays: [delayProfiles.wan],
    plan: echoes,
  },
  {
    ...base,
    name: 'lies',
    description: 'forged, stale, doubled and truncated gossip, absurd numbers: nothing may come of it',
    plannedOnly: true,
    faultMs: 30_000,
    plan: edges.lies,
  },
  { ...base, name: 'mixed', description: 'everything at once', nodes: [3, 7], plan: plans.mixed },
];
for (const profile of builtIn) registerProfile(profile);
