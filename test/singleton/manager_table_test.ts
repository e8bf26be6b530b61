import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { initialManager, manage } from '../../src/singleton/manager.ts';
import { document, table } from './manager_table.ts';
import { viewOf } from './manager_world.ts';

test('every event is legal in every state, and the documented table is what the manager does', async () => {
  const cells = table();
  assertEquals(cells.length, 9 * 29);
  const committed = await readFile(new URL('../../docs/manager_states.md', import.meta.url), 'utf8');
  assertEquals(committed, document(), 'run npm run docs:manager');
});

test('only a member that may be the next host is obeyed, in every state', () => {
  for (const { phase, event, effects } of table()) {
    if (event === 'request, younger member' || event === 'request, stranger') {
      assert(!effects.includes('stop-instance'), `${phase}: ${event}`);
      assert(!effects.includes('answer handed-over'), `${phase}: ${event}`);
    }
    if (event.startsWith('request')) {
      assertEquals(effects.filter((effect) => effect.startsWith('answer')).length, 1, `${phase}: ${event} is answered`);
    }
  }
});

test('an instance starts only from an attempt, a lease or a restart, never from a message alone', () => {
  for (const { phase, event, effects } of table()) {
    if (!effects.includes('start-instance')) continue;
    assert(['becoming-host', 'acquiring-lease', 'hosting', 'was-host'].includes(phase), `${phase}: ${event}`);
  }
});

test('S7: an absurd epoch from a member is not taken up', () => {
  const state = { ...initialManager('x', 'b', 'b:1'), epochSeen: 5 };
  const asker = { uid: 'a', address: 'a:1', nonce: 'a/1' };
  const after = (epoch: number) =>
    manage(state, { kind: 'request', asker, epoch }, viewOf([], 'b'), 0, 1_000).state.epochSeen;
  assertEquals([after(6), after(2 ** 53 - 1)], [6, 5]);
});
