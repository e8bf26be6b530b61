import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { DeliveryHost } from '../../src/singleton/delivery_host.ts';
import { inOneLine } from '../../src/singleton/delivery_filter.ts';

test('an epoch is in a line of planned moves from its first to the present one, and no other is', () => {
  const line = { plannedSince: 5, epoch: 9 };
  assertEquals([4, 5, 7, 9, 10].map((epoch) => inOneLine(epoch, line)), [false, true, true, true, false]);
});

test('S3: what was sent to a later epoch than the present one has an unknown outcome, and is not sent again', () => {
  const host = new DeliveryHost({ deliver: () => {}, acknowledge: () => {}, resume: () => {}, wantsFlush: () => {} });
  host.begin(9, 5, []);
  const open = (stream: string, lastSentEpoch: number) =>
    host.open(stream, { name: 'x', base: 3, next: 7, lastSentEpoch, repeat: false })!;
  assertEquals([open('a', 10).verdict, open('a', 10).next], ['crash', 7]);
  assertEquals(open('b', 9).verdict, 'forgotten');
});
