import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import type { ClusterEntry } from '../../src/cluster/member.ts';
import { registrationValue, spawnKey } from '../../src/singleton/spawn_registration.ts';
import { SimulationError } from '../../src/testkit/sim_world.ts';
import { SpawnBooks } from '../../src/testkit/spawn_books.ts';
import { member, viewOf } from '../singleton/manager_world.ts';

const props = (name: string, kind = 'k') => ({ name, kind, role: undefined, mark: '' });
const names = ['n1', 'n2', 'n3', 'n4', 'n5'];
const members = names.map((uid, at) => member(uid, { upNumber: at + 1 }));

/** What a node knows that has these registrations; `null` is one that was removed. */
function viewWith(entries: Readonly<Record<string, string | null>>, self = 'n1') {
  const map = new Map<string, ClusterEntry>();
  for (const [name, kind] of Object.entries(entries)) {
    const key = spawnKey(name);
    const value = kind === null ? null : registrationValue({ ...props(name, kind), props: undefined, settings: {} });
    map.set(key, { key, version: 1, by: 'n1', value });
  }
  return viewOf(members, self, map);
}

const fails = (run: () => void, text: string) => assertThrows(run, SimulationError, text);

describe('the books of registrations', () => {
  test('what was promised and is there', () => {
    const books = new SpawnBooks();
    books.spawning(props('a'))('done', viewWith({}));
    books.finish(viewWith({ a: 'k' }));
    assertEquals(books.statistics.checked, 1);
  });

  test('what was promised and is gone, or is another kind, is a broken rule', () => {
    const others: Readonly<Record<string, string | null>>[] = [{}, { a: null }, { a: 'other' }];
    for (const found of others) {
      const books = new SpawnBooks();
      books.spawning(props('a'))('done', viewWith({ a: 'k' }));
      fails(() => books.finish(viewWith(found)), 'was promised and is gone');
    }
  });

  test('the loss of a minority excuses nothing, that of more does', () => {
    const books = new SpawnBooks();
    books.spawning(props('a'))('done', viewWith({ a: 'k' }));
    for (const uid of ['n1', 'n2']) books.lost(uid);
    fails(() => books.finish(viewWith({})), 'only 2 of 5 members were lost');
    books.lost('n3');
    books.finish(viewWith({}));
    assertEquals(books.statistics.excused, 1);
  });

  test('once everybody knows it, those who were lost before count no more', () => {
    const books = new SpawnBooks();
    books.spawning(props('a'))('done', viewWith({ a: 'k' }));
    for (const uid of ['n1', 'n2', 'n3']) books.lost(uid);
    books.audit(['n4', 'n5'].map((uid) => ({ name: uid, uid, view: viewWith({ a: 'k' }, uid) })));
    fails(() => books.finish(viewWith({})), 'only 0 of 2 members were lost');
  });

  test('a removal ends the promise, and is one itself', () => {
    const books = new SpawnBooks();
    books.spawning(props('a'))('done', viewWith({ a: 'k' }));
    books.removing('a')('done', viewWith({ a: null }));
    fails(() => books.finish(viewWith({ a: 'k' })), 'the removal of a was promised');
    books.spawning(props('a'));
    books.finish(viewWith({ a: 'k' }));
  });

  test('a removal under way, or of unknown end, lets nothing be promised', () => {
    const books = new SpawnBooks();
    const spawned = books.spawning(props('a'));
    const removed = books.removing('a');
    spawned('done', viewWith({ a: 'k' }));
    removed('unsure', viewWith({ a: null }));
    books.spawning(props('a'))('done', viewWith({ a: 'k' }));
    books.finish(viewWith({}));
    // Until all nodes are seen to know the same.
    books.audit([{ name: 'n1', uid: 'n1', view: viewWith({ a: 'k' }) }]);
    books.spawning(props('a'))('done', viewWith({ a: 'k' }));
    fails(() => books.finish(viewWith({})), 'is gone');
  });

  test('two registrations of one kind and role on one node', () => {
    const books = new SpawnBooks();
    const node = (entries: Record<string, string>) => [{ name: 'n1', uid: 'n1', view: viewWith(entries) }];
    books.audit(node({ a: 'k', b: 'other' }));
    fails(() => books.audit(node({ a: 'k', b: 'k' })), 'n1 knows a and b of kind and role k/');
  });
});
