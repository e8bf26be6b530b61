/** All downing strategies, and how options name them. */
import type { Logger } from '../../actor/environment.ts';
import type { DowningStrategy } from './contract.ts';
import { DownAll } from './down_all.ts';
import { KeepMajority } from './keep_majority.ts';
import { KeepOldest } from './keep_oldest.ts';
import { ManualDowning } from './manual.ts';
import { type DowningProvider, fromProvider } from './provider.ts';

export type {
  ClaimOutcome,
  ClaimTimes,
  DowningDecision,
  DowningStrategy,
  SplitArbiter,
  SplitSituation,
} from './contract.ts';
export { DownAll } from './down_all.ts';
export { KeepMajority, type KeepMajorityOptions } from './keep_majority.ts';
export { KeepOldest, type KeepOldestOptions } from './keep_oldest.ts';
export { KeepReferee, type KeepRefereeOptions } from './keep_referee.ts';
export { LeaseMajority, type LeaseMajorityOptions } from './lease_majority.ts';
export { ManualDowning } from './manual.ts';
export { type DowningProvider, type DowningQuestion, fromProvider } from './provider.ts';
export { StaticQuorum, type StaticQuorumOptions } from './static_quorum.ts';

/** Strategies that need no parameters can be given by name. */
export const downingNames = ['keep-majority', 'keep-oldest', 'down-all', 'manual'] as const;
/** A strategy with its default options, by name; `manual` for none. */
export type DowningName = typeof downingNames[number];

/** What `ClusterOptions.downing` takes. */
export type DowningOption = DowningName | DowningStrategy | DowningProvider;

/** Something that can be used as `downing`, by its shape. */
export function isDowningOption(value: unknown): value is DowningOption {
  if (typeof value === 'string') return (downingNames as readonly string[]).includes(value);
  if (typeof value !== 'object' || value === null) return false;
  return 'decide' in value && typeof value.decide === 'function';
}

/** The strategy an option stands for; the default is `KeepMajority`. */
export function downingStrategy(option: DowningOption | undefined, log: Pick<Logger, 'error'>): DowningStrategy {
  if (typeof option === 'object') return isStrategy(option) ? option : fromProvider(option, log);
  switch (option) {
    case undefined:
    case 'keep-majority':
      return new KeepMajority();
    case 'keep-oldest':
      return new KeepOldest();
    case 'down-all':
      return new DownAll();
    case 'manual':
      return new ManualDowning();
    default:
      return option satisfies never;
  }
}

function isStrategy(option: DowningStrategy | DowningProvider): option is DowningStrategy {
  return 'keeps' in option && typeof option.keeps === 'function';
}
