import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEffect, ManagerEvent, ManagerState } from '../../src/singleton/manager_state.ts';
import { member, viewOf } from './manager_world.ts';

const record = { generation: 1, role: undefined };
const started = new Map([['x', record]]);
const config = { ...defaultManagerConfig, lease: true, acquireRetryIntervalMs: 2_000 };

/** The manager of the only member. */
class Desk {
  state: ManagerState = initialManager('x', 'a', 'a:1');
  view = viewOf([member('a', { upNumber: 1, started })], 'a');
  now = 0;
  readonly effects: ManagerEffect[] = [];

  feed(event: ManagerEvent): string[] {
    const step = manage(this.state, event, this.view, this.now, 0);
    this.state = step.state;
    this.effects.push(...step.effects);
    return step.effects.map((effect) => effect.kind).filter((kind) => kind !== 'log' && kind !== 'clear-timer');
  }
  start(): string[] {
    return this.feed({ kind: 'start', record, config });
  }
  ended(cause: 'planned' | 'died' = 'planned'): string[] {
    const { phase } = this.state;
    const epoch = 'epoch' in phase ? phase.epoch : 0;
    return this.feed({ kind: 'instance-ended', epoch, cause, watermarks: [], state: null });
  }
  static running(token = 7): Desk {
    const desk = new Desk();
    desk.start();
    desk.feed({ kind: 'lease-granted', token });
    desk.feed({ kind: 'instance-started', epoch: token });
    return desk;
  }
  get last(): ManagerEffect | undefined {
    return this.effects.at(-1);
  }
}

