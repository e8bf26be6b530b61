/** States, events and effects of the holder of a lease, and the arithmetic of its term. The transitions are in `holder.ts`. */
import type { Clock } from '../actor/environment.ts';
import type { ResolvedLease } from './lease.ts';
import type { ReleaseAnswer, StoreAnswer } from './lease_store.ts';

export type RequestKind = 'acquire' | 'renew' | 'release';

export interface Request {
  readonly id: number;
  readonly kind: RequestKind;
  readonly at: Instant;
}

/** The same moment on both clocks. */
export interface Instant {
  readonly now: number;
  readonly wall: number;
}

/** Readings of the clocks this far apart are taken again, so often at most. */
const apartMs = 5;
const readings = 5;

/**
 * A process that stands still between reading one clock and the other would see them part, though neither has moved. The
 * monotonic time is that after the other.
 */
export function instantOf(clock: Clock): Instant {
  let before = clock.now();
  for (let left = readings;; left -= 1) {
    const wall = clock.wall();
    const now = clock.now();
    if (now - before <= apartMs || left === 0) return { now, wall };
    before = now;
  }
}

export interface Term {
  /** Held while the monotonic clock is below this … */
  readonly deadline: number;
  /** … and the wall clock below this … */
  readonly wallDeadline: number;
  /** … and the wall clock as far ahead of the monotonic one as this, give or take `slackMs`. */
  readonly ahead: number;
  readonly slackMs: number;
}

export interface HolderState {
  readonly config: ResolvedLease;
  readonly phase: 'idle' | 'acquiring' | 'held' | 'releasing';
  readonly request: Request | undefined;
  readonly requests: number;
  readonly token: number;
  /** The largest token ever had. */
  readonly highest: number;
  readonly term: Term | undefined;
  /** The backend may have a record that says this owner holds it. */
  readonly maybeRecorded: boolean;
  /** Acquire as soon as the release has ended. */
  readonly acquireNext: boolean;
  readonly releaseTries: number;
  readonly failures: number;
  /** Why the last renewal of this tenure failed; undefined when it did not. */
  readonly trouble: string | undefined;
}

export type HolderEvent =
  | { readonly kind: 'acquire' | 'release' | 'abandon' | 'timer' }
  /** Somebody has looked and found the term over. */
  | { readonly kind: 'check' }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: StoreAnswer | ReleaseAnswer };

export type HolderEffect =
  | {
    readonly kind: 'send';
    readonly id: number;
    readonly request: RequestKind;
    readonly token: number;
    readonly timeoutMs: number;
  }
  | { readonly kind: 'cancel'; readonly id: number }
  /** One timer; a new one replaces the old. */
  | { readonly kind: 'set-timer'; readonly ms: number }
  | { readonly kind: 'clear-timer' }
  | { readonly kind: 'acquired'; readonly token: number; readonly previous: number | undefined }
  | {
    readonly kind: 'not-acquired';
    readonly why: string;
    readonly retryInMs: number | undefined;
    readonly failed: boolean;
  }
  | { readonly kind: 'released' }
  | { readonly kind: 'not-released'; readonly why: string }
  | { readonly kind: 'lost'; readonly why: string };

export interface HolderStep {
  readonly state: HolderState;
  readonly effects: readonly HolderEffect[];
}

/** Readings of two clocks that are taken one after the other differ by this without meaning anything. */
const clockSlackMs = 50;

export function initialHolder(config: ResolvedLease): HolderState {
  return {
    config,
    phase: 'idle',
    request: undefined,
    requests: 0,
    token: 0,
    highest: 0,
    term: undefined,
    maybeRecorded: false,
    acquireNext: false,
    releaseTries: 0,
    failures: 0,
    trouble: undefined,
  };
}

/** The term of a request sent at `at`. */
export function termOf(config: ResolvedLease, at: Instant): Term {
  const length = config.ttlMs * (1 - config.driftBound);
  return {
    deadline: at.now + length,
    wallDeadline: at.wall + length,
    ahead: at.wall - at.now,
    slackMs: Math.max(clockSlackMs, config.ttlMs * config.driftBound),
  };
}

/**
 * A wall clock that ran ahead shows a suspend, during which the monotonic clock may stand still. One that was set back could
 * hide a suspend, so it ends the term as well.
 */
export function within(term: Term, at: Instant): boolean {
  return at.now < term.deadline && at.wall < term.wallDeadline &&
    Math.abs(at.wall - at.now - term.ahead) <= term.slackMs;
}

export function isHeld(state: HolderState, at: Instant): boolean {
  return state.phase === 'held' && state.term !== undefined && within(state.term, at);
}
