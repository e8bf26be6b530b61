import { describe, test } from 'node:test';
import { assert, assertEquals, assertMatch } from '@std/assert';
import { encodeRecord } from '../../src/cluster/gossip_codec.ts';
import type { MemberRecord } from '../../src/cluster/gossip_state.ts';
import { membersSize, noRoomFor } from '../../src/cluster/state_size.ts';
import { limits } from '../../src/limits.ts';
import type { LinkedPeers } from '../../src/transport/peers.ts';
import { encode } from '../../src/wire/codec.ts';
import { record } from './support/gossip_samples.ts';
import { Harness } from './support/node_harness.ts';

function starts(count: number, name: (at: number) => string): MemberRecord['started'] {
  return new Map(Array.from({ length: count }, (_, at) => [name(at), { generation: at + 1, role: undefined }]));
}

const long = (at: number): string => `${at}-`.padEnd(250, 'x');

describe('the size of a state', () => {
  const claim = { epoch: 1_790_000_000_000, plannedSince: 1_790_000_000_000, since: 1_790_000_000_000 };
  const names = Array.from({ length: 50 }, (_, at) => `größe-${at}-✓-𝄞`);
  const samples: Readonly<Record<string, MemberRecord>> = {
    'a small record': record('a', 'up', 1),
    'one with many roles': record('a', 'up', 70_000, { roles: names.slice(0, 30), uid: 'u'.repeat(64) }),
    'one that has started much': record('a', 'up', 1, {
      started: new Map(names.map((name) => [name, { generation: 90_000, role: 'röle', placement: 'spread' as const }])),
    }),
    'one that hosts much': record('a', 'up', 1, { hosting: new Map(names.map((name) => [name, claim])) }),
  };
  for (const [what, one] of Object.entries(samples)) {
    test(`is never less than what is sent: ${what}`, () => {
      const { bytes, items } = membersSize([one, one]);
      const sent = 2 * encode(encodeRecord(one)).length;
      assert(bytes >= sent && bytes < 1.3 * sent + 300, `${bytes} for ${sent}`);
      let counted = 0;
      const count = (value: unknown): void => {
        counted++;
        if (Array.isArray(value)) value.forEach(count);
      };
      count([encodeRecord(one), encodeRecord(one)]);
      assert(items + 1 >= counted && items < 1.3 * counted + 10, `${items} for ${counted}`);
    });
  }

  test('bounds what members may start, in bytes and in items, by one clear error', () => {
    const member = record('a', 'up', 1, { started: starts(9_000, long) });
    assertEquals(noRoomFor('more', Array(4).fill(member)), undefined);
    assertMatch(noRoomFor('more', Array(6).fill(member))!, /would take \d+ bytes, at most 12582912/);
    const short = record('a', 'up', 1, { started: starts(10_000, String) });
    assertEquals(noRoomFor('more', Array(14).fill(short)), undefined);
    assertMatch(noRoomFor('more', Array(16).fill(short))!, /would take \d+ items, at most 750000/);
  });
});

describe('a state that is larger than a message of a user', () => {
  test('reaches who joins, and a change in it travels alone', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, 'a');
    for (const { node } of [a!, b!]) node.publish({ started: starts(9_000, long) });
    const has = (count: number) => ({ node }: typeof a & object): boolean =>
      node.view().members.length === count &&
      node.view().members.slice(0, 2).every(({ started }) => started.size >= 9_000);
    await harness.until(() => [a!, b!].every(has(2)), 10_000);
    assert(membersSize(a!.node.view().members).bytes > limits.messageBytes);
    const c = await harness.add('a3:4000', ['a1:4000']);
    await harness.until(() => [a!, b!, c].every(has(3)) && c.node.view().converged, 10_000);
    const { counters } = a!.node.peers as LinkedPeers;
    const before = counters.out.system.bytes;
    c.node.publish({ started: starts(1, String) });
    await harness.until(() => a!.node.view().members[2]!.started.size === 1 && a!.node.view().converged, 10_000);
    await harness.environment.elapse(3_000);
    assert(counters.out.system.bytes - before < 20_000, `${counters.out.system.bytes - before} bytes`);
  });
});