describe('the manager with a lease', () => {
  test('N10, P31: nothing starts while the lease is pending; it starts on the grant, under its token', () => {
    const desk = new Desk();
    assertEquals(desk.start(), ['acquire-lease']);
    for (let look = 0; look < 5; look += 1) assertEquals(desk.feed({ kind: 'view' }), []);
    assertEquals(desk.feed({ kind: 'lease-granted', token: 7 }), ['start-instance']);
    assert(desk.last?.kind === 'start-instance' && desk.last.epoch === 7);
  });

  test('N10, P32, P33: denied, nothing starts; it is asked again at the expected expiry, and then starts', () => {
    const desk = new Desk();
    desk.start();
    assertEquals(desk.feed({ kind: 'lease-denied', retryInMs: 900, why: 'held' }), ['set-timer']);
    assert(desk.last?.kind === 'set-timer' && desk.last.ms === 900);
    assertEquals(desk.feed({ kind: 'view' }), []);
    assertEquals(desk.feed({ kind: 'timer', timer: 'acquire' }), ['set-timer', 'set-timer', 'acquire-lease']);
    assertEquals(desk.feed({ kind: 'lease-granted', token: 8 }), ['start-instance']);
  });

  test('R64: it is asked again after acquireRetryIntervalMs at the latest', () => {
    const desk = new Desk();
    desk.start();
    desk.feed({ kind: 'lease-denied', retryInMs: 60_000, why: 'held' });
    assert(desk.last?.kind === 'set-timer' && desk.last.ms === 2_000);
  });

  test('where an instance has ended in order elsewhere, its lease is asked for again soon, and then less and less often', () => {
    const desk = new Desk();
    desk.view = viewOf([member('a', { upNumber: 1, started }), member('b', { upNumber: 2, started })], 'a');
    desk.start();
    const asked = desk.effects.find((effect) => effect.kind === 'request');
    assert(asked?.kind === 'request');
    const result = { epoch: 6, plannedSince: 6, from: 'b:2', watermarks: [], state: null, endedAt: 0 };
    const verdict = { kind: 'handed-over', result: { ...result, offeredTo: [], givenUp: [] } } as const;
    const answered = desk.feed({
      kind: 'answer',
      uid: 'b',
      nonce: asked.nonce,
      epochSeen: 6,
      epochStarted: 6,
      verdict,
    });
    assert(answered.includes('acquire-lease'));
    const waits: number[] = [];
    for (let denial = 0; denial < 9; denial += 1) {
      desk.feed({ kind: 'lease-denied', retryInMs: 1_500, why: 'b holds it' });
      assert(desk.last?.kind === 'set-timer' && desk.last.timer === 'acquire');
      waits.push(desk.last.ms);
      assert(desk.feed({ kind: 'timer', timer: 'acquire' }).includes('acquire-lease'));
    }
    assertEquals(waits, [20, 40, 80, 160, 320, 640, 1_280, 1_500, 1_500]);
    assertEquals(desk.feed({ kind: 'lease-granted', token: 7, previous: 6 }), ['start-instance']);
    assert(desk.last?.kind === 'start-instance' && desk.last.report.reason === 'planned');
  });

  test('N10, P34, P35: an error counts like a denial, and is retried', () => {
    const desk = new Desk();
    desk.start();
    desk.feed({ kind: 'lease-denied', retryInMs: 2_000, why: 'the backend gave no answer' });
    assertEquals(desk.state.phase.kind, 'acquiring-lease');
    desk.feed({ kind: 'timer', timer: 'acquire' });
    assertEquals(desk.feed({ kind: 'lease-granted', token: 3 }), ['start-instance']);
  });

  test('N10, P36, R66, A8: lost: it stops, and only when it has ended it is released and asked for anew', () => {
    const desk = Desk.running();
    assertEquals(desk.feed({ kind: 'lease-lost', why: 'expired' }), ['set-timer', 'stop-instance']);
    assertEquals(desk.feed({ kind: 'lease-lost', why: 'again' }), []);
    const effects = desk.ended();
    assertEquals(effects.filter((kind) => kind.endsWith('lease')), ['release-lease', 'acquire-lease']);
    assertEquals(desk.feed({ kind: 'lease-granted', token: 9, previous: 7 }), ['start-instance']);
  });

  test('what an instance left is used only if no other tenure lay in between', () => {
    for (const previous of [7, 8, undefined]) {
      const desk = Desk.running(7);
      desk.feed({ kind: 'lease-lost', why: 'expired' });
      desk.ended();
      desk.feed({ kind: 'lease-granted', token: 9, ...(previous === undefined ? {} : { previous }) });
      assert(desk.last?.kind === 'start-instance');
      assertEquals(desk.last.report.reason, previous === 7 ? 'planned' : 'crash', String(previous));
      assertEquals(desk.last.plannedSince, previous === 7 ? 7 : 9);
    }
  });

  test('N10, P20, P37, R67, R68, A7: leave and stop release it, after the instance has ended', () => {
    for (const kind of ['leave', 'stop'] as const) {
      const desk = Desk.running();
      assertEquals(desk.feed({ kind }).filter((effect) => effect.endsWith('lease')), [], kind);
      assert(desk.ended().includes('release-lease'), kind);
      assertEquals(desk.feed({ kind: 'view' }), []);
    }
  });

  test('R65: a grant that is not wanted any more goes back', () => {
    const desk = new Desk();
    desk.start();
    assert(desk.feed({ kind: 'stop' }).includes('release-lease'));
    assertEquals(desk.feed({ kind: 'lease-granted', token: 4 }), ['release-lease']);
  });

  test('R61: with restartOnTermination: false an end releases it for good', () => {
    const desk = new Desk();
    desk.feed({ kind: 'start', record, config: { ...config, restartOnTermination: false } });
    desk.feed({ kind: 'lease-granted', token: 4 });
    assertEquals(desk.ended('died'), ['release-lease']);
    assertEquals(desk.feed({ kind: 'view' }), []);
  });

  test('S5: a token that is not above what ran before starts nothing', () => {
    const desk = new Desk();
    desk.start();
    desk.feed({ kind: 'hosted-elsewhere', address: 'b:1', epoch: 10 });
    assertEquals(desk.feed({ kind: 'lease-granted', token: 10 }), ['release-lease', 'set-timer']);
    const back = desk.effects.findLast((effect) => effect.kind === 'release-lease');
    assert(back?.kind === 'release-lease' && back.useless?.includes('not above 10'));
    desk.feed({ kind: 'timer', timer: 'acquire' });
    assertEquals(desk.last, { kind: 'acquire-lease', above: 10 });
    assertEquals(desk.feed({ kind: 'lease-granted', token: 11 }), ['start-instance']);
  });

  test('rule 9: with a lease nobody hosts beside a silent member', () => {
    const desk = new Desk();
    const silent = member('b', { upNumber: 2, reachable: false });
    desk.view = viewOf([member('a', { upNumber: 1, started }), silent], 'a');
    desk.start();
    assertEquals(desk.feed({ kind: 'timer', timer: 'hand-over-timeout' }).includes('acquire-lease'), false);
    assertEquals(desk.state.phase.kind, 'becoming-host');
  });
});
