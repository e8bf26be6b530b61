import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { costOf, RateBucket } from '../../src/callers/rate.ts';

test('a full bucket gives its burst, then what flows in', () => {
  const bucket = new RateBucket(100, 10, 0);
  for (let at = 0; at < 10; at += 1) assertEquals(bucket.take(1, 0), true);
  assertEquals(bucket.take(1, 0), false);
  assertEquals(bucket.waitMs(1, 0), 10);
  assertEquals(bucket.take(1, 9), false);
  assertEquals(bucket.take(1, 11), true);
  assertEquals(bucket.waitMs(5, 1_000), 0);
  assertEquals([bucket.take(10, 1_000), bucket.take(1, 1_000)], [true, false]);
});

test('what costs more than a burst takes a full one; a clock that goes back gives nothing', () => {
  const bucket = new RateBucket(10, 10, 1_000);
  assertEquals(bucket.take(1_000, 1_000), true);
  assertEquals(bucket.take(1, 0), false);
  assertEquals(bucket.waitMs(1_000, 0), 1_000);
});

test('says when it will be full', () => {
  const bucket = new RateBucket(100, 10, 0);
  for (let at = 0; at < 5; at += 1) bucket.take(1, 0);
  assertEquals([bucket.waitMs(Infinity, 0), bucket.waitMs(Infinity, 20), bucket.waitMs(Infinity, 90)], [50, 30, 0]);
});

test('each begun 4 KiB counts as one more', () => {
  assertEquals([0, 1, 4_095, 4_096, 262_144].map(costOf), [1, 1, 1, 2, 65]);
});
