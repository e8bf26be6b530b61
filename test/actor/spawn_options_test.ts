import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { OptionsError, SupervisorStrategy } from '../../src/mod.ts';
import { type CellOptions, checkSpawnOptions } from '../../src/actor/spawn_options.ts';
import { acting, fixture } from './system_fixture.ts';

describe('spawn options', () => {
  const bad: readonly (readonly [object, family: string, field: string])[] = [
    [{ supervisor: 'restart' }, 'SpawnOptions', 'supervisor'],
    [{ mailbox: 5 }, 'SpawnOptions', 'mailbox'],
    [{ mailbox: { capacity: 0 } }, 'MailboxOptions', 'capacity'],
    [{ mailbox: { capacity: 1, overflow: 'fail' } }, 'MailboxOptions', 'overflow'],
    [{ mailbox: { overflow: 'drop-oldest' } }, 'MailboxOptions', 'capacity'],
    [{ mailbox: { size: 5 } }, 'MailboxOptions', 'size'],
    [{ stashCapacity: -1 }, 'SpawnOptions', 'stashCapacity'],
    [{ startTimeoutMs: 0 }, 'SpawnOptions', 'startTimeoutMs'],
    [{ epoch: -1 }, 'SpawnOptions', 'epoch'],
    [{ fenced: true }, 'SpawnOptions', 'fenced'],
    [{ supervisr: 1 }, 'SpawnOptions', 'supervisr'],
  ];
  for (const [options, family, field] of bad) {
    test(`${JSON.stringify(options)} is refused by family and field`, () => {
      const error = assertThrows(() => checkSpawnOptions(options as CellOptions), OptionsError);
      assertEquals([error.family, error.field], [family, field]);
    });
  }

  test('good ones pass, none is fine', () => {
    const options = { supervisor: SupervisorStrategy.oneForOne(), mailbox: { capacity: 5 }, epoch: 3 };
    assertEquals(checkSpawnOptions(options) === options, true);
    assertEquals(checkSpawnOptions(undefined), {});
  });

  test('bad options leave no actor behind', () => {
    const { system } = fixture();
    assertThrows(() => system.spawn(acting(() => {}), 'a', { stashCapacity: -1 }), OptionsError);
    assertEquals(system.resolve('/user/a'), undefined);
  });
});
