/**
 * The claim of one node for its side of a split, as a pure machine: when to ask the arbiter, how long, and what its answers
 * come to. Everything counts only as long as the picture of the split stays settled; a change ends the claim, and what the
 * arbiter has granted or may yet grant to it goes back.
 */
import type { ClaimOutcome } from './contract.ts';

export interface ClaimRules {
  readonly minorityDelayMs: number;
  readonly acquireTimeoutMs: number;
  readonly windowMs: number;
  readonly holdMs: number;
}

/** What a node finds when it looks at its side. */
export interface ClaimView {
  /** This node asks for its side; the others wait for what it finds. */
  readonly asks: boolean;
  /** The side may ask at once. */
  readonly leads: boolean;
  /** How long the member that has been silent longest has been so. */
  readonly silenceMs: number;
  /** Until when the lease is held here, monotonic, by whichever clock of this node ran further; -Infinity while it is not. */
  readonly heldUntil: number;
}

export type ClaimAnswer =
  | { readonly kind: 'granted' }
  | { readonly kind: 'denied'; readonly retryInMs: number | undefined }
  | { readonly kind: 'failed'; readonly why: string };

export interface ClaimState {
  readonly phase: 'none' | 'open' | 'asking' | 'granted' | 'lost';
  readonly asks: boolean;
  readonly leads: boolean;
  /** When to ask (again). */
  readonly askAt: number;
  readonly giveUpAt: number;
  readonly request: number;
  /** A request was made, and not denied: the backend may have granted it, whatever was heard of that. */
  readonly mayHold: boolean;
  /** Of the phase, or of the last answer that was no grant. */
  readonly why: string | undefined;
}

export type ClaimEvent =
  | { readonly kind: 'settled'; readonly view: ClaimView }
  | { readonly kind: 'unsettled' }
  /** The grant has been acted on. */
  | { readonly kind: 'used' }
  | { readonly kind: 'answer'; readonly request: number; readonly answer: ClaimAnswer; readonly view: ClaimView };

/** `give-back`: release what is held, or may be granted by a request that is on its way. `wake`: look again then. */
export type ClaimEffect =
  | { readonly kind: 'ask'; readonly request: number }
  | { readonly kind: 'give-back' }
  | { readonly kind: 'wake'; readonly at: number };

export interface ClaimStep {
  readonly state: ClaimState;
  readonly effects: readonly ClaimEffect[];
}

export const noClaim: ClaimState = {
  phase: 'none',
  asks: false,
  leads: false,
  askAt: Infinity,
  giveUpAt: Infinity,
  request: 0,
  mayHold: false,
  why: undefined,
};

const retryMs = { shortest: 100, longest: 500 } as const;

export function stepClaim(state: ClaimState, event: ClaimEvent, rules: ClaimRules, now: number): ClaimStep {
  switch (event.kind) {
    case 'settled':
      return settled(state, event.view, rules, now);
    case 'unsettled':
      return ended(state, state.mayHold);
    case 'used':
      return ended(state, false);
    case 'answer':
      return answeredBy(state, event.answer, event.request, event.view, rules, now);
    default:
      return event satisfies never;
  }
}

/** What the strategy is told; undefined while the claim is open. */
export function outcomeOf({ phase }: ClaimState): ClaimOutcome | undefined {
  return phase === 'granted' || phase === 'lost' ? phase : undefined;
}

/** Numbers of requests are never used twice. */
function ended({ request }: ClaimState, giveBack: boolean): ClaimStep {
  return { state: { ...noClaim, request }, effects: giveBack ? [{ kind: 'give-back' }] : [] };
}

