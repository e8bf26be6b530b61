/**
 * Rule 4 for one lost peer, as a pure machine: on a loopback address a closed link and two refused dials at least 100 ms
 * apart prove that the process is gone. Anything else than `refused` proves nothing, and the next try starts over.
 */
import type { ProbeOutcome } from '../transport/contract.ts';

/** Milliseconds between the two refusals, and how the tries thin out. */
export const probeTimes = { apart: 100, soon: 100, later: 1_000, soonTries: 20 } as const;

export interface DeathCase {
  readonly tries: number;
  /** When the first of two refusals came in. */
  readonly refusedAt: number | undefined;
}

export type DeathVerdict =
  | { readonly kind: 'proven' }
  | { readonly kind: 'again'; readonly afterMs: number; readonly next: DeathCase };

export const newDeathCase: DeathCase = { tries: 0, refusedAt: undefined };

/** `dialledAt`: when the probe that now has an outcome was started. */
export function judgeProbe(state: DeathCase, outcome: ProbeOutcome, dialledAt: number): DeathVerdict {
  const tries = state.tries + 1;
  if (outcome !== 'refused') {
    const afterMs = tries < probeTimes.soonTries ? probeTimes.soon : probeTimes.later;
    return { kind: 'again', afterMs, next: { tries, refusedAt: undefined } };
  }
  if (state.refusedAt !== undefined && dialledAt - state.refusedAt >= probeTimes.apart) return { kind: 'proven' };
  const refusedAt = state.refusedAt ?? dialledAt;
  return { kind: 'again', afterMs: probeTimes.apart, next: { tries, refusedAt } };
}
