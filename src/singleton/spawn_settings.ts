/** How a spawned singleton runs, wherever it runs: what of a spawn's options travels with its registration. */
import { checkOptions, type Rules, rules } from '../actor/options.ts';
import { SupervisorStrategy } from '../actor/supervision.ts';
import { limits } from '../limits.ts';
import type { DeliveryMode, OverflowPolicy } from './sender_stream.ts';

/** How failures of a spawned singleton are answered; plain data, since it travels. */
export interface SpawnSupervisor {
  readonly directive?: 'restart' | 'resume' | 'stop';
  readonly maxRestarts?: number;
  readonly withinMs?: number;
  readonly backoff?: { readonly minMs: number; readonly maxMs: number; readonly jitter?: number };
}

/** What travels with a registration; all of it is the same on every node. */
export interface SpawnSettings {
  readonly delivery?: DeliveryMode;
  readonly overflow?: OverflowPolicy;
  readonly bufferSize?: number;
  readonly supervisor?: SpawnSupervisor;
}

export const settingsRules: Rules<SpawnSettings> = {
  supervisor: rules.object,
  delivery: rules.oneOf('at-most-once', 'at-least-once'),
  overflow: rules.oneOf('drop-newest', 'drop-oldest', 'fail-ask'),
  bufferSize: rules.integer(1, limits.proxyBuffer),
};
const supervisorRules: Rules<SpawnSupervisor> = {
  directive: rules.oneOf('restart', 'resume', 'stop'),
  maxRestarts: rules.integer(0),
  withinMs: rules.durationMs(1),
  backoff: rules.object,
};

/**
 * The fields that are settings, checked; others are left out, so that a later version may add some.
 * @throws OptionsError
 */
export function settingsOf({ supervisor, delivery, overflow, bufferSize }: SpawnSettings): SpawnSettings {
  checkOptions('SpawnOptions', { supervisor, delivery, overflow, bufferSize }, settingsRules);
  if (supervisor) strategyOf(supervisor);
  return {
    ...(supervisor ? { supervisor } : {}),
    ...(delivery ? { delivery } : {}),
    ...(overflow ? { overflow } : {}),
    ...(bufferSize ? { bufferSize } : {}),
  };
}

/** @throws OptionsError */
export function strategyOf(supervisor: SpawnSupervisor): SupervisorStrategy {
  checkOptions('SpawnSupervisor', supervisor, supervisorRules);
  const { directive, ...options } = supervisor;
  return SupervisorStrategy.oneForOne({ ...options, ...(directive ? { decider: () => directive } : {}) });
}
