import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEvent, ManagerState, Verdict } from '../../src/singleton/manager_state.ts';
import { member, viewOf } from './manager_world.ts';

const record = { generation: 1, role: undefined };
const started = new Map([['x', record]]);
const view = viewOf([member('a', { upNumber: 1, started }), member('b', { upNumber: 2 })], 'a');

function step(state: ManagerState, event: ManagerEvent) {
  const { state: next, effects } = manage(state, event, view, 0, 1_000);
  const resend = effects.flatMap((effect) => effect.kind === 'set-timer' && effect.timer === 'resend' ? effect.ms : []);
  return { next, resend, asks: effects.filter((effect) => effect.kind === 'request').length };
}

function answer(state: ManagerState, verdict: Verdict): ManagerEvent {
  const nonce = state.phase.kind === 'becoming-host' ? state.phase.attempt.nonce : '';
  return { kind: 'answer', uid: 'b', nonce, epochSeen: 0, epochStarted: 0, verdict };
}

test('R28: a member that refuses, since it does not know of the move yet, is asked again after 10 ms, then less often', () => {
  let { next: state } = step(initialManager('x', 'a', 'a:1'), { kind: 'start', record, config: defaultManagerConfig });
  assertEquals(state.phase.kind, 'becoming-host');
  const waits: number[] = [];
  for (let round = 0; round < 7; round += 1) {
    const refused = step(state, answer(state, { kind: 'refused', why: 'this node hosts and comes first' }));
    waits.push(...refused.resend);
    const asked = step(refused.next, { kind: 'timer', timer: 'resend' });
    assertEquals(asked.asks, 1);
    state = asked.next;
  }
  assertEquals(waits, [10, 20, 40, 80, 160, 250, 250]);
  assertEquals(step(state, answer(state, { kind: 'stopping' })).resend, []);
});
