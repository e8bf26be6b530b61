/**
 * The holder of a lease as a pure state machine. What makes it safe:
 *
 * - The term counts from the moment the request was *sent*, on the monotonic clock, shortened by the drift bound, so that
 *   it ends here before it can end at the backend. An answer that comes after that end is refused.
 * - Wall time may only shorten it: where the monotonic clock stands still during a suspend, the wall clock runs ahead. Set
 *   back, it could hide that, and ends the term too.
 * - One request at a time, so that no two of one owner can overtake each other.
 * - A failed renewal is repeated within the term; nothing is renewed after a loss or a release.
 * - Whatever may have been granted and is not wanted any more is released.
 */
import {
  type HolderEffect,
  type HolderEvent,
  type HolderState,
  type HolderStep,
  type Instant,
  isHeld,
  type Request,
  type RequestKind,
  termOf,
  within,
} from './holder_state.ts';
import type { ReleaseAnswer, StoreAnswer } from './lease_store.ts';

const releaseTries = 3;
const maxRetryMs = 1_000;

export function hold(state: HolderState, event: HolderEvent, at: Instant): HolderStep {
  const holder = new Holder(state, at);
  holder.apply(event);
  return { state: holder.state, effects: holder.effects };
}

/** One transition in the making. */
class Holder {
  state: HolderState;
  readonly effects: HolderEffect[] = [];
  readonly #at: Instant;

  constructor(state: HolderState, at: Instant) {
    this.state = state;
    this.#at = at;
  }

  apply(event: HolderEvent): void {
    if (this.#overdue()) this.#lose();
    switch (event.kind) {
      case 'acquire':
        return this.#acquire();
      case 'release':
        return this.#release();
      case 'abandon':
        return this.#abandon();
      case 'timer':
        return this.#onTimer();
      case 'check':
        return;
      case 'answer':
        return this.#onAnswer(event.id, event.answer);
      default:
        return event satisfies never;
    }
  }

  #patch(change: Partial<HolderState>): void {
    this.state = { ...this.state, ...change };
  }

