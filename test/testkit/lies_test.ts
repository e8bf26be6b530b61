/** Bad input from a member: refused where it is forged, of no effect where it is stale, and nobody is put out for it. */
import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import type { Fault } from '../../src/testkit/fault.ts';
import { lieKinds } from '../../src/testkit/lies.ts';
import { membershipProgram } from '../../src/testkit/membership_program.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { simulate } from '../../src/testkit/simulate.ts';

const harmless = ['stale', 'doubled'];

describe('lies', () => {
  for (const kind of lieKinds) {
    test(`${kind}: ${harmless.includes(kind) ? 'without effect' : 'refused'}`, async () => {
      const faults = ['n1', 'n2', 'n3'].map((node, index): Fault => {
        return { kind: 'call', at: 12_000 + 500 * index, node, action: 'lie', argument: kind };
      });
      const result = await simulate({
        seed: 3,
        nodes: 3,
        profile: 'lies',
        until: 5_000,
        faults,
        program: membershipProgram,
      });
      assertEquals(result.failure, undefined, formatReport(result));
      assertEquals(result.statistics['refused'], harmless.includes(kind) ? 0 : 3);
      assertEquals(result.statistics['promotions'], 3);
      assertEquals(result.settledAfterMs, 0);
    });
  }
});
