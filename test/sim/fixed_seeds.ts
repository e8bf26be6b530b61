/** Which fixed seeds run: how many of each program and profile, and for how long each. Pure. */
import { profileNamed, profileNames } from '../../src/testkit/profiles.ts';
import type { SimJob } from './sim_job.ts';

/**
 * One seed of so many runs the whole fault phase of its profile, the others a short one: they break off the later faults, and
 * in the time of one long run two others form, break and heal a cluster of their own.
 */
export const wholeOneOf = 5;
export const shortFaultMs = 20_000;

/** Few enough seeds that processes which take them in turn end together. */
const chunk: Readonly<Record<string, number>> = { membership: 20 };
const smallChunk = 5;

/** Seeds of each profile; `lease`: of the whole thing in the profile in which nothing excuses two. */
export interface SeedCounts {
  readonly singletons: number;
  readonly membership: number;
  readonly spawn: number;
  readonly lease: number;
  readonly callers: number;
  readonly 'singletons-large': number;
}

export const programs = ['singletons', 'membership', 'spawn', 'callers', 'singletons-large'] as const;

function countOf(counts: SeedCounts, program: typeof programs[number], profile: string): number {
  if (program === 'singletons') return profile === 'lease' ? counts.lease : counts.singletons;
  // What leases add is between hosts and their backends, and has its seeds with members as senders; membership has none.
  if ((program === 'membership' || program === 'callers') && profile.startsWith('lease')) return 0;
  return counts[program];
}

export interface SeedGroup {
  readonly program: string;
  readonly profile: string;
  readonly seeds: number;
  readonly jobs: readonly SimJob[];
}

export function seedGroups(counts: SeedCounts): readonly SeedGroup[] {
  return programs.flatMap((program) =>
    profileNames().map((profile) => {
      const seeds = countOf(counts, program, profile);
      return { program, profile, seeds, jobs: jobsOf(program, profile, seeds) };
    })
  ).filter(({ seeds }) => seeds > 0);
}

/** The whole ones first. */
function jobsOf(program: string, profile: string, seeds: number): SimJob[] {
  const whole = Math.ceil(seeds / wholeOneOf);
  const short = profileNamed(profile).faultMs > shortFaultMs ? { faultMs: shortFaultMs } : {};
  return [
    ...chunks(1, whole).map(([from, to]) => ({ program, profile, from, to })),
    ...chunks(whole + 1, seeds).map(([from, to]) => ({ program, profile, from, to, ...short })),
  ];

  function chunks(first: number, last: number): [number, number][] {
    const size = chunk[program] ?? smallChunk;
    const count = Math.max(0, Math.ceil((last - first + 1) / size));
    return Array.from({ length: count }, (_, i) => [first + i * size, Math.min(last, first + (i + 1) * size - 1)]);
  }
}
