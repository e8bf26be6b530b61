/**
 * Seeds that are looked up (in DNS, or by the API of a platform) and not listed. What is found counts once it has stayed the
 * same for a while: right after a deployment each node sees other ones, and none of them all.
 */
import { checkOptions, OptionsError, type Rules, rules, show } from '../actor/options.ts';
import type { Environment } from '../actor/environment.ts';
import type { ActorSystem } from '../actor/system.ts';
import { normalSeed } from '../cluster/cluster_option_rules.ts';
import { ClusterOptions, type ClusterSettings } from '../cluster/cluster_options.ts';
import { compareText } from '../cluster/member.ts';
import { resolveClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { limits } from '../limits.ts';

/** How `Cluster.bootstrap` finds its seeds. */
export interface DiscoveryOptions {
  /**
   * The nodes that there are now, as `host:port` or http(s) URLs, this one included or not, in any order. Throws or rejects
   * when that cannot be told: a failed lookup is something else than an empty one.
   */
  readonly lookup: () => readonly string[] | Promise<readonly string[]>;
  /**
   * So many must be found, and a new cluster has no `up` members before it is so large. More than half of all nodes that
   * there will be: then no two clusters can arise.
   */
  readonly requiredContactPoints: number;
  /** What is found must stay the same for so long. Default 5 000 ms. */
  readonly stableMs?: number;
  /** Between two lookups. Default 1 000 ms. */
  readonly intervalMs?: number;
  /** For all lookups together. Default 60 000 ms. */
  readonly timeoutMs?: number;
}

const family = 'DiscoveryOptions';

const optionRules: Rules<DiscoveryOptions> = {
  lookup: rules.function,
  requiredContactPoints: rules.integer(1, limits.members),
  stableMs: rules.durationMs(0),
  intervalMs: rules.durationMs(10),
  timeoutMs: rules.durationMs(1),
};

/** Rejects `Cluster.bootstrap`: says what was found last, and why the last lookup failed if it did. */
export class BootstrapError extends Error {
  override readonly name = 'BootstrapError';
  /** Found by the last lookup that did not fail; undefined: there was none. */
  readonly found: readonly string[] | undefined;

  constructor(why: string, { found, failure }: Sighting) {
    const seen = found === undefined ? 'no lookup has succeeded' : `found last: ${found.join(', ') || 'nobody'}`;
    super(
      `could not look up the cluster: ${why}; ${seen}${failure === undefined ? '' : `; the last lookup: ${failure}`}`,
    );
    this.found = found;
  }
}

/** What lookups have shown so far. */
export interface Sighting {
  /** Sorted, without repetitions. */
  readonly found: readonly string[] | undefined;
  /** When exactly these were found first, and when last, without anything else between. */
  readonly since: number;
  readonly until: number;
  /** Of the last lookup. */
  readonly failure: string | undefined;
}

export const nothingSeen: Sighting = { found: undefined, since: 0, until: 0, failure: undefined };

/** A lookup that has ended; `found` may be anything. */
export type LookupOutcome = { readonly found: unknown } | { readonly failure: string };

export function sighted(before: Sighting, outcome: LookupOutcome, now: number): Sighting {
  if ('failure' in outcome) return { ...before, failure: outcome.failure };
  const read = readSeeds(outcome.found);
  if (typeof read === 'string') return { ...before, failure: read };
  const same = before.found?.join() === read.join();
  return { found: read, since: same ? before.since : now, until: now, failure: undefined };
}

/** May these be the seeds now? */
export function isSettled({ found, since, until, failure }: Sighting, required: number, stableMs: number): boolean {
  return failure === undefined && found !== undefined && found.length >= required && until - since >= stableMs;
}

function readSeeds(found: unknown): readonly string[] | string {
  if (!Array.isArray(found) || found.length > limits.members) {
    return `must give a list of at most ${limits.members} addresses, got ${show(found)}`;
  }
  const seeds = new Set<string>();
  for (const one of found as unknown[]) {
    const seed = typeof one === 'string' ? normalSeed(one) : undefined;
    if (seed === undefined) return `must give addresses like host:port or http(s) URLs, got ${show(one)}`;
    seeds.add(seed);
  }
  return [...seeds].sort(compareText);
}

/** Looks until what is found has settled. */
function discoverSeeds(
  environment: Environment,
  options: DiscoveryOptions,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  checkOptions(family, options, optionRules);
  for (const field of ['lookup', 'requiredContactPoints'] as const) {
    if (options[field] === undefined) throw new OptionsError(family, field, undefined, 'must be given');
  }
  const { lookup, requiredContactPoints, stableMs = 5_000, intervalMs = 1_000, timeoutMs = 60_000 } = options;
  const { clock, timers } = environment;
  return new Promise((resolve, reject) => {
    let sighting = nothingSeen;
    let done = false;
    let next = (): void => {};
    const end = (run: () => void): void => {
      if (done) return;
      done = true;
      late();
      next();
      signal?.removeEventListener('abort', abort);
      run();
    };
    const giveUp = (why: string): void => end(() => reject(new BootstrapError(why, sighting)));
    const abort = (): void => giveUp('aborted');
    const late = timers.set(timeoutMs, () => {
      const count = sighting.found?.length ?? 0;
      const missing = count < requiredContactPoints ? `, found ${count}` : ', what is found keeps changing';
      giveUp(`within ${timeoutMs} ms ${requiredContactPoints} contact points must be found${missing}`);
    });
    const take = (outcome: LookupOutcome): void => {
      if (done) return;
      sighting = sighted(sighting, outcome, clock.now());
      const { found = [] } = sighting;
      // Of more than can be seeds all nodes take the same ones.
      if (isSettled(sighting, requiredContactPoints, stableMs)) end(() => resolve(found.slice(0, limits.seeds)));
      else next = timers.set(intervalMs, look);
    };
    const look = (): void => {
      const failed = (error: unknown): void =>
        take({ failure: error instanceof Error ? error.message : String(error) });
      new Promise<unknown>((answer) => answer(lookup())).then((found) => take({ found }), failed);
    };
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted === true) abort();
    else look();
  });
}

/**
 * What to join with. A cluster of fewer than are required has no `up` members, so that of two that different lookups have
 * led to at most one can count.
 * @throws OptionsError for a bad option, before anything is looked up; BootstrapError
 */
export async function discovered(
  { name, log, environment }: Pick<ActorSystem, 'name' | 'log' | 'environment'>,
  discovery: DiscoveryOptions,
  options: ClusterOptions | ClusterSettings,
  signal: AbortSignal | undefined,
): Promise<ClusterSettings> {
  const settings = options instanceof ClusterOptions ? options.toSettings() : options;
  resolveClusterOptions(settings, { systemName: name, log });
  if (settings.seeds !== undefined) {
    throw new OptionsError('ClusterOptions', 'seeds', settings.seeds, 'must not be given where they are looked up');
  }
  const seeds = await discoverSeeds(environment, discovery, signal);
  return { ...settings, seeds, minMembers: Math.max(settings.minMembers ?? 1, discovery.requiredContactPoints) };
}
