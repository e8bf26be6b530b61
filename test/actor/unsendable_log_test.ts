import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { logUnsendable } from '../../src/actor/unsendable_log.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';

test('one budget for each node: twenty lines a minute, and the next says how many were left out', async () => {
  const [one, other] = [new ManualEnvironment(), new ManualEnvironment()];
  for (let n = 0; n < 30; n++) logUnsendable(one, 'cannot be sent', { n });
  logUnsendable(other, 'cannot be sent', { n: 0 });
  assertEquals([one.logged.length, other.logged.length], [20, 1]);
  assertEquals(one.logged.at(-1)?.fields, { n: 19, silentForMs: 60_000 });
  await one.elapse(60_000);
  logUnsendable(one, 'cannot be sent', { n: 30 });
  assertEquals(one.logged.at(-1), { level: 'error', message: 'cannot be sent', fields: { n: 30, leftOut: 10 } });
});
