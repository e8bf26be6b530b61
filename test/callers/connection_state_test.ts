import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import fc from 'fast-check';
import {
  type ConnectionEvent,
  type ConnectionState,
  initialConnection,
  stepConnection,
} from '../../src/callers/connection_state.ts';
import { limits } from '../../src/limits.ts';

const failure = { reason: 'refused', code: 'refused', detail: '' } as const;

function run(events: readonly ConnectionEvent[], urls = 3, chance = 0.999) {
  let state: ConnectionState = initialConnection;
  const effects: string[] = [];
  for (const event of events) {
    const step = stepConnection(state, event, urls, chance);
    state = step.state;
    for (const effect of step.effects) {
      effects.push(effect.kind === 'dial' || effect.kind === 'connected' ? `${effect.kind} ${effect.at}` : effect.kind);
    }
  }
  return { state, effects };
}

describe('when a caller connects', () => {
  test('one address after the other; a loss goes to the next at once', () => {
    const { effects, state } = run([
      { kind: 'start' },
      { kind: 'failed', failure },
      { kind: 'due' },
      { kind: 'welcome' },
      { kind: 'lost', why: 'x' },
      { kind: 'due' },
      { kind: 'welcome' },
    ]);
    assertEquals(effects, [
      'dial 0',
      'refused',
      'wait',
      'dial 1',
      'connected 1',
      'hang-up',
      'disconnected',
      'wait',
      'dial 2',
      'connected 2',
    ]);
    assertEquals(state, { kind: 'open', at: 2 });
  });

  test('waits grow by rounds of all addresses, have a bound, and are cut by chance', () => {
    let state: ConnectionState = { kind: 'dialling', at: 0, failures: 0 };
    const waits: number[] = [];
    for (let at = 0; at < 40; at += 1) {
      const step = stepConnection(state, { kind: 'failed', failure }, 2, 0.999);
      for (const effect of step.effects) if (effect.kind === 'wait') waits.push(effect.ms);
      state = stepConnection(step.state, { kind: 'due' }, 2, 0).state;
    }
    assertEquals(waits.slice(0, 6), [100, 200, 200, 400, 400, 800]);
    assert(Math.max(...waits) <= limits.callerRetryMaxMs && waits.at(-1)! > limits.callerRetryMaxMs - 10);
    const lucky = stepConnection({ kind: 'dialling', at: 0, failures: 20 }, { kind: 'failed', failure }, 2, 0);
    assertEquals(lucky.effects.at(-1), { kind: 'wait', ms: 0 });
  });

  test('closed is closed', () => {
    assertEquals(run([{ kind: 'start' }, { kind: 'close' }, { kind: 'due' }, { kind: 'welcome' }]).effects, [
      'dial 0',
      'hang-up',
    ]);
  });

  test('in any order of events: at most one attempt or connection, and never stuck', () => {
    const event = fc.constantFrom<ConnectionEvent>(
      { kind: 'start' },
      { kind: 'due' },
      { kind: 'welcome' },
      { kind: 'failed', failure },
      { kind: 'lost', why: '' },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (events, urls) => {
        let state: ConnectionState = initialConnection;
        let live = 0;
        let due = 1;
        for (const one of events) {
          if (one.kind === 'due' || one.kind === 'start') {
            if (due === 0) continue;
            due = 0;
          }
          const step = stepConnection(state, one, urls, 0.5);
          state = step.state;
          for (const effect of step.effects) {
            if (effect.kind === 'dial') live += 1;
            if (effect.kind === 'hang-up' || effect.kind === 'refused') live -= 1;
            if (effect.kind === 'wait') due += 1;
          }
          assert(live <= 1 && live >= 0 && due <= 1);
          assertEquals(state.kind === 'waiting', due === 1);
        }
      }),
      { seed: 3, numRuns: 500 },
    );
  });
});
