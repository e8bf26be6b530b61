/** What a node in search of its cluster says about it: for `/ready` and for the error of a failed join. */
import type { SeedReason } from './join_error.ts';
import { isListed, listedAlone, majorityOf, mayFound, type Seeding, type SeedOutcome } from './seeding_state.ts';

/** Each seed and what is known about it. */
export function seedReasons(state: Seeding): readonly SeedReason[] {
  return state.settings.seeds.map((seed) => {
    const outcome = state.outcomes.get(seed);
    return { seed, why: outcome === undefined ? 'not answered yet' : outcomeText(outcome) };
  });
}

function outcomeText(outcome: SeedOutcome): string {
  switch (outcome.kind) {
    case 'self':
      return 'is this node';
    case 'silent':
    case 'mismatch':
      return outcome.why;
    case 'alone':
      return 'answers, but is in no cluster yet';
    case 'clustered':
      return 'is in a cluster, but has not let this node in yet';
    default:
      return outcome satisfies never;
  }
}

/** One sentence about what a node that is not in a cluster waits for. */
export function missingText(state: Seeding): string {
  const why = new Set<string>();
  if (state.refusal !== undefined) why.add(state.refusal);
  for (const { seed, why: reason } of seedReasons(state)) {
    if (state.outcomes.get(seed)?.kind === 'mismatch') why.add(`${seed}: ${reason}`);
  }
  const waiting = waitingText(state, why.size > 0);
  return [...(waiting === undefined ? [] : [waiting]), ...why].join('; ');
}

/** Of one that was refused nobody can say that no seed is in a cluster: undefined where there is nothing else to say. */
function waitingText(state: Seeding, refused: boolean): string | undefined {
  const { seeds, selfElection } = state.settings;
  if (state.joining !== undefined) return `waiting for a welcome from ${state.joining.targets.join(', ')}`;
  if (refused && (selfElection === 'never' || !isListed(state))) return undefined;
  if (selfElection === 'never') return `no seed is in a cluster yet (selfElection is 'never')`;
  if (!isListed(state)) return 'no seed is in a cluster yet, and this node is not in the seed list';
  if (!mayFound(state)) {
    return 'members of the last cluster of this process do not answer, and may still be in it: waiting for them';
  }
  const needed = majorityOf(seeds);
  const present = listedAlone(state).length + 1;
  if (present < needed) return `${needed} of ${seeds.length} seeds must be there to found a cluster, ${present} are`;
  return 'waiting for the first of the seeds to found the cluster';
}
