import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { hold } from '../../src/coordination/holder.ts';
import {
  type HolderEffect,
  type HolderEvent,
  type HolderState,
  initialHolder,
  isHeld,
} from '../../src/coordination/holder_state.ts';
import { resolveLease } from '../../src/coordination/lease.ts';

const config = resolveLease('L', { name: 'x', owner: 'a', ttlMs: 10_000, driftBound: 0.01 }, 10);

class Desk {
  state: HolderState = initialHolder(config);
  now = 0;
  wall = 1_000_000;

  feed(event: HolderEvent): readonly HolderEffect[] {
    const step = hold(this.state, event, { now: this.now, wall: this.wall });
    this.state = step.state;
    return step.effects;
  }
  pass(ms: number): void {
    this.now += ms;
    this.wall += ms;
  }
  get held(): boolean {
    return isHeld(this.state, { now: this.now, wall: this.wall });
  }
  grant(token: number): readonly HolderEffect[] {
    return this.answer({ kind: 'granted', token });
  }
  answer(answer: Extract<HolderEvent, { kind: 'answer' }>['answer']): readonly HolderEffect[] {
    assert(this.state.request !== undefined, 'something was asked');
    return this.feed({ kind: 'answer', id: this.state.request.id, answer });
  }
  /** Held with token 1, asked at 0. */
  static held(): Desk {
    const desk = new Desk();
    desk.feed({ kind: 'acquire' });
    desk.grant(1);
    return desk;
  }
}

const kinds = (effects: readonly HolderEffect[]): string[] =>
  effects.map((effect) => effect.kind === 'send' ? `send ${effect.request}` : effect.kind);

