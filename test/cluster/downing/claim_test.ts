/** The claim of a side, step by step. */
import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import fc from 'fast-check';
import {
  type ClaimAnswer,
  type ClaimEffect,
  type ClaimEvent,
  type ClaimRules,
  type ClaimState,
  type ClaimView,
  noClaim,
  outcomeOf,
  stepClaim,
} from '../../../src/cluster/downing/claim.ts';

const rules: ClaimRules = { minorityDelayMs: 2_000, acquireTimeoutMs: 5_000, windowMs: 20_000, holdMs: 21_000 };
const majority: ClaimView = { asks: true, leads: true, silenceMs: 5_000, heldUntil: -Infinity };
const minority: ClaimView = { ...majority, leads: false };
const passive: ClaimView = { ...majority, asks: false };
/** A grant, and until when it is held then. */
const held = (until: number) => ({ kind: 'granted' as const, heldUntil: until });

/** Runs events at times; gives back what the machine is like and what it has asked for since. */
class Run {
  state: ClaimState = noClaim;
  effects: string[] = [];
  heldUntil = -Infinity;
  at(now: number, event: ClaimEvent): this {
    const step = stepClaim(this.state, event, rules, now);
    this.state = step.state;
    this.effects.push(...step.effects.map(shown));
    return this;
  }
  settled(now: number, view = majority): this {
    return this.at(now, { kind: 'settled', view: this.#seen(view) });
  }
  answer(now: number, answer: ClaimAnswer | ReturnType<typeof held>, view = majority): this {
    this.heldUntil = 'heldUntil' in answer ? answer.heldUntil : this.heldUntil;
    const event = {
      kind: 'answer',
      request: this.state.request,
      answer: { ...answer },
      view: this.#seen(view),
    } as const;
    return this.at(now, event);
  }
  #seen(view: ClaimView): ClaimView {
    return { ...view, heldUntil: this.heldUntil };
  }
  get phase(): string {
    return this.state.phase;
  }
  take(): string[] {
    return this.effects.splice(0);
  }
}

function shown(effect: ClaimEffect): string {
  return effect.kind === 'ask' ? `ask ${effect.request}` : effect.kind === 'wake' ? `wake ${effect.at}` : effect.kind;
}

describe('R92: a claim', () => {
  test('the side that leads asks at once, and a grant is its claim', () => {
    const run = new Run().settled(100);
    assertEquals(run.take(), ['ask 1', 'wake 5100']);
    assertEquals(outcomeOf(run.state), undefined, 'pending is no decision');
    assertEquals(run.settled(600).take(), ['wake 5100'], 'it is asked for once');
    run.answer(700, held(30_000));
    assertEquals([outcomeOf(run.state), run.take()], ['granted', []]);
    assertEquals(run.at(700, { kind: 'used' }).take(), [], 'and kept');
    assertEquals(run.phase, 'none');
  });

  test('another side asks later', () => {
    const run = new Run().settled(100, minority);
    assertEquals(run.take(), ['wake 2100']);
    assertEquals(run.settled(2_099, minority).take(), ['wake 2100']);
    assertEquals(run.settled(2_100, minority).take(), ['ask 1', 'wake 7100']);
  });

  test('who does not ask waits for what the others find, but not for ever', () => {
    const run = new Run().settled(100, passive);
    assertEquals(run.take(), ['wake 20100']);
    assertEquals(outcomeOf(run.settled(20_099, passive).state), undefined);
    assertEquals(outcomeOf(run.settled(20_100, passive).state), 'lost');
  });

  test('denied, it asks again until it gives up', () => {
    const run = new Run().settled(0);
    run.take();
    assertEquals(run.answer(100, { kind: 'denied', retryInMs: 30_000 }).take(), ['wake 600']);
    assertEquals(run.settled(600).take(), ['ask 2', 'wake 5000']);
    assertEquals(run.answer(700, { kind: 'denied', retryInMs: 20 }).take(), ['wake 800']);
    assertEquals(run.settled(800).take(), ['ask 3', 'wake 5000']);
    run.answer(900, { kind: 'denied', retryInMs: undefined });
    run.take();
    assertEquals([run.settled(5_000).take(), outcomeOf(run.state)], [[], 'lost']);
    assertEquals(run.state.why, 'another side holds the lease');
  });

  test('no answer: it gives up, and what may yet be granted goes back', () => {
    const run = new Run().settled(0);
    run.take();
    assertEquals([run.settled(5_000).take(), outcomeOf(run.state)], [['give-back'], 'lost']);
    assertEquals(run.answer(5_001, held(40_000)).take(), [], 'a late grant changes nothing');
    assertEquals(outcomeOf(run.state), 'lost');
  });

  test('an error is asked about again, and is the reason in the end', () => {
    const run = new Run().settled(0);
    run.answer(10, { kind: 'failed', why: 'connection refused' });
    assertEquals(run.take().at(-1), 'wake 510');
    run.settled(5_000);
    assertEquals([run.state.why, run.take()], ['connection refused', ['give-back']], 'it may have been granted');
  });

  test('FB-053: a split that changes or heals while it is pending ends it, and a late grant of it is not taken', () => {
    const run = new Run().settled(0);
    run.take();
    assertEquals(run.at(100, { kind: 'unsettled' }).take(), ['give-back']);
    run.settled(4_000);
    assertEquals(run.take(), ['ask 2', 'wake 9000']);
    run.at(4_100, {
      kind: 'answer',
      request: 1,
      answer: { kind: 'granted' },
      view: { ...majority, heldUntil: 60_000 },
    });
    assertEquals(outcomeOf(run.state), undefined);
    run.answer(4_200, held(60_000));
    assertEquals([outcomeOf(run.state), run.at(4_300, { kind: 'unsettled' }).take()], ['granted', ['give-back']]);
  });

  test('a grant that would not be held for long enough goes back, and another is asked for', () => {
    const run = new Run().settled(0);
    run.take();
    assertEquals(run.answer(100, held(21_099)).take(), ['give-back', 'wake 600']);
    assertEquals(run.settled(600).take(), ['ask 2', 'wake 5000']);
    assertEquals(outcomeOf(run.answer(700, held(21_700)).state), 'granted');
  });

  test('FB-036: after a silence longer than the window nothing is asked for, and no grant counts', () => {
    const late = { ...majority, silenceMs: 20_001 };
    const slept = new Run().settled(0, late);
    assertEquals([slept.take(), outcomeOf(slept.state)], [[], 'lost']);
    const run = new Run().settled(0);
    run.take();
    run.answer(100, held(60_000), late);
    assertEquals([run.take(), outcomeOf(run.state)], [['give-back'], 'lost']);
    const never = new Run().settled(0, { ...majority, silenceMs: Infinity });
    assertEquals([outcomeOf(never.state), never.state.why?.includes('not been heard at all')], ['lost', true]);
  });

  test('a grant counts when it is acted on: a process that stood still since then has none', () => {
    const slept = new Run().settled(0).answer(100, held(60_000));
    assertEquals(outcomeOf(slept.state), 'granted');
    assertEquals(outcomeOf(slept.settled(40_000, { ...majority, silenceMs: 40_000 }).state), 'lost');
    assertEquals(slept.take().at(-1), 'give-back');
    const suspended = new Run().settled(0).answer(100, held(60_000));
    suspended.heldUntil = -Infinity;
    assertEquals([outcomeOf(suspended.settled(200).state), suspended.take().at(-2)], [undefined, 'give-back']);
    const briefly = new Run().settled(0).answer(100, held(22_000));
    briefly.take();
    assertEquals([outcomeOf(briefly.settled(2_000).state), briefly.take()], [undefined, ['give-back', 'wake 2500']]);
  });

  test('who begins or ceases to ask for its side, or to lead, starts anew', () => {
    const run = new Run().settled(0, passive).settled(1_000, majority);
    assertEquals(run.take(), ['wake 20000', 'ask 1', 'wake 6000']);
    assertEquals(run.settled(2_000, minority).take(), ['give-back', 'wake 4000']);
  });

  test('whatever happens: asked for only when it may be, given back unless used, and decided within its bounds', () => {
    const view = fc.record({
      asks: fc.boolean(),
      leads: fc.boolean(),
      silenceMs: fc.constantFrom(0, 19_000, 25_000),
      heldUntil: fc.constantFrom(-Infinity, 5_000, 30_000, 90_000),
    });
    const answer = fc.oneof(
      fc.record({ kind: fc.constant('granted' as const) }),
      fc.record({ kind: fc.constant('denied' as const), retryInMs: fc.constantFrom(undefined, 50, 9_000) }),
      fc.record({ kind: fc.constant('failed' as const), why: fc.constant('x') }),
    );
    const event = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('settled' as const), view }) },
      fc.record({ kind: fc.constant('unsettled' as const) }),
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer' as const), back: fc.nat(2), answer, view }) },
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3_000), event), { maxLength: 60 }), (script) => {
        let [state, now, mayBeHeld] = [noClaim, 0, false];
        for (const [ms, drawn] of script) {
          now += ms;
          const before = state;
          const next: ClaimEvent = drawn.kind === 'answer'
            ? { kind: 'answer', request: state.request - drawn.back, answer: drawn.answer, view: drawn.view }
            : drawn;
          const step = stepClaim(state, next, rules, now);
          state = step.state;
          for (const effect of step.effects) {
            if (effect.kind === 'ask') mayBeHeld = true;
            if (effect.kind === 'give-back') mayBeHeld = false;
          }
          if (next.kind === 'answer' && next.request === before.request && next.answer.kind === 'denied') {
            if (before.phase === 'asking') mayBeHeld = false;
          }
          if (state.phase === 'granted' && before.phase !== 'granted') {
            if (next.kind !== 'answer' || next.answer.kind === 'denied') throw new Error('granted without a grant');
            if (next.view.silenceMs > rules.windowMs) throw new Error('granted too late');
            if (next.view.heldUntil - now < rules.holdMs) {
              throw new Error('granted for too short');
            }
          }
          if (mayBeHeld && (state.phase === 'none' || state.phase === 'lost')) {
            throw new Error(`kept in ${state.phase}`);
          }
          if (next.kind === 'settled' && outcomeOf(state) === undefined && now >= state.giveUpAt) {
            throw new Error('open');
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
