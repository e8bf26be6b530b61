import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { initialPool, type PoolEvent, type PoolState, RatePool, stepPool } from '../../src/callers/rate_pool.ts';
import type { ResolvedGrant } from '../../src/cluster/caller_grants.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';

const rules = { max: 3, fullWithinMs: 100 };
const taken: PoolEvent = { kind: 'taken' };
const returned = (fullAt: number): PoolEvent => ({ kind: 'returned', fullAt });

describe('one step of a pool of three', () => {
  const table: readonly [
    what: string,
    before: PoolState,
    event: PoolEvent,
    now: number,
    after: PoolState,
    fullAt: number | undefined,
  ][] = [
    ['a new one is full', initialPool, taken, 5, { held: 1, fullAt: [] }, 5],
    ['a new one before one that is not full', { held: 1, fullAt: [9] }, taken, 5, { held: 2, fullAt: [9] }, 5],
    ['the fullest when none is new', { held: 1, fullAt: [7, 9] }, taken, 5, { held: 2, fullAt: [9] }, 7],
    ['one that is full by now is new', { held: 1, fullAt: [7, 9] }, taken, 7, { held: 2, fullAt: [9] }, 7],
    ['all are held', { held: 3, fullAt: [] }, taken, 5, { held: 3, fullAt: [] }, undefined],
    ['just full enough', { held: 2, fullAt: [105] }, taken, 5, { held: 3, fullAt: [] }, 105],
    ['too empty', { held: 2, fullAt: [106] }, taken, 5, { held: 2, fullAt: [106] }, undefined],
    ['it comes back', { held: 2, fullAt: [8] }, returned(7), 5, { held: 1, fullAt: [7, 8] }, undefined],
    ['it comes back full', { held: 2, fullAt: [8] }, returned(5), 5, { held: 1, fullAt: [8] }, undefined],
    ['it comes back, another is full', { held: 2, fullAt: [6] }, returned(9), 7, { held: 1, fullAt: [9] }, undefined],
  ];
  for (const [what, before, event, now, after, fullAt] of table) {
    test(what, () => {
      const step = stepPool(before, event, now, rules);
      assertEquals([step.state, step.fullAt], [after, fullAt]);
    });
  }
});

test('however connections come and go, a grant says no more than its buckets hold and what flows into them', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const random = seededRandom(seed);
    const max = 1 + Math.floor(random.next() * 4);
    const rate = 1 + Math.floor(random.next() * 100);
    const grant: ResolvedGrant = {
      name: 'g',
      tokens: [],
      singletons: undefined,
      tell: true,
      ask: true,
      messagesPerSecond: rate,
      maxCallers: max,
    };
    const pool = new RatePool(grant);
    const open: NonNullable<ReturnType<RatePool['take']>>[] = [];
    let said = 0;
    let now = 0;
    for (let at = 0; at < 2_000; at += 1) {
      now += random.next() * 20;
      const bucket = pool.take(now);
      if (bucket !== undefined) open.push(bucket);
      assert(open.length <= max);
      for (const one of open) {
        for (let burst = random.next() * 300; burst >= 1; burst -= 1) if (one.take(1, now)) said += 1;
      }
      if (open.length > 0 && random.next() < 0.8) {
        pool.giveBack(open.splice(Math.floor(random.next() * open.length), 1)[0]!, now);
      }
      assertEquals(pool.held, open.length);
      const bound = max * (rate * 2 + 1_000 + (now / 1_000) * rate * 2);
      assert(said <= bound + 1e-6, `seed ${seed}: ${said} of ${bound}`);
    }
    assert(said > max * 700, `seed ${seed}: ${said} is no load`);
  }
});

test('a caller that keeps to its rate is never without room, however often it connects', () => {
  const grant: ResolvedGrant = {
    name: 'g',
    tokens: [],
    singletons: undefined,
    tell: true,
    ask: true,
    messagesPerSecond: 100,
    maxCallers: 1,
  };
  const pool = new RatePool(grant);
  for (let now = 0; now < 60_000; now += 100) {
    const bucket = pool.take(now);
    assert(bucket !== undefined);
    // Ten messages, a hello, a use and an open.
    for (let at = 0; at < 13; at += 1) assert(bucket.take(1, now));
    pool.giveBack(bucket, now);
  }
});
