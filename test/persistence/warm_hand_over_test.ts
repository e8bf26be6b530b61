import { describe, test } from 'node:test';
import { assertEquals, assertMatch, assertThrows } from '@std/assert';
import { isWarm } from '../../src/singleton/warm_hand_over.ts';
import { MemoryJournal, type StoredEvent } from '../../src/persistence/mod.ts';
import { encode } from '../../src/wire/codec.ts';
import { Account, World } from './account_fixture.ts';

class CountingJournal extends MemoryJournal {
  readonly read_: string[] = [];

  override read(id: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    this.read_.push(`${fromSeq}-${toSeq}`);
    return super.read(id, fromSeq, toSeq);
  }
}

/** Spawns as the host of a singleton does, and gives what it hands over in the end. */
function host(world: World, epoch: number, warm: Uint8Array | null) {
  const handedOver: (Uint8Array | null)[] = [];
  const ref = world.system.spawnSystem(['account'], () => new Account(), {
    epoch,
    hooks: {
      constructed: (actor, restart) => {
        if (!restart && warm !== null && isWarm(actor)) actor.restoreFromHandOver(warm);
      },
      stopped: (actor) => void (isWarm(actor) && handedOver.push(actor.serializeForHandOver())),
    },
  });
  return {
    ref,
    add: (...amounts: number[]) => world.settled(ref.ask({ kind: 'add', amounts })),
    stop: async () => {
      ref.stop();
      await world.env.settle();
      return handedOver[0] ?? null;
    },
  };
}

function world(journal = new CountingJournal()) {
  const made = new World({ journal });
  made.system.extensions.set('writer-identity', () => ({ uid: 'n', clusterId: 'c' }));
  return { journal, world: made };
}

describe('warm hand-over of a persistent singleton', () => {
  test('R49: starts with the state handed over and replays nothing', async () => {
    const { journal, world: first } = world();
    const before = host(first, 1, null);
    await before.add(1, 2, 3);
    const state = await before.stop();
    const { world: second } = world(journal);
    journal.read_.length = 0;
    const after = host(second, 2, state);
    assertEquals(await after.add(4), { total: 10, count: 4 });
    assertEquals(journal.read_, []);
  });

  test('R49: what the journal has beyond it is replayed', async () => {
    const { journal, world: first } = world();
    const before = host(first, 1, null);
    await before.add(1, 2, 3);
    const state = await before.stop();
    const between = host(first, 2, null);
    await between.add(10);
    await between.stop();
    const { world: second } = world(journal);
    journal.read_.length = 0;
    const after = host(second, 3, state);
    assertEquals(await after.add(100), { total: 116, count: 5 });
    assertEquals(journal.read_, ['4-4']);
  });

  test('R49: a state ahead of the journal, or behind what was deleted, is a cold start', async () => {
    const { journal, world: first } = world();
    const before = host(first, 1, null);
    await before.add(1, 2, 3);
    const state = await before.stop();
    const { world: empty } = world(new CountingJournal());
    assertEquals(await host(empty, 2, state).add(5), { total: 5, count: 1 });
    assertMatch(empty.env.logsAt('warn').join(), /does not fit the journal/);

    const again = host(first, 2, null);
    await again.add(4);
    await journal.delete('account', 4);
    await again.stop();
    const { world: second } = world(journal);
    const after = host(second, 3, state);
    assertEquals(await after.add(7), { total: 7, count: 1 });
  });

  test('the state of another actor, or garbage, is refused', () => {
    const { world: first } = world();
    let error: unknown;
    first.system.spawnSystem(['account'], () => new Account(), {
      hooks: {
        constructed: (actor) => {
          const account = actor as Account;
          assertThrows(() => account.restoreFromHandOver(new Uint8Array([1, 2, 3])));
          assertThrows(() => account.restoreFromHandOver(encode([9])), TypeError, 'no state');
          assertThrows(() => account.restoreFromHandOver(encode([1, 'other', 1, 0, {}])), TypeError, "'other'");
          try {
            account.restoreFromHandOver(encode([1, 'account', -1, 0, {}]));
          } catch (thrown) {
            error = thrown;
          }
        },
      },
    });
    first.env.runTurns();
    assertMatch(String(error), /sequence number/);
  });

  test('an actor that has not recovered, or cannot be encoded, hands over nothing', async () => {
    const { world: first } = world(Object.assign(new CountingJournal(), { claim: () => new Promise(() => {}) }));
    const stuck = host(first, 1, null);
    await first.env.settle();
    stuck.ref.kill();
    assertEquals(await stuck.stop(), null);
    class Odd extends Account {
      override initialState() {
        return { total: 0, count: 0, f: () => {} };
      }
    }
    const { world: second } = world();
    const odd: (Uint8Array | null)[] = [];
    const ref = second.system.spawnSystem(['account'], () => new Odd(), {
      hooks: { stopped: (actor) => void odd.push((actor as Odd).serializeForHandOver()) },
    });
    await second.env.settle();
    ref.stop();
    await second.env.settle();
    assertEquals(odd, [null]);
  });
});
