/**
 * When a caller connects, and to which node: a pure function of what happened. One address after the other, with growing
 * waits that are cut by chance (full jitter, as in "Exponential Backoff And Jitter", AWS 2015), so that the callers of a
 * node that died do not all arrive elsewhere at once. The first new try after a loss goes to another address at once.
 */
import { coreLimits as limits } from '../limits.ts';
import type { DialFailure } from '../transport/contract.ts';

export type ConnectionState =
  | { readonly kind: 'waiting'; readonly at: number; readonly failures: number }
  | { readonly kind: 'dialling'; readonly at: number; readonly failures: number }
  | { readonly kind: 'open'; readonly at: number }
  | { readonly kind: 'closed' };

export type ConnectionEvent =
  | { readonly kind: 'start' }
  /** The wait is over. */
  | { readonly kind: 'due' }
  | { readonly kind: 'welcome' }
  | { readonly kind: 'failed'; readonly failure: DialFailure }
  /** An open connection is over, or must be given up. */
  | { readonly kind: 'lost'; readonly why: string }
  | { readonly kind: 'close' };

export type ConnectionEffect =
  | { readonly kind: 'dial'; readonly at: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'hang-up'; readonly why: string }
  | { readonly kind: 'connected'; readonly at: number }
  | { readonly kind: 'disconnected'; readonly why: string }
  | { readonly kind: 'refused'; readonly at: number; readonly failure: DialFailure };

export interface ConnectionStep {
  readonly state: ConnectionState;
  readonly effects: readonly ConnectionEffect[];
}

export const initialConnection: ConnectionState = { kind: 'waiting', at: 0, failures: 0 };

/** `chance` is a number in [0, 1) drawn for this step; `urls` the number of addresses. */
export function stepConnection(
  state: ConnectionState,
  event: ConnectionEvent,
  urls: number,
  chance: number,
): ConnectionStep {
  if (state.kind === 'closed') return { state, effects: [] };
  switch (event.kind) {
    case 'start':
    case 'due':
      if (state.kind !== 'waiting') return { state, effects: [] };
      return { state: { ...state, kind: 'dialling' }, effects: [{ kind: 'dial', at: state.at }] };
    case 'welcome':
      if (state.kind !== 'dialling') return { state, effects: [] };
      return { state: { kind: 'open', at: state.at }, effects: [{ kind: 'connected', at: state.at }] };
    case 'failed': {
      if (state.kind !== 'dialling') return { state, effects: [] };
      const next = { at: (state.at + 1) % urls, failures: state.failures + 1 };
      const refused: ConnectionEffect = { kind: 'refused', at: state.at, failure: event.failure };
      return {
        state: { kind: 'waiting', ...next },
        effects: [refused, { kind: 'wait', ms: retryMs(next.failures, urls, chance) }],
      };
    }
    case 'lost': {
      if (state.kind !== 'open') return { state, effects: [] };
      return {
        state: { kind: 'waiting', at: (state.at + 1) % urls, failures: 0 },
        effects: [
          { kind: 'hang-up', why: event.why },
          { kind: 'disconnected', why: event.why },
          { kind: 'wait', ms: chance * limits.callerRetryMs },
        ],
      };
    }
    case 'close': {
      const over: ConnectionEffect[] = state.kind === 'waiting' ? [] : [{ kind: 'hang-up', why: 'closed' }];
      return { state: { kind: 'closed' }, effects: over };
    }
    default:
      return event satisfies never;
  }
}

/** The addresses are gone through once quickly, before the waits grow. */
function retryMs(failures: number, urls: number, chance: number): number {
  const rounds = Math.min(16, Math.floor(failures / urls));
  const longest = Math.min(limits.callerRetryMaxMs, limits.callerRetryMs * 2 ** rounds);
  return Math.ceil(chance * longest);
}
