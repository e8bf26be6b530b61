import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import {
  checkHandOverTimeout,
  crashFailoverMs,
  decisionMs,
  describeTiming,
  handOverTimeoutMs,
  removalMs,
  resolveTiming,
  stableAfterMs,
  type TimingOptions,
} from '../../src/cluster/timing.ts';

const sizes = [1, 2, 3, 5, 6, 10, 11, 20, 21, 50, 51, 100, 101, 1_000];

describe('timing', () => {
  test('R93 R96: the defaults', () => {
    const timing = resolveTiming();
    assertEquals(describeTiming(timing, 3), {
      heartbeatMs: 500,
      detectionMs: 2_000,
      stableAfterMs: 3_000,
      decisionMs: 5_250,
      gateWindowMs: 1_500,
      stopBoundMs: 1_000,
      driftBound: 2e-4,
      removalMarginMs: 2_601,
      handOverTimeoutMs: 10_000,
      crashFailoverMs: 7_601,
    });
    assert(timing.removalMarginMs <= 2_700);
    assert(timing.gatePingMs * 3 < timing.gateWindowMs, 'a lost ping does not close the gate');
    assert(Object.isFrozen(timing));
  });

  test('R142: a crash across machines is over within 10 s', () => {
    for (const size of [1, 2, 3, 5]) assert(crashFailoverMs(resolveTiming(), size) < 10_000);
  });

  test('R93: stableAfter grows with the cluster', () => {
    const timing = resolveTiming();
    assertEquals(sizes.map((size) => stableAfterMs(timing, size)), [
      ...[3_000, 3_000, 3_000, 3_000, 4_000, 4_000, 5_000, 5_000],
      ...[6_500, 6_500, 8_000, 8_000, 10_000, 10_000],
    ]);
    assertEquals(stableAfterMs(resolveTiming({ stableAfterMs: 1_000 }), 100), 1_000);
  });

  test('rule 1: both inequalities hold at every size, whatever accepted options are given', () => {
    const some: TimingOptions[] = [
      {},
      { handOverTimeoutMs: 9_900 },
      { handOverTimeoutMs: 15_000 },
      { handOverTimeoutMs: 60_000 },
      { stableAfterMs: 1_000, handOverTimeoutMs: 7_000 },
      { stableAfterMs: 12_000 },
      { heartbeatMs: 50, unreachableAfterMs: 200, stableAfterMs: 100, gateWindowMs: 100, stopBoundMs: 50 },
      { gateWindowMs: 3_000, stopBoundMs: 5_000, driftBound: 0.01 },
    ];
    for (const options of some) {
      const timing = resolveTiming(options);
      for (const size of sizes) {
        const needed = timing.detectionMs + 1.75 * stableAfterMs(timing, size) + timing.removalMarginMs;
        assertEquals(removalMs(timing, size), timing.detectionMs + decisionMs(timing, size) + timing.removalMarginMs);
        assert(handOverTimeoutMs(timing, size) > needed, `${JSON.stringify(options)} at ${size}`);
      }
      const { gateWindowMs, stopBoundMs, driftBound, removalMarginMs } = timing;
      assert(removalMarginMs >= (gateWindowMs + stopBoundMs) * (1 + 2 * driftBound) - 1e-3);
    }
  });

  test('rule 1: a hand-over timeout that is too short is refused with the inequality and its numbers', () => {
    const error = assertThrows(() => resolveTiming({ handOverTimeoutMs: 9_851 }), OptionsError);
    assertEquals([error.family, error.field, error.value], ['ClusterOptions', 'handOverTimeoutMs', 9_851]);
    assertStringIncludes(error.message, 'handOverTimeout > detection + 1.75 · stableAfter + M');
    assertStringIncludes(error.message, '9851 > 2000 + 1.75 · 3000 + 2601 = 9851 (ms) is false');
    assertEquals(handOverTimeoutMs(resolveTiming({ handOverTimeoutMs: 9_852 }), 3), 9_852);
  });

  test('rule 1: so is a stableAfter that is too long for it', () => {
    assertThrows(() => resolveTiming({ handOverTimeoutMs: 10_000, stableAfterMs: 4_000 }), OptionsError, '1.75 · 4000');
  });

  test("rule 1: one singleton's own hand-over timeout is held against the same inequality", () => {
    const timing = resolveTiming();
    checkHandOverTimeout(timing, 'StartSingletonOptions', 'handOverTimeoutMs', 10_000);
    const error = assertThrows(
      () => checkHandOverTimeout(timing, 'StartSingletonOptions', 'handOverTimeoutMs', 10_000, 50),
      OptionsError,
    );
    assertEquals(error.family, 'StartSingletonOptions');
    assertStringIncludes(error.message, '1.75 · 6500');
  });

  test('rule 2: a margin that is too small is refused with the inequality and its numbers', () => {
    const error = assertThrows(() => resolveTiming({ removalMarginMs: 2_500 }), OptionsError);
    assertEquals([error.field, error.value], ['removalMarginMs', 2_500]);
    assertStringIncludes(error.message, '2500 ≥ (1500 + 1000) · (1 + 2 · 0.0002) = 2501 (ms) is false');
    assertEquals(resolveTiming({ removalMarginMs: 2_501 }).removalMarginMs, 2_501);
  });

  test('R96: thresholds are validated', () => {
    assertThrows(
      () => resolveTiming({ heartbeatMs: 1_001, unreachableAfterMs: 2_000 }),
      OptionsError,
      'two heartbeats',
    );
    assertEquals(resolveTiming({ heartbeatMs: 3_000 }).unreachableAfterMs, 6_000);
  });

  test('FB-131: numbers that are none are refused, field by field', () => {
    const fields = [
      ...['heartbeatMs', 'unreachableAfterMs', 'stableAfterMs', 'handOverTimeoutMs'],
      ...['gateWindowMs', 'stopBoundMs', 'removalMarginMs', 'driftBound'],
    ];
    for (const field of fields) {
      for (const value of [NaN, -1, Infinity, 2 ** 31, '5', null]) {
        const error = assertThrows(() => resolveTiming({ [field]: value }), OptionsError);
        assertEquals(error.field, field);
      }
    }
  });
});
