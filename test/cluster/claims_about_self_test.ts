import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { checkSelfClaims } from '../../src/cluster/claims_about_self.ts';
import { emptyGossip, type GossipState, type MemberRecord } from '../../src/cluster/gossip_state.ts';

function record(uid: string, change: Partial<MemberRecord> = {}): MemberRecord {
  const own = { selfVersion: 5, roles: [], runtime: 'bun', appVersion: '', started: new Map(), hosting: new Map() };
  return { uid, address: `${uid}:1`, status: 'up', upNumber: 1, terminated: false, ...own, ...change };
}

function gossip(self: MemberRecord, version = 0, unreachable = false): GossipState {
  const records = new Map([[self.uid, self], ['b', record('b', { upNumber: 2 })]]);
  const rows = version === 0 ? [] : [['a', new Map([['b', { version, unreachable }]])] as const];
  return { ...emptyGossip('c', 1), lastNumber: 2, records, reachability: new Map(rows) };
}

const self = record('a');

describe('what others say about this node', () => {
  test('what is so, or was so, is no claim', () => {
    for (const change of [{}, { selfVersion: 4 }, { selfVersion: 4, appVersion: 'old' }, { status: 'down' } as const]) {
      assertEquals(checkSelfClaims(gossip(self), gossip(record('a', change)), self).kind, 'true');
    }
    assertEquals(checkSelfClaims(gossip(self, 3), gossip(self, 2, true), self).kind, 'true');
    assertEquals(checkSelfClaims(gossip(self, 3, true), gossip(self, 3, true), self).kind, 'true');
    assertEquals(checkSelfClaims(gossip(self), { ...gossip(self), records: new Map() }, self).kind, 'true');
  });

  test('a claim is outlived by what this node says', () => {
    for (const change of [{ selfVersion: 9 }, { appVersion: 'other' }, { selfVersion: 9, appVersion: 'other' }]) {
      const claims = checkSelfClaims(gossip(self), gossip(record('a', change)), self);
      assert(claims.kind === 'refuted');
      assertEquals(claims.gossip.records.get('a'), { ...self, selfVersion: (change.selfVersion ?? 5) + 1 });
    }
  });

  test('so is a claim about what this node can reach', () => {
    for (
      const [mine, theirs] of [[gossip(self), gossip(self, 7, true)], [gossip(self, 7), gossip(self, 7, true)]] as const
    ) {
      const claims = checkSelfClaims(mine, theirs, self);
      assert(claims.kind === 'refuted');
      assertEquals(claims.gossip.reachability.get('a')?.get('b'), { version: 8, unreachable: false });
    }
  });

  test('that it leaves cannot be refuted; its own leave is no claim', () => {
    assertEquals(checkSelfClaims(gossip(self), gossip(record('a', { status: 'leaving' })), self).kind, 'leaves');
    const leaving = record('a', { status: 'leaving' });
    assertEquals(checkSelfClaims(gossip(leaving), gossip(leaving), leaving).kind, 'true');
    assertEquals(checkSelfClaims(gossip(leaving), gossip(record('a', { status: 'exiting' })), leaving).kind, 'leaves');
  });
});
