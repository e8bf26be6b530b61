/** When snapshots are taken, and what is deleted after one. */
import { checkOptions, OptionsError, rules } from '../actor/options.ts';

/** When a persistent actor takes snapshots, and what it deletes then. `everyNEvents` and `neverSnapshot` make one. */
export interface SnapshotPolicy {
  /** After a command that wrote events: is it time? `lastSnapshot` is 0 while there is none. */
  due(sequenceNr: number, lastSnapshot: number): boolean;
  /** Snapshots of this id that are kept after a new one; 0 leaves it to the store. */
  readonly keepSnapshots: number;
  /** Whether events that are older than the oldest snapshot kept are deleted. */
  readonly deleteEvents: boolean;
}

/** What is kept after a new snapshot. */
export interface RetentionOptions {
  /** Default 0: as the store does. */
  readonly keepSnapshots?: number;
  /** Default false: the whole history stays. */
  readonly deleteEvents?: boolean;
}

/** No snapshots, unless the actor calls `saveSnapshot` itself. */
export const neverSnapshot: SnapshotPolicy = { due: () => false, keepSnapshots: 0, deleteEvents: false };

/** A snapshot whenever at least `n` events were written since the last. @throws OptionsError */
export function everyNEvents(n: number, retention: RetentionOptions = {}): SnapshotPolicy {
  const rule = rules.integer(1);
  if (!rule.accepts(n)) throw new OptionsError('everyNEvents', 'n', n, rule.rule);
  checkOptions('RetentionOptions', retention, { keepSnapshots: rules.integer(0), deleteEvents: rules.boolean });
  return {
    due: (sequenceNr, lastSnapshot) => sequenceNr - lastSnapshot >= n,
    keepSnapshots: retention.keepSnapshots ?? 0,
    deleteEvents: retention.deleteEvents ?? false,
  };
}