describe('the holder of a lease', () => {
  test('R74: the term counts from the start of the request, less the drift', () => {
    const desk = new Desk();
    assertEquals(kinds(desk.feed({ kind: 'acquire' })), ['send acquire']);
    desk.pass(4_000);
    assertEquals(kinds(desk.grant(7)), ['acquired', 'set-timer']);
    desk.pass(5_899);
    assert(desk.held);
    desk.pass(1);
    assert(!desk.held);
  });

  test('FB-048: a grant that took longer than its term is refused and goes back', () => {
    const desk = new Desk();
    desk.feed({ kind: 'acquire' });
    desk.pass(9_900);
    assertEquals(kinds(desk.grant(7)), ['not-acquired', 'send release']);
    assert(!desk.held);
    assertEquals(kinds(desk.answer({ kind: 'released' })), ['released']);
  });

  test('R78: a token that does not grow is refused', () => {
    const desk = Desk.held();
    desk.feed({ kind: 'release' });
    desk.answer({ kind: 'released' });
    desk.feed({ kind: 'acquire' });
    const [effect] = desk.grant(1);
    assert(effect?.kind === 'not-acquired' && effect.failed && effect.why.includes('not above 1'));
    for (const token of [1.5, Number.NaN, 2 ** 53]) {
      const other = new Desk();
      other.feed({ kind: 'acquire' });
      assertEquals(kinds(other.grant(token))[0], 'not-acquired', String(token));
    }
  });

  test('one request at a time: a slow renewal is not overtaken', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    assertEquals(kinds(desk.feed({ kind: 'timer' })), ['send renew', 'set-timer']);
    desk.pass(4_000);
    assertEquals(kinds(desk.feed({ kind: 'timer' })), ['set-timer']);
    assertEquals(kinds(desk.grant(1)), ['set-timer']);
    desk.pass(5_000);
    assert(desk.held, 'renewed from the start of the renewal');
    desk.pass(900);
    assert(!desk.held);
  });

  test('R81: a failed renewal is repeated, later each time, and never after the term', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    let tries = 0;
    let lost: HolderEffect | undefined;
    while (lost === undefined) {
      const effects = desk.answer({ kind: 'error', why: 'down' });
      const timer = effects.find((effect) => effect.kind === 'set-timer');
      assert(timer !== undefined);
      desk.pass(timer.ms);
      const next = desk.feed({ kind: 'timer' });
      lost = next.find((effect) => effect.kind === 'lost');
      tries += 1;
      assert(tries < 50);
    }
    assert(tries >= 8, `${tries} tries`);
    assert(desk.now >= 9_900 && desk.now < 9_902, `lost at ${desk.now}`);
    assert(lost.kind === 'lost' && lost.why.includes('(down)'), 'and why is told');
    assertEquals([desk.state.request, desk.state.trouble], [undefined, undefined]);
    assertEquals(desk.feed({ kind: 'timer' }), []);
  });

  test('FB-040: whenever an outage ends, the next try comes before half of what is left of the term is over', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    for (let tries = 0; tries < 100; tries += 1) {
      const timer = desk.answer({ kind: 'error', why: 'down' }).find((effect) => effect.kind === 'set-timer');
      const left = desk.state.term!.deadline - desk.now;
      if (left < 400) return;
      assert(timer!.ms >= 200 && timer!.ms <= left / 2, `${timer!.ms} of ${left}`);
      desk.pass(timer!.ms);
      desk.feed({ kind: 'timer' });
    }
    assert(false, 'it came to the end of the term');
  });

  test('a wait that the backend asks for is kept where the term allows it', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    const wait = (retryInMs: number) => {
      const copy = new Desk();
      Object.assign(copy, { state: desk.state, now: desk.now, wall: desk.wall });
      const timer = copy.answer({ kind: 'error', why: 'busy', retryInMs }).find((effect) =>
        effect.kind === 'set-timer'
      );
      return timer?.ms;
    };
    assertEquals(wait(2_000), 2_000);
    assertEquals(wait(6_000), 200);
  });

  test('rule 16: wall time that ran ahead ends it, and so does a clock set back, which could hide a suspend', () => {
    const slept = Desk.held();
    slept.wall += 60_000;
    assert(!slept.held);
    const [, lost] = slept.feed({ kind: 'check' });
    assert(lost?.kind === 'lost' && lost.why.includes('suspended'));
    const back = Desk.held();
    back.wall -= 3_600_000;
    assert(!back.held);
    const [, set] = back.feed({ kind: 'check' });
    assert(set?.kind === 'lost' && set.why.includes('clock was set'));
    const short = Desk.held();
    short.wall += 101;
    assert(!short.held, 'beyond the drift bound');
    short.wall -= 1;
    assert(short.held);
  });

  test('R75: lost once, and a late answer brings nothing back', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    desk.pass(6_566);
    assertEquals(kinds(desk.feed({ kind: 'check' })), ['clear-timer', 'lost']);
    assertEquals(desk.feed({ kind: 'check' }), []);
    assertEquals(desk.grant(1), []);
    assert(!desk.held);
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['clear-timer', 'send release']);
  });

  test('R81: another holder on renewal ends it at once', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    const effects = desk.answer({ kind: 'held', by: 'b' });
    assertEquals(kinds(effects), ['clear-timer', 'lost']);
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['released'], 'nothing to give back');
  });

  test('R65: released while the request is on its way: the answer is awaited, then it goes back', () => {
    const desk = new Desk();
    desk.feed({ kind: 'acquire' });
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['not-acquired', 'clear-timer']);
    assertEquals(kinds(desk.grant(5)), ['send release']);
    assertEquals(kinds(desk.answer({ kind: 'released' })), ['released']);
  });

  test('R76: a release waits for a renewal on its way, is tried three times, and ends the renewals', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['clear-timer']);
    assert(!desk.held);
    assertEquals(kinds(desk.grant(1)), ['send release']);
    for (let again = 0; again < 2; again += 1) {
      assertEquals(kinds(desk.answer({ kind: 'error', why: 'down' })), ['set-timer']);
      assertEquals(kinds(desk.feed({ kind: 'timer' })), ['send release']);
    }
    assertEquals(kinds(desk.answer({ kind: 'error', why: 'down' })), ['not-released']);
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['clear-timer', 'send release'], 'it may be tried again');
  });

  test('an acquire during a release follows it; a release takes it back', () => {
    const desk = Desk.held();
    desk.feed({ kind: 'release' });
    assertEquals(desk.feed({ kind: 'acquire' }), []);
    assertEquals(kinds(desk.answer({ kind: 'released' })), ['released', 'send acquire']);
    desk.grant(2);
    desk.feed({ kind: 'release' });
    desk.feed({ kind: 'acquire' });
    assertEquals(kinds(desk.feed({ kind: 'release' })), ['not-acquired']);
    assertEquals(kinds(desk.answer({ kind: 'released' })), ['released']);
  });

  test('after a loss a new tenure is asked for only when the last renewal has been answered', () => {
    const desk = Desk.held();
    desk.pass(3_334);
    desk.feed({ kind: 'timer' });
    desk.pass(6_600);
    desk.feed({ kind: 'check' });
    assertEquals(desk.feed({ kind: 'acquire' }), []);
    assertEquals(kinds(desk.answer({ kind: 'error', why: 'timeout' })), ['send acquire']);
    assertEquals(kinds(desk.grant(2)), ['acquired', 'set-timer']);
  });

  test('answers to requests of before are ignored', () => {
    const desk = Desk.held();
    assertEquals(desk.feed({ kind: 'answer', id: 1, answer: { kind: 'held' } }), []);
    assert(desk.held);
  });

  test('abandoned: nothing is sent any more, waiters are told', () => {
    const desk = new Desk();
    desk.feed({ kind: 'acquire' });
    assertEquals(kinds(desk.feed({ kind: 'abandon' })), ['clear-timer', 'cancel', 'not-acquired']);
    const held = Desk.held();
    assertEquals(kinds(held.feed({ kind: 'abandon' })), ['clear-timer']);
    assert(!held.held);
    assertEquals(held.feed({ kind: 'timer' }), []);
  });
});