  #effect(effect: HolderEffect): void {
    this.effects.push(effect);
  }

  #overdue(): boolean {
    return this.state.phase === 'held' && !isHeld(this.state, this.#at);
  }

  #send(kind: RequestKind): void {
    const { config, requests, token } = this.state;
    const id = requests + 1;
    this.#patch({ requests: id, request: { id, kind, at: this.#at } });
    this.#effect({ kind: 'send', id, request: kind, token, timeoutMs: config.requestTimeoutMs });
  }

  #acquire(): void {
    const { phase, token } = this.state;
    switch (phase) {
      case 'held':
        return this.#effect({ kind: 'acquired', token, previous: undefined });
      case 'acquiring':
        return;
      case 'releasing':
        return this.#patch({ acquireNext: true });
      case 'idle':
        this.#patch({ phase: 'acquiring', maybeRecorded: true });
        // A renewal that was on its way when the lease was lost is waited for first.
        if (this.state.request === undefined) this.#send('acquire');
        return;
      default:
        return phase satisfies never;
    }
  }

  #release(): void {
    const { phase, maybeRecorded, request, acquireNext } = this.state;
    switch (phase) {
      case 'releasing':
        if (acquireNext) {
          this.#patch({ acquireNext: false });
          this.#effect({ kind: 'not-acquired', why: 'released meanwhile', retryInMs: undefined, failed: false });
        }
        return;
      case 'acquiring':
        this.#effect({ kind: 'not-acquired', why: 'released meanwhile', retryInMs: undefined, failed: false });
        break;
      case 'idle':
        if (!maybeRecorded) return this.#effect({ kind: 'released' });
        break;
      case 'held':
        break;
      default:
        return phase satisfies never;
    }
    this.#effect({ kind: 'clear-timer' });
    this.#patch({ phase: 'releasing', token: 0, term: undefined, releaseTries: 0, failures: 0 });
    // What is on its way may yet be granted: its answer comes first, then the release.
    if (request === undefined) this.#send('release');
  }

  #abandon(): void {
    const { request, phase } = this.state;
    this.#effect({ kind: 'clear-timer' });
    if (request !== undefined) this.#effect({ kind: 'cancel', id: request.id });
    if (phase === 'acquiring' || this.state.acquireNext) {
      this.#effect({ kind: 'not-acquired', why: 'abandoned', retryInMs: undefined, failed: true });
    }
    if (phase === 'releasing') this.#effect({ kind: 'not-released', why: 'abandoned' });
    this.#patch({ phase: 'idle', request: undefined, token: 0, term: undefined, acquireNext: false });
  }

  #lose(): void {
    const { term, trouble } = this.state;
    const { now, wall } = this.#at;
    const slept = term !== undefined && now < term.deadline;
    const why = slept
      ? `the wall clock moved by ${
        Math.round(wall - now - term.ahead)
      } ms against the monotonic one: this process was suspended, or the clock was set`
      : `the term ended before a renewal was confirmed${trouble === undefined ? '' : ` (${trouble})`}`;
    this.#lost(why);
  }

  #lost(why: string): void {
    this.#effect({ kind: 'clear-timer' });
    this.#patch({ phase: 'idle', token: 0, term: undefined, failures: 0, trouble: undefined });
    this.#effect({ kind: 'lost', why });
  }

  #onTimer(): void {
    const { phase, request } = this.state;
    if (request !== undefined) return this.#guard();
    if (phase === 'held') {
      this.#send('renew');
      this.#guard();
    } else if (phase === 'releasing') {
      this.#send('release');
    }
  }

  /** While a renewal is on its way the timer marks the end of the term. */
  #guard(): void {
    const { phase, term } = this.state;
    if (phase === 'held' && term) {
      this.#effect({ kind: 'set-timer', ms: Math.max(1, Math.ceil(term.deadline - this.#at.now)) });
    }
  }

  #onAnswer(id: number, answer: StoreAnswer | ReleaseAnswer): void {
    const { request, phase } = this.state;
    if (request === undefined || request.id !== id) return;
    this.#patch({ request: undefined });
    switch (phase) {
      case 'idle':
        // A renewal that came too late; what it may have left at the backend is released when the owner says so.
        return;
      case 'acquiring':
        return request.kind === 'acquire' ? this.#onAcquired(request, answer) : this.#send('acquire');
      case 'held':
        return this.#onRenewed(request, answer);
      case 'releasing':
        return request.kind === 'release' ? this.#onReleased(answer) : this.#send('release');
      default:
        return phase satisfies never;
    }
  }

  #onAcquired(request: Request, answer: StoreAnswer | ReleaseAnswer): void {
    const { config, highest } = this.state;
    switch (answer.kind) {
      case 'granted': {
        const term = termOf(config, request.at);
        if (!Number.isSafeInteger(answer.token) || answer.token <= highest) {
          return this.#refuse(`the backend granted token ${answer.token}, which is not above ${highest}`);
        }
        if (!within(term, this.#at)) return this.#refuse('the grant took longer than its term');
        const { token } = answer;
        this.#patch({ phase: 'held', token, highest: token, term, failures: 0, trouble: undefined });
        this.#effect({ kind: 'acquired', token, previous: answer.previous });
        return this.#bookRenewal(request.at.now + config.renewalIntervalMs);
      }
      case 'held':
        this.#patch({ phase: 'idle', maybeRecorded: false });
        return this.#effect({
          kind: 'not-acquired',
          why: answer.by === undefined ? 'somebody else holds it' : `${answer.by} holds it`,
          retryInMs: answer.expiresInMs,
          failed: false,
        });
      case 'error':
        this.#patch({ phase: 'idle' });
        return this.#effect({ kind: 'not-acquired', why: answer.why, retryInMs: answer.retryInMs, failed: true });
      case 'released':
        return this.#refuse('the backend answered something else than it was asked');
      default:
        return answer satisfies never;
    }
  }

  /** A grant that is of no use goes back. */
  #refuse(why: string): void {
    this.#effect({ kind: 'not-acquired', why, retryInMs: undefined, failed: true });
    this.#patch({ phase: 'releasing', releaseTries: 0 });
    this.#send('release');
  }

  #bookRenewal(at: number): void {
    this.#effect({ kind: 'set-timer', ms: Math.max(0, at - this.#at.now) });
  }

  #onRenewed(request: Request, answer: StoreAnswer | ReleaseAnswer): void {
    const { config, token } = this.state;
    switch (answer.kind) {
      case 'granted': {
        if (answer.token !== token) return this.#lost(`the tenure is over: the backend is at token ${answer.token}`);
        const term = termOf(config, request.at);
        // The clocks may have parted since it was sent.
        if (!within(term, this.#at)) return this.#repeat('a clock was set, or this process was suspended');
        this.#patch({ term, failures: 0, trouble: undefined });
        return this.#bookRenewal(request.at.now + config.renewalIntervalMs);
      }
      case 'held':
        this.#patch({ maybeRecorded: false });
        return this.#lost(
          answer.by === undefined ? 'the backend says that this tenure is over' : `${answer.by} holds it`,
        );
      case 'error':
        return this.#repeat(answer.why, answer.retryInMs);
      case 'released':
        return this.#repeat('the backend answered something else than it was asked');
      default:
        return answer satisfies never;
    }
  }

  /** A renewal failed: again, a little later each time while there is much time, and more often towards the end. */
  #repeat(trouble: string, askedMs?: number): void {
    const { config, failures, term } = this.state;
    const left = (term?.deadline ?? 0) - this.#at.now;
    const least = config.ttlMs / 50;
    const backoff = Math.max(least, Math.min(maxRetryMs, least * 2 ** Math.min(failures, 6), left / 4));
    const wait = askedMs !== undefined && askedMs > backoff && askedMs < left / 2 ? askedMs : backoff;
    this.#patch({ failures: failures + 1, trouble });
    this.#effect({ kind: 'set-timer', ms: Math.max(1, Math.min(wait, Math.ceil(left))) });
  }

  #onReleased(answer: StoreAnswer | ReleaseAnswer): void {
    const { config } = this.state;
    if (answer.kind === 'released' || answer.kind === 'held') {
      this.#patch({ maybeRecorded: false });
      return this.#afterRelease({ kind: 'released' });
    }
    const why = answer.kind === 'error' ? answer.why : 'the backend answered something else than it was asked';
    const tries = this.state.releaseTries + 1;
    this.#patch({ releaseTries: tries });
    if (tries >= releaseTries) return this.#afterRelease({ kind: 'not-released', why });
    this.#effect({ kind: 'set-timer', ms: Math.min(maxRetryMs, config.ttlMs / 20) });
  }

  #afterRelease(effect: HolderEffect): void {
    const { acquireNext } = this.state;
    this.#patch({ phase: 'idle', acquireNext: false });
    this.#effect(effect);
    if (acquireNext) this.#acquire();
  }
}