function settled(state: ClaimState, view: ClaimView, rules: ClaimRules, now: number): ClaimStep {
  if (state.phase !== 'none' && (view.asks !== state.asks || view.leads !== state.leads)) {
    const over = stepClaim(state, { kind: 'unsettled' }, rules, now);
    const anew = settled(over.state, view, rules, now);
    return { state: anew.state, effects: [...over.effects, ...anew.effects] };
  }
  switch (state.phase) {
    case 'none': {
      const askAt = !view.asks ? Infinity : view.leads ? now : now + rules.minorityDelayMs;
      const giveUpAt = view.asks ? askAt + rules.acquireTimeoutMs : now + rules.windowMs;
      const { asks, leads } = view;
      return waiting({ ...state, phase: 'open', asks, leads, askAt, giveUpAt, why: undefined }, view, rules, now);
    }
    case 'open':
    case 'asking':
      return waiting(state, view, rules, now);
    case 'granted':
      // This process may have stood still since the grant.
      return granted(state, view, rules, now);
    case 'lost':
      return { state, effects: [] };
    default:
      return state.phase satisfies never;
  }
}

function waiting(state: ClaimState, view: ClaimView, rules: ClaimRules, now: number): ClaimStep {
  const { asks, askAt, giveUpAt, phase, request, why } = state;
  if (asks && view.silenceMs > rules.windowMs) return lost(state, tooLate(view, rules));
  if (now >= giveUpAt) {
    return lost(state, asks ? why ?? 'the lease gave no answer in time' : 'nobody decided for this side in time');
  }
  if (phase === 'open' && now >= askAt) {
    const next = request + 1;
    const asking: ClaimState = { ...state, phase: 'asking', request: next, mayHold: true };
    return { state: asking, effects: [{ kind: 'ask', request: next }, { kind: 'wake', at: giveUpAt }] };
  }
  return { state, effects: [{ kind: 'wake', at: phase === 'open' ? Math.min(askAt, giveUpAt) : giveUpAt }] };
}

function lost(state: ClaimState, why: string): ClaimStep {
  return {
    state: { ...state, phase: 'lost', mayHold: false, why },
    effects: state.mayHold ? [{ kind: 'give-back' }] : [],
  };
}

function answeredBy(
  state: ClaimState,
  answer: ClaimAnswer,
  request: number,
  view: ClaimView,
  rules: ClaimRules,
  now: number,
): ClaimStep {
  if (state.phase !== 'asking' || state.request !== request) return { state, effects: [] };
  switch (answer.kind) {
    case 'granted':
      return granted({ ...state, phase: 'granted' }, view, rules, now);
    case 'denied':
      return again({ ...state, mayHold: false }, 'another side holds the lease', answer.retryInMs, now);
    case 'failed':
      return again(state, answer.why, undefined, now);
    default:
      return answer satisfies never;
  }
}

/** Is the grant good for a claim at this moment? */
function granted(state: ClaimState, view: ClaimView, rules: ClaimRules, now: number): ClaimStep {
  if (view.silenceMs > rules.windowMs) return lost(state, tooLate(view, rules));
  if (now >= state.giveUpAt) return lost(state, 'the lease gave no answer in time');
  if (view.heldUntil - now >= rules.holdMs) return { state, effects: [] };
  const why = 'the grant came too late to be held long enough';
  const retry = again({ ...state, mayHold: false }, why, undefined, now);
  return { state: retry.state, effects: [{ kind: 'give-back' }, ...retry.effects] };
}

function again(state: ClaimState, why: string, retryInMs: number | undefined, now: number): ClaimStep {
  const wait = Math.min(retryMs.longest, Math.max(retryMs.shortest, retryInMs ?? retryMs.longest));
  const next: ClaimState = { ...state, phase: 'open', askAt: now + wait, why };
  return { state: next, effects: [{ kind: 'wake', at: Math.min(next.askAt, next.giveUpAt) }] };
}

function tooLate({ silenceMs }: ClaimView, { windowMs }: ClaimRules): string {
  const silence = Number.isFinite(silenceMs) ? `for ${Math.round(silenceMs)} ms` : 'at all';
  return `a member has not been heard ${silence}, and a claim is good for ${Math.round(windowMs)} ms`;
}
