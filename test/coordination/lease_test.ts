import { test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { resolveLease } from '../../src/coordination/lease.ts';

const good = { name: 'x', owner: 'a#1', ttlMs: 9_000 };

test('R73: the defaults follow from the term', () => {
  const config = resolveLease('L', good, 100);
  assertEquals([config.renewalIntervalMs, config.requestTimeoutMs, config.driftBound], [3_000, 4_500, 2e-4]);
  assertEquals(resolveLease('L', { ...good, ttlMs: 60_000 }, 100).requestTimeoutMs, 10_000);
  assertEquals(resolveLease('L', { ...good, ttlMs: 1_200 }, 500).renewalIntervalMs, 500);
  assertEquals(resolveLease('L', { ...good, ttlMs: 200 }, 500).renewalIntervalMs, 100);
});

test('R77, FB-131: bad settings end in one clear error', () => {
  const bad: [object, string][] = [
    [{ name: undefined }, 'L.name: is required'],
    [{ owner: '' }, 'L.owner: must be a non-empty string'],
    [{ ttlMs: undefined }, 'L.ttlMs: is required'],
    [{ ttlMs: 99 }, 'L.ttlMs: must be a number of milliseconds from 100'],
    [{ ttlMs: Infinity }, 'L.ttlMs'],
    [{ ttlMs: -1 }, 'L.ttlMs'],
    [{ ttlMs: 30 * 86_400_000 }, 'L.ttlMs'],
    [{ ttlMs: Number.NaN }, 'L.ttlMs'],
    [{ renewalIntervalMs: 4_501 }, 'L.renewalIntervalMs: must be at most half of ttlMs (9000)'],
    [{ driftBound: 0.2 }, 'L.driftBound'],
    [{ secert: 'psst' }, 'L.secert: is not an option; known are name, owner,'],
  ];
  for (const [change, message] of bad) {
    const error = assertThrows(() => resolveLease('L', { ...good, ...change }, 100), OptionsError, message);
    assert(!error.message.includes('psst') && error.value !== 'psst', 'it may be a secret');
  }
});
