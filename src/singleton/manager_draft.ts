/** A transition in the making: the state so far and the effects so far. Lives only inside one call of `manage`. */
import type { Member, MembershipView } from '../cluster/member.ts';
import { retires } from '../cluster/full_shutdown.ts';
import { limits } from '../limits.ts';
import type { Address } from '../transport/contract.ts';
import { attempterOf, withGivenUp } from './attempt_nonce.ts';
import { hostOf, neverPlaced } from './host.ts';
import type { HandOverResult, ManagerEffect, ManagerState, Phase, TimerName } from './manager_state.ts';

export class Draft {
  state: ManagerState;
  readonly effects: ManagerEffect[] = [];
  readonly view: MembershipView;
  /** Monotonic milliseconds. */
  readonly now: number;
  readonly #wall: number;

  constructor(state: ManagerState, view: MembershipView, now: number, wall: number) {
    this.state = state;
    this.view = view;
    this.now = now;
    this.#wall = wall;
  }

  /**
   * One above everything heard of, and at least the wall clock in milliseconds, so that numbers go on upward when the whole
   * cluster restarts; safety does not rest on the clock.
   */
  nextEpoch(): number {
    return Math.max(this.state.epochSeen + 1, this.state.epochStarted + 1, Math.floor(this.#wall));
  }

  /** Is this node the one that should host, and may it? */
  shouldHost(): boolean {
    const { state, view } = this;
    if (!state.started || state.latched || state.leaving || view.self.status !== 'up') return false;
    if (state.awaitsDraw && neverPlaced(view, state.name)) return false;
    const { kind } = state.phase;
    if ((kind === 'idle' || kind === 'younger') && retires(view, view.self)) return false;
    return hostOf(view, state.name)?.uid === state.selfUid;
  }

  /** Who takes over from this node, if anybody does. */
  successor(): Member | undefined {
    const next = hostOf(this.view, this.state.name);
    return next !== undefined && next.uid !== this.state.selfUid && !retires(this.view, next) ? next : undefined;
  }

  patch(change: Partial<ManagerState>): void {
    this.state = { ...this.state, ...change };
  }

  enter(phase: Phase): void {
    this.state = { ...this.state, phase };
  }

  effect(effect: ManagerEffect): void {
    this.effects.push(effect);
  }

  setTimer(timer: TimerName, ms: number): void {
    this.effects.push({ kind: 'set-timer', timer, ms });
  }

  clearTimer(timer: TimerName): void {
    this.effects.push({ kind: 'clear-timer', timer });
  }

  log(level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.effects.push({ kind: 'log', level, message, ...(fields ? { fields } : {}) });
  }

  /**
   * Remembers epochs heard of; they never go down. One absurdly far ahead is not taken up, or a single misbehaving member
   * could use up the numbers for everybody.
   */
  sawEpoch(seen: number, startedEpoch = 0): void {
    const farthest = Math.max(this.state.epochSeen, this.#wall) + limits.epochJump;
    if (seen > farthest || startedEpoch > farthest) return;
    const epochSeen = Math.max(this.state.epochSeen, seen, startedEpoch);
    const epochStarted = Math.max(this.state.epochStarted, startedEpoch);
    if (epochSeen !== this.state.epochSeen || epochStarted !== this.state.epochStarted) {
      this.patch({ epochSeen, epochStarted });
    }
    const kept = this.state.kept;
    if (kept && startedEpoch > kept.epoch) this.dropKept();
  }

  sawHost(address: Address, epoch: number): void {
    if (epoch === this.state.epochStarted) this.patch({ lastHost: { address, epoch } });
  }

  gaveUp(nonces: readonly string[]): void {
    const givenUp = withGivenUp(this.state.givenUp, nonces);
    if (givenUp !== this.state.givenUp) this.patch({ givenUp });
  }

  /** Attempts that may have started from the result in custody, or may yet; `but`: other than those of this process. */
  offers(result: HandOverResult, but: string): readonly string[] {
    const { givenUp } = this.state;
    return result.offeredTo.filter((nonce) => attempterOf(nonce) !== but && !givenUp.includes(nonce));
  }

  keep(result: HandOverResult): void {
    this.patch({ kept: result });
    this.setTimer('kept', this.state.config.keepResultMs);
  }

  dropKept(): void {
    if (!this.state.kept) return;
    this.patch({ kept: undefined });
    this.clearTimer('kept');
  }
}
