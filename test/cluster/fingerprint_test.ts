import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { differencesText } from '../../src/cluster/fingerprint.ts';

test('fingerprints: only what differs is told, and a stranger cannot flood the log with his', () => {
  assertEquals(differencesText('a=1; b=2', 'a=1; b=3'), 'b: 2 here, 3 there');
  for (const bad of [undefined, 7, 'x'.repeat(2_000), ['a=1']]) {
    assertEquals(differencesText('a=1', bad), 'the peer sent no fingerprint that can be read');
  }
  const long = differencesText('a=1', Array.from({ length: 100 }, (_, i) => `k${i}=${i}\n`).join('; '));
  assert(long.length <= 401 && !long.includes('\n'));
});
