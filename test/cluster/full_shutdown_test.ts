import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { anyRetires, retireAll, retireNobody, retires } from '../../src/cluster/full_shutdown.ts';
import type { ClusterEntry } from '../../src/cluster/member.ts';
import { hostOf, mayBeNextHost } from '../../src/singleton/host.ts';
import { member, viewOf } from '../singleton/manager_world.ts';

const started = new Map([['x', { generation: 1, role: undefined }]]);
const members = ['a', 'b', 'c'].map((uid, at) => member(uid, { upNumber: at + 1, started }));
const joining = member('d', { upNumber: 0, status: 'joining', started });

function entriesAfter(act: (node: Parameters<typeof retireAll>[0]) => void, seen = members) {
  const entries = new Map<string, ClusterEntry>();
  const writeEntry = (key: string, value: unknown) => void entries.set(key, { key, version: 1, by: 'a', value });
  act({ writeEntry, view: () => viewOf(seen, 'a') } as unknown as Parameters<typeof retireAll>[0]);
  return entries;
}

test('P21: those retire that have a number at the moment: neither who joins at the same time nor who comes later', () => {
  const entries = entriesAfter(retireAll, [...members, joining]);
  const later = [...members, { ...joining, status: 'up' as const, upNumber: 4 }];
  const view = viewOf(later, 'a', entries);
  assertEquals(later.map((one) => retires(view, one)), [true, true, true, false]);
  assertEquals(retires(viewOf([...members, joining], 'a', entries), joining), false);
  assertEquals([anyRetires(view), anyRetires(viewOf(members, 'a')), anyRetires(viewOf([later[3]!], 'd', entries))], [
    true,
    false,
    false,
  ]);
  assertEquals(anyRetires(viewOf(later, 'a', entriesAfter(retireNobody))), false);
  assertEquals(
    anyRetires(viewOf(later, 'a', new Map([['full-shutdown', { ...entries.get('full-shutdown')!, value: 'x' }]]))),
    false,
  );
});

test('P22: only one that stays may ask one that retires to stand down, whatever their ages', () => {
  const entries = entriesAfter(retireAll);
  const all = [...members, member('d', { upNumber: 4, started })];
  assertEquals(hostOf(viewOf(all, 'a', entries), 'x')?.uid, 'd');
  assertEquals(hostOf(viewOf(members, 'a', entries), 'x')?.uid, 'a', 'where all retire, the order is as ever');
  const may = (self: string, asker: string) => mayBeNextHost(viewOf(all, self, entries), 'x', asker);
  assertEquals([may('a', 'd'), may('d', 'a'), may('b', 'a'), may('a', 'b')], [true, false, true, false]);
});
