import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import {
  type Directive,
  type Failure,
  judge,
  noRestarts,
  type RestartRecord,
  SupervisorStrategy,
} from '../../src/actor/supervision.ts';

const failure: Failure = { error: new Error('x'), started: true, top: false, healthyMs: 0 };

/** Judges failures at the given times, one after the other. */
function judgeAll(strategy: SupervisorStrategy, times: readonly number[], about: Failure = failure) {
  let record: RestartRecord = noRestarts;
  return times.map((now) => {
    const verdict = judge(strategy, record, about, now, 0);
    record = verdict.record;
    return verdict;
  });
}

describe('supervision', () => {
  test('the default restarts 10 times within 60 s, then stops', () => {
    const times = Array.from({ length: 11 }, (_, i) => i * 100);
    const verdicts = judgeAll(SupervisorStrategy.oneForOne(), times);
    assertEquals(
      verdicts.slice(0, 10).every(({ directive, delayMs }) => directive === 'restart' && delayMs === 0),
      true,
    );
    assertEquals(verdicts[10]?.directive, 'stop');
    assertStringIncludes(verdicts[10]?.why ?? '', '10 restarts within 60000 ms');
  });

  test('restarts leave the window as time goes by', () => {
    const strategy = SupervisorStrategy.oneForOne({ maxRestarts: 2, withinMs: 1_000 });
    const directives = judgeAll(strategy, [0, 500, 1_000, 1_200, 1_500]).map((verdict) => verdict.directive);
    assertEquals(directives, ['restart', 'restart', 'restart', 'stop', 'restart']);
  });

  test('no restarts allowed means stop at once; no bound means never', () => {
    assertEquals(judgeAll(SupervisorStrategy.oneForOne({ maxRestarts: 0 }), [0])[0]?.directive, 'stop');
    const endless = SupervisorStrategy.oneForOne({ maxRestarts: Infinity });
    const verdicts = judgeAll(endless, Array.from({ length: 3_000 }, (_, i) => i));
    assertEquals(verdicts.every(({ directive }) => directive === 'restart'), true);
    assertEquals((verdicts.at(-1)?.record.times.length ?? 0) < 2_000, true, 'the record stays bounded');
  });

  const chosen: readonly (readonly [Directive, Partial<Failure>, Directive])[] = [
    ['restart', {}, 'restart'],
    ['resume', {}, 'resume'],
    ['stop', {}, 'stop'],
    ['escalate', {}, 'escalate'],
    ['resume', { started: false }, 'restart'],
    ['escalate', { top: true }, 'stop'],
    ['escalate', { started: false }, 'escalate'],
  ];
  for (const [decided, about, expected] of chosen) {
    test(`'${decided}' of ${JSON.stringify(about)} becomes '${expected}'`, () => {
      const strategy = SupervisorStrategy.oneForOne({ decider: () => decided });
      const verdict = judge(strategy, noRestarts, { ...failure, ...about }, 0, 0);
      assertEquals(verdict.directive, expected);
      assertEquals(verdict.why === undefined, decided === expected);
    });
  }

  test('the decider sees the error', () => {
    const strategy = SupervisorStrategy.oneForOne({
      decider: (error) => error instanceof TypeError ? 'resume' : 'stop',
    });
    assertEquals(judge(strategy, noRestarts, { ...failure, error: new TypeError() }, 0, 0).directive, 'resume');
    assertEquals(judge(strategy, noRestarts, failure, 0, 0).directive, 'stop');
  });

  test('a decider that throws, or returns nonsense, stops the actor and says so', () => {
    const throwing = SupervisorStrategy.oneForOne({
      decider: () => {
        throw new Error('in the decider');
      },
    });
    const verdict = judge(throwing, noRestarts, failure, 0, 0);
    assertEquals(verdict.directive, 'stop');
    assertStringIncludes(verdict.why ?? '', 'in the decider');
    const odd = SupervisorStrategy.oneForOne({ decider: () => 'explode' as Directive });
    assertEquals(judge(odd, noRestarts, failure, 0, 0).directive, 'stop');
  });

  test('the wait doubles up to its maximum, with jitter on top', () => {
    const strategy = SupervisorStrategy.oneForOne({
      maxRestarts: 100,
      backoff: { minMs: 100, maxMs: 1_000, jitter: 0.5 },
    });
    const delays = judgeAll(strategy, [0, 1, 2, 3, 4, 5]).map((verdict) => verdict.delayMs);
    assertEquals(delays, [100, 200, 400, 800, 1_000, 1_000]);
    assertEquals(judge(strategy, noRestarts, failure, 0, 0.5).delayMs, 125);
  });

  test('the wait starts over after a window of health, and not before', () => {
    const strategy = SupervisorStrategy.oneForOne({
      withinMs: 1_000,
      backoff: { minMs: 100, maxMs: 10_000, jitter: 0 },
    });
    const record = { times: [], streak: 4 };
    assertEquals(judge(strategy, record, { ...failure, healthyMs: 999 }, 0, 0).delayMs, 1_600);
    assertEquals(judge(strategy, record, { ...failure, healthyMs: 1_000 }, 0, 0).delayMs, 100);
  });

  const bad: readonly (readonly [object, string])[] = [
    [{ maxRestarts: -1 }, 'maxRestarts'],
    [{ maxRestarts: 1.5 }, 'maxRestarts'],
    [{ withinMs: 0 }, 'withinMs'],
    [{ decider: 'restart' }, 'decider'],
    [{ backoff: { minMs: 10, maxMs: 5 } }, 'maxMs'],
    [{ backoff: { maxMs: 5 } }, 'minMs'],
    [{ backoff: { minMs: 1, maxMs: 5, jitter: 2 } }, 'jitter'],
    [{ unknown: 1 }, 'unknown'],
  ];
  for (const [options, field] of bad) {
    test(`${JSON.stringify(options)} is refused by field`, () => {
      const error = assertThrows(() => SupervisorStrategy.allForOne(options), OptionsError);
      assertEquals(error.field, field);
    });
  }

  test('scope', () => {
    assertEquals(SupervisorStrategy.oneForOne().scope, 'one-for-one');
    assertEquals(SupervisorStrategy.allForOne().scope, 'all-for-one');
  });
});
