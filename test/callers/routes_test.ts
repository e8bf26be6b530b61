import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { parseCallerRefName } from '../../src/callers/caller_ref.ts';
import { CallerRoutes } from '../../src/callers/routes.ts';

const a = { uid: 'a', address: 'h:1' };
const b = { uid: 'b', address: 'h:2' };

test('the latest connection counts; what an older one still says is not looked at', () => {
  const routes = new CallerRoutes(10);
  assertEquals(routes.heard({ id: 'caller:1', session: 1 }, a, 0), true);
  assertEquals(routes.heard({ id: 'caller:1', session: 2 }, b, 1), true);
  assertEquals(routes.heard({ id: 'caller:1', session: 1 }, a, 2), false);
  assertEquals(routes.find('caller:1'), { session: 2, place: b, heardAt: 1 });
});

test('bounded: who was heard of longest ago goes first', () => {
  const routes = new CallerRoutes(2);
  for (const id of ['caller:1', 'caller:2']) routes.heard({ id, session: 1 }, a, 0);
  routes.heard({ id: 'caller:1', session: 1 }, a, 1);
  routes.heard({ id: 'caller:3', session: 1 }, a, 2);
  assertEquals([routes.find('caller:2'), routes.size], [undefined, 2]);
});

test('who is not heard of expires; one that came with a hand-over has its time from then on', () => {
  const routes = new CallerRoutes(10);
  routes.heard({ id: 'caller:1', session: 1 }, a, 0);
  assertEquals(routes.remember('caller:2', 5), { session: 0, place: undefined, heardAt: 5 });
  assertEquals(routes.remember('caller:2', 9).heardAt, 5);
  routes.expire(5);
  assertEquals([routes.find('caller:1'), routes.find('caller:2')?.heardAt], [undefined, 5]);
  assertEquals(routes.heard({ id: 'caller:2', session: 1 }, b, 6), true);
});

test('names of refs to callers are read exactly', () => {
  assertEquals(parseCallerRefName('caller:ab/r-1@h:1#u'), {
    caller: 'caller:ab',
    receiver: 'r-1',
    place: { address: 'h:1', uid: 'u' },
  });
  assertEquals(parseCallerRefName('caller:ab/r-1')?.place, undefined);
  for (const bad of ['', 'x/r-1', 'caller:/r', 'caller:a/', 'caller:a/b/c', 'caller:a/b@h:1', 'caller:a b/c']) {
    assertEquals(parseCallerRefName(bad), undefined, bad);
  }
});
