import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { authorize, sameToken } from '../../src/http/authorization.ts';

test('tokens are compared whole', async () => {
  assertEquals(await sameToken('secret', 'secret'), true);
  for (const other of ['', 'secre', 'secret ', 'Secret', 'secrets']) {
    assertEquals(await sameToken('secret', other), false, other);
  }
});

test('a header is granted, missing, wrong, or of no use', async () => {
  assertEquals(await authorize('Bearer secret', 'secret'), 'granted');
  assertEquals(await authorize('bearer  secret', 'secret'), 'granted');
  assertEquals(await authorize(undefined, 'secret'), 'missing');
  assertEquals(await authorize('Bearer a b', 'secret'), 'missing');
  assertEquals(await authorize(`Bearer ${'x'.repeat(5_000)}`, 'secret'), 'missing');
  assertEquals(await authorize('Bearer other', 'secret'), 'wrong');
  assertEquals(await authorize('Bearer ', ''), 'not-configured');
  assertEquals(await authorize('Bearer undefined', undefined), 'not-configured');
});
