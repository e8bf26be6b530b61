/**
 * Who may write under a persistence id. A writer claims the id before it reads, and stores refuse everybody else from then
 * on, as Burrows' "Chubby" paper (2006) has its servers do with sequencers.
 */
import { FencedError } from '../actor/errors.ts';
import { checkNumber, checkText } from './validation.ts';

/** Who writes: the instance of a singleton that claims an id. A later one shuts out the earlier ones. */
export interface Writer {
  /** Grows with each instance within one cluster. */
  readonly epoch: number;
  /** The process, or the actor where there is no cluster. Random per start. */
  readonly uid: string;
  /** The cluster that counts the epoch. */
  readonly clusterId: string;
}

/** A claim as it is stored. Its `epoch` is the store's own count, which grows over all clusters. */
export interface HeldClaim extends Writer {
  /** The epoch as the claimant's cluster counts it; less than `epoch` once a claim has been raised above another cluster's. */
  readonly asked: number;
}

/** What a claim gives. */
export interface Claim {
  /** To be given with each write. Its epoch is at least the one that was asked for. */
  readonly writer: Writer;
  /** The highest sequence number, or revision, that was ever written. */
  readonly highestSeq: number;
  /** Events up to here have been deleted. */
  readonly deletedTo: number;
}

export type ClaimVerdict =
  | { readonly kind: 'granted'; readonly claim: HeldClaim }
  | { readonly kind: 'fenced'; readonly by: HeldClaim };

/**
 * Within one cluster a lower epoch, and an equal one of somebody else, is fenced. A claim left by another cluster does not
 * count: the new one is raised above it, and the distance is kept, so that later hosts of the new cluster need not know.
 */
export function decideClaim(held: HeldClaim | undefined, asked: Writer): ClaimVerdict {
  const own = { uid: asked.uid, clusterId: asked.clusterId, asked: asked.epoch };
  if (held === undefined) return { kind: 'granted', claim: { ...own, epoch: asked.epoch } };
  if (held.clusterId !== asked.clusterId) {
    return { kind: 'granted', claim: { ...own, epoch: Math.max(asked.epoch, held.epoch + 1) } };
  }
  const older = asked.epoch < held.asked || (asked.epoch === held.asked && asked.uid !== held.uid);
  if (older) return { kind: 'fenced', by: held };
  return { kind: 'granted', claim: { ...own, epoch: asked.epoch + (held.epoch - held.asked) } };
}

/** @throws FencedError unless `writer` is the one whose claim is held */
export function checkFence(persistenceId: string, held: HeldClaim | undefined, writer: Writer): void {
  if (held === undefined) throw new FencedError(`'${persistenceId}' must be claimed before it is written`);
  if (held.epoch !== writer.epoch || held.uid !== writer.uid || held.clusterId !== writer.clusterId) {
    throw fencedBy(persistenceId, writer, held);
  }
}

/** The error of a writer that another claim has shut out. */
export function fencedBy(persistenceId: string, writer: Writer, held: HeldClaim): FencedError {
  return new FencedError(
    `epoch ${writer.epoch} of ${writer.uid} may not write '${persistenceId}': it is claimed by epoch ${held.epoch} of ${held.uid}`,
  );
}

/** @throws OptionsError */
export function checkWriter(writer: Writer): void {
  checkNumber('Writer', 'epoch', writer.epoch);
  checkText('Writer', 'uid', writer.uid);
  checkText('Writer', 'clusterId', writer.clusterId);
}
