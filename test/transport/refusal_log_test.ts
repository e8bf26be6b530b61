import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { RefusalLog } from '../../src/transport/refusal_log.ts';
import { localEnvironment } from './local_environment.ts';

test('a stranger who keeps connecting cannot fill the log', () => {
  let now = 0;
  const environment = { ...localEnvironment(), clock: { now: () => now, wall: () => 0 } };
  const log = new RefusalLog(environment);
  const failure = { reason: 'rejected', code: 'secret', detail: 'd' } as const;
  for (let i = 1; i <= 100; i++) log.refused(failure, i);
  assertEquals([environment.lines.length, environment.lines.at(-1)?.fields['silentForMs']], [20, 60_000]);
  now = 60_000;
  log.refused(failure, 101);
  assertEquals([environment.lines.length, environment.lines.at(-1)?.fields['total']], [21, 101]);
});
