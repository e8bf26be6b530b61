/** Who lives on when a lease decides, and what its options and durations must be. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertThrows } from '@std/assert';
import { OptionsError } from '../../../src/actor/options.ts';
import { consoleLogger } from '../../../src/mod.ts';
import type { ClaimOutcome } from '../../../src/cluster/downing/contract.ts';
import { claimantOf, LeaseMajority, type LeaseMajorityOptions } from '../../../src/cluster/downing/lease_majority.ts';
import { fingerprint, resolveClusterOptions } from '../../../src/cluster/resolved_cluster_options.ts';
import { handOverTimeoutMs, resolveTiming } from '../../../src/cluster/timing.ts';
import { MemoryLease, MemoryLeaseStore } from '../../../src/coordination/memory_lease.ts';
import { membersOf } from './members.ts';

const lease = MemoryLease.factory(new MemoryLeaseStore(), {});
const strategy = new LeaseMajority({ lease });

/** Who lives on when the sides' claims have come to `outcomes`, side by side. */
function survivors(
  members: string,
  split: string,
  outcomes: readonly (ClaimOutcome | undefined)[],
  broken = '',
): string {
  const all = membersOf(members);
  return split.split('|').flatMap((text, n) => {
    const side = [...text];
    const unreachable = new Set(all.map(({ uid }) => uid).filter((uid) => !side.includes(uid)));
    const indirectlyConnected = new Set([...broken].filter((uid) => side.includes(uid)));
    const claim = outcomes[n];
    // A grant is acted on by the claimant, whose decision the others of its side hear; a loss is everybody's own.
    const situation = { members: all, unreachable, indirectlyConnected, claim };
    const claimant = claimantOf({ ...situation, selfUid: side[0]! });
    const out = new Set(
      side.flatMap((selfUid) =>
        claim === 'granted' && selfUid !== claimant ? [] : [...strategy.decide({ ...situation, selfUid })]
      ),
    );
    return side.filter((uid) => !out.has(uid));
  }).sort().join('');
}

describe('P59, R92: the side that has the lease', () => {
  const rows: readonly [string, string, string, readonly (ClaimOutcome | undefined)[], string, string?][] = [
    ['the majority is granted', 'A B C D E', 'ABC|DE', ['granted', 'lost'], 'ABC'],
    ['the single one is granted', 'A B C', 'A|BC', ['granted', 'lost'], 'A'],
    ['a denied majority and a granted minority', 'A B C D E', 'ABC|DE', ['lost', 'granted'], 'DE'],
    ['nobody is', 'A B C D E', 'ABC|DE', ['lost', 'lost'], ''],
    ['still pending: no decision', 'A B C D E', 'ABC|DE', [undefined, undefined], 'ABCDE'],
    ['three sides', 'A B C D E', 'AB|CD|E', ['lost', 'lost', 'granted'], 'E'],
    ['a tie', 'A B C D', 'BC|AD', ['granted', 'lost'], 'BC'],
    ['a broken pair inside of the side', 'A B C D E', 'ABC|DE', ['granted', 'lost'], 'A', 'BC'],
    ['a broken pair, no split', 'A B C', 'ABC', ['granted'], 'A', 'BC'],
    ['a broken pair of two: nobody would remain', 'A B', 'AB', ['granted'], 'AB', 'AB'],
    ['joiners go with their side', 'A B Cj Dj', 'AC|BD', ['lost', 'granted'], 'BD'],
    ['leaving ones may still be the ones to ask', 'Al B C', 'AB|C', ['granted', 'lost'], 'AB'],
  ];
  for (const [what, members, split, outcomes, expected, broken] of rows) {
    test(`${what}: ${members} as ${split}`, () => {
      assertEquals(survivors(members, split, outcomes, broken), expected);
    });
  }

  test('the oldest that counts and does not go anyway asks', () => {
    const asks = (members: string, lost: string, victims = '') =>
      claimantOf({
        members: membersOf(members),
        unreachable: new Set(lost),
        indirectlyConnected: new Set(victims),
        selfUid: 'A',
      });
    assertEquals(asks('A B C', 'C'), 'A');
    assertEquals(asks('A B C', 'A'), 'B');
    assertEquals(asks('A B C', 'C', 'A'), 'B');
    assertEquals(asks('Ad B C', 'C'), 'B');
    assertEquals(asks('Aj Bj', 'B'), undefined);
  });

  test('who leads asks first: never two sides, under any pending step', () => {
    const leads = (members: string, side: string, role?: string) =>
      new LeaseMajority({ lease, ...(role === undefined ? {} : { role }) }).arbiter.leads(
        membersOf(members),
        new Set(side),
      );
    assertEquals([leads('A B C', 'BC'), leads('A B C', 'A')], [true, false]);
    assertEquals([leads('A B', 'A'), leads('A B', 'B')], [true, false]);
    assertEquals([leads('A B C Dj Ej', 'AB'), leads('A B C Dj Ej', 'CDE')], [false, false]);
    assertEquals([leads('A@db B C D@db', 'BCD', 'db'), leads('A@db B C D@db', 'A', 'db')], [false, true]);
    assertEquals(leads('A B C', 'ABC', 'db'), false, 'nobody has the role: both sides wait');
  });

  test('without a claim only the whole may handle messages; whoever is down is out', () => {
    const keeps = (members: string, side: string) => strategy.keeps(membersOf(members), new Set(side));
    assertEquals([keeps('A B C', 'ABC'), keeps('A B C', 'AB'), keeps('A B Cd', 'AB'), keeps('A B Cj', 'AB')], [
      true,
      false,
      true,
      false,
    ]);
  });
});

