import { test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import * as errors from '../../src/actor/errors.ts';

test('errors have fixed names and say what they are about', () => {
  const cases: readonly (readonly [error: Error, name: string, says: string])[] = [
    [new errors.ActorNameError('a/b', 'must not'), 'ActorNameError', '"a/b" must not'],
    [new errors.ActorAlreadyExistsError('/user/a', ' and is still stopping'), 'ActorAlreadyExistsError', '/user/a and'],
    [new errors.ActorStoppedError('/user/a', 'spawn'), 'ActorStoppedError', '/user/a cannot spawn'],
    [new errors.FencedError('no'), 'FencedError', 'no'],
    [new errors.AskTimeoutError('/user/a', 50), 'AskTimeoutError', '/user/a within 50 ms'],
    [new errors.UndeliveredError('/user/a', 'stopped', 'why'), 'UndeliveredError', 'stopped (why)'],
    [new errors.TooManyAsksError('/user/a', 3), 'TooManyAsksError', '3 asks'],
    [new errors.StartTimeoutError('/user/a', 9), 'StartTimeoutError', '9 ms'],
    [new errors.ActorUsageError('x'), 'ActorUsageError', 'x'],
    [new errors.SystemTerminatedError('s', 'spawn'), 'SystemTerminatedError', "'s'"],
    [new errors.NoClusterError('s'), 'NoClusterError', 'Cluster.join'],
  ];
  for (const [error, name, says] of cases) {
    assert(error instanceof Error);
    assertEquals(error.name, name);
    assertStringIncludes(error.message, says);
  }
});
