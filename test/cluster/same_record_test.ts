import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { emptyGossip, type MemberRecord, withRecord } from '../../src/cluster/gossip_state.ts';
import { selfText } from '../../src/cluster/record_index.ts';
import { sameRecord, sameSelf, withKnownRecords } from '../../src/cluster/same_record.ts';

const record: MemberRecord = {
  address: '10.0.0.1:2550',
  uid: 'u1',
  status: 'up',
  upNumber: 3,
  terminated: false,
  selfVersion: 7,
  roles: ['a', 'b'],
  runtime: 'node',
  appVersion: '1',
  started: new Map([['x', { generation: 1, role: undefined }], ['y', { generation: 2, role: 'a' }]]),
  hosting: new Map([['x', { epoch: 5, plannedSince: 4, since: 3 }]]),
};

const changes: Partial<MemberRecord>[] = [
  { address: '10.0.0.2:2550' },
  { roles: ['b', 'a'] },
  { roles: ['a'] },
  { runtime: 'bun' },
  { appVersion: '2' },
  { started: new Map([['x', { generation: 1, role: undefined }]]) },
  { started: new Map([['x', { generation: 1, role: undefined }], ['y', { generation: 3, role: 'a' }]]) },
  {
    started: new Map([['x', { generation: 1, role: undefined, placement: 'spread' }], ['y', {
      generation: 2,
      role: 'a',
    }]]),
  },
  { hosting: new Map() },
  { hosting: new Map([['z', { epoch: 5, plannedSince: 4, since: 3 }]]) },
  { hosting: new Map([['x', { epoch: 5, plannedSince: 4, since: 9 }]]) },
];

describe('equal records', () => {
  test('are found whatever the order of their maps', () => {
    const copy = structuredClone(record);
    assertEquals(sameRecord(record, { ...copy, started: new Map([...copy.started].reverse()) }), true);
  });

  for (const change of changes) {
    test(`differ in ${JSON.stringify(Object.entries(change).map(([key, value]) => [key, value instanceof Map ? [...value] : value]))}`, () => {
      const other = { ...structuredClone(record), ...change };
      assertEquals(sameSelf(record, other), false);
      assertEquals(sameSelf(record, other), selfText(record) === selfText(other), 'as the texts that are hashed say');
    });
  }

  for (
    const change of [{ uid: 'u2' }, { status: 'down' }, { upNumber: 4 }, { terminated: true }, {
      selfVersion: 8,
    }] as const
  ) {
    test(`differ in ${Object.keys(change)}, which others may change`, () => {
      assertEquals(sameRecord(record, { ...structuredClone(record), ...change }), false);
      assertEquals(sameSelf(record, { ...structuredClone(record), ...change }), true);
    });
  }

  test('are taken over as the objects that are known', () => {
    const mine = withRecord(emptyGossip('c', 1), record);
    const changed = { ...record, uid: 'u2', status: 'down' as const };
    const theirs = withRecord(withRecord(emptyGossip('c', 1), structuredClone(record)), changed);
    const known = withKnownRecords(theirs, mine);
    assertEquals(known.records.get('u1') === record, true);
    assertEquals(known.records.get('u2') === changed, true);
  });
});