describe('the options of LeaseMajority', () => {
  test('bad ones are refused with field and rule', () => {
    const bad: [Partial<LeaseMajorityOptions>, string][] = [
      [{ lease: undefined as never }, 'LeaseMajority.lease: must be given'],
      [{ lease: 'etcd' as never }, 'LeaseMajority.lease'],
      [{ minorityDelayMs: -1 }, 'LeaseMajority.minorityDelayMs'],
      [{ acquireTimeoutMs: 0 }, 'LeaseMajority.acquireTimeoutMs'],
      [{ leaseName: '' }, 'LeaseMajority.leaseName'],
      [{ role: '' }, 'LeaseMajority.role'],
      [{ releaseAfterMs: 1 } as never, 'LeaseMajority.releaseAfterMs'],
    ];
    for (const [change, message] of bad) {
      assertThrows(() => new LeaseMajority({ lease, ...change }), OptionsError, message);
    }
  });

  test('the lease outlasts the window of every other side, and an answer in time is one that counts', () => {
    for (
      const timing of [resolveTiming(), resolveTiming({ stableAfterMs: 500, driftBound: 0.01, gateWindowMs: 8_000 })]
    ) {
      const { windowMs, holdMs, ttlMs } = strategy.arbiter.times(timing);
      assertGreater(holdMs, windowMs * (1 + 2 * timing.driftBound));
      assert(ttlMs * (1 - timing.driftBound) >= holdMs + 5_000);
      assertGreater(
        windowMs,
        timing.gatePingMs + timing.detectionMs + 1.75 * (timing.fixedStableAfterMs ?? 10_000) + 10_000,
      );
    }
    assertEquals(strategy.arbiter.times(resolveTiming({ stableAfterMs: 3_000 })).ttlMs, 27_264);
  });

  test('a hand-over waits for the arbiter too, or the options are refused', () => {
    const options = (more: object) =>
      resolveClusterOptions({ downing: strategy, ...more }, { systemName: 's', log: consoleLogger('off') });
    const { timing } = options({});
    assertEquals(timing.arbitrationMs, 10_000);
    assertGreater(handOverTimeoutMs(timing, 5), 2_000 + 1.75 * 3_000 + 10_000 + timing.removalMarginMs);
    assertThrows(
      () => options({ handOverTimeoutMs: 12_000 }),
      OptionsError,
      'detection + 1.75 · stableAfter + arbitration + M',
    );
    const text = fingerprint(options({}));
    for (
      const part of ['downing=lease-majority', 'downing.minorityDelayMs=5000']
    ) {
      assert(text.includes(part), text);
    }
  });
});
