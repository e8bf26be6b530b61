/** Why a node did not get into a cluster. */

export interface SeedReason {
  readonly seed: string;
  readonly why: string;
}

/** Rejects `join`: lists each seed and why it did not lead into a cluster. */
export class JoinError extends Error {
  override readonly name = 'JoinError';
  readonly seeds: readonly SeedReason[];

  constructor(why: string, seeds: readonly SeedReason[]) {
    const list = seeds.map(({ seed, why: reason }) => `\n  ${seed}: ${reason}`).join('');
    super(`could not join the cluster: ${why}${list}`);
    this.seeds = seeds;
  }
}
