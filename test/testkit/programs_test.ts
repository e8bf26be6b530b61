import { assertEquals, assertThrows } from '@std/assert';
import { describe, test } from 'node:test';
import { profileNames } from '../../src/testkit/profiles.ts';
import { programNamed, programNames } from '../../src/testkit/programs.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { simulate } from '../../src/testkit/simulate.ts';

describe('programs', () => {
  test('are found by name', () => {
    for (const name of programNames()) assertEquals(programNamed(name).name, name);
    assertThrows(() => programNamed('other'), RangeError, 'program other is unknown; there are singletons');
  });

  for (const profile of ['calm', 'scale', 'leave', 'crash', 'partition', 'pause', 'lease', 'mixed']) {
    for (const name of ['singletons', 'callers', 'spawn', 'membership']) {
      test(`S1–S5: ${name} keep every rule in profile ${profile}, and a seed means one run`, async () => {
        const options = { seed: 21, program: programNamed(name), profile, until: 30_000 };
        const first = await simulate(options);
        assertEquals(first.failure, undefined, formatReport(first));
        const again = await simulate(options);
        assertEquals(again.hash, first.hash);
      });
    }
  }

  for (const profile of profileNames()) {
    test(`promises are drained where some settle, and nothing is different for it: ${profile}`, async () => {
      const options = { seed: 5, program: programNamed('singletons'), profile, until: 8_000 };
      const tracked = await simulate(options);
      assertEquals((await simulate({ ...options, drain: 'always' })).hash, tracked.hash);
    });
  }

  test('messages are told, handled and accounted for', async () => {
    const { statistics } = await simulate({ seed: 3, program: programNamed('singletons'), profile: 'rolling' });
    const { told = 0, processed = 0, deadLettered = 0, instances = 0 } = statistics;
    assertEquals(told > 500, true);
    assertEquals(instances > 5, true);
    assertEquals(processed + deadLettered >= told, true);
  });
});
