/** All deliberate faults, by rule. */
import { coordinationMutants } from './coordination.ts';
import { deliveryMutants } from './delivery.ts';
import { hostingMutants } from './hosting.ts';
import { membershipMutants } from './membership.ts';
import type { Mutant } from './mutant.ts';
import { spawnMutants } from './spawn.ts';

export const mutants: readonly Mutant[] = [
  ...membershipMutants,
  ...hostingMutants,
  ...deliveryMutants,
  ...coordinationMutants,
  ...spawnMutants,
];

/** What each rule is about, in the words of the table. */
export const rules: Readonly<Record<number, string>> = {
  1: 'removal margin',
  2: 'the losing side stops by itself',
  3: 'numbering, and what a side weighs',
  4: 'proven death',
  5: 'cold start',
  6: 'heal',
  7: 'no wall clock, no number twice',
  8: 'who hosts',
  9: 'becoming host',
  10: 'epochs',
  11: 'one verdict per move',
  12: 'the sender owns the copy',
  13: 'processed means settled',
  14: 'watermarks',
  15: "the sender's ledger",
  16: 'lease deadline and fence',
  17: 'quorum lease',
  18: 'renewal and retry',
  19: 'registrations of spawned singletons',
};
