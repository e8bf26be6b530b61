import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { decodeDigest, decodeGossip, encodeGossip } from '../../src/cluster/gossip_codec.ts';
import { digestOf } from '../../src/cluster/gossip_state.ts';
import { limits } from '../../src/limits.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { Codec } from '../../src/wire/codec.ts';
import { gossip, record, withClaims } from './support/gossip_samples.ts';

const state = {
  ...withClaims(
    gossip(
      record('a', 'up', 1, {
        started: new Map([['s', { generation: 2, role: 'r' }], ['t', {
          generation: 1,
          role: undefined,
          placement: 'spread' as const,
        }]]),
      }),
      record('b', 'down', 2, { terminated: true, hosting: new Map([['s', { epoch: 7, plannedSince: 5, since: 9 }]]) }),
      record('c', 'joining'),
    ),
    [['a', 'b']],
  ),
  entries: new Map([['pin/s', {
    key: 'pin/s',
    version: 3,
    by: 'a',
    value: { uid: 'a', list: [1, 'x', null], skipped: undefined },
  }]]),
};
const tombstones: [string, { address: string; since: number }][] = [['z', { address: '10.0.0.9:1', since: 4 }]];
const wire = (): unknown[] => encodeGossip(state, ['a', 'c'], tombstones) as unknown[];

describe('gossip on the wire', () => {
  test('comes back equal, with the same digest, through the real codec', () => {
    const codec = new Codec();
    const decoded = decodeGossip(codec.decode(codec.encode(wire())), 77);
    assert('value' in decoded);
    assertEquals(digestOf(decoded.value.state), digestOf(state));
    assertEquals(decoded.value.state.records, state.records);
    assertEquals(decoded.value.seen, ['a', 'c']);
    assertEquals(decoded.value.state.tombstones, new Map([['z', { address: '10.0.0.9:1', since: 77 }]]));
  });

  /** A change of the wire form, and what the refusal must name. */
  const cases: readonly (readonly [string, (fields: any[]) => void, string])[] = [
    ['too few fields', (f) => void f.pop(), 'gossip'],
    ['a cluster id that is no text', (f) => void (f[0] = 7), 'cluster id'],
    ['a negative stamp', (f) => void (f[1] = -1), 'formedAt'],
    ['a fraction as a number', (f) => void (f[2] = 1.5), 'lastNumber'],
    ['NaN as a number', (f) => void (f[2] = NaN), 'lastNumber'],
    ['Infinity as an up number', (f) => void (f[3][0][3] = Infinity), 'upNumber'],
    ['an up number that was never given', (f) => void (f[3][0][3] = 99), 'upNumber'],
    ['an unsafe self version', (f) => void (f[3][0][5] = 2 ** 53), 'selfVersion'],
    ['members that are no list', (f) => void (f[3] = {}), 'members'],
    ['the same uid twice', (f) => void f[3].push(f[3][0]), 'members'],
    ['a status that is none', (f) => void (f[3][0][2] = 'zombie'), 'status'],
    ['a status from the prototype', (f) => void (f[3][0][2] = 'constructor'), 'status'],
    ['a removed member', (f) => void (f[3][0][2] = 'removed'), 'status'],
    ['an up member without a number', (f) => void (f[3][0][3] = 0), 'upNumber'],
    ['a joining member with a number', (f) => void (f[3][2][3] = 1), 'upNumber'],
    ['a terminated member that is up', (f) => void (f[3][0][4] = true), 'terminated'],
    ['an over-long uid', (f) => void (f[3][0][0] = 'x'.repeat(65)), 'uid'],
    ['an address without a port', (f) => void (f[3][0][1] = 'host'), 'address'],
    ['an address with port 0', (f) => void (f[3][0][1] = 'host:0'), 'address'],
    ['an address with port 70000', (f) => void (f[3][0][1] = 'host:70000'), 'address'],
    ['an address with a line break', (f) => void (f[3][0][1] = 'ho\nst:1'), 'address'],
    ['too many roles', (f) => void (f[3][0][6] = Array.from({ length: 33 }, (_, i) => `r${i}`)), 'roles'],
    ['an over-long role', (f) => void (f[3][0][6] = ['x'.repeat(65)]), 'role'],
    ['an empty singleton name', (f) => void (f[3][0][9] = [['', 1, null, false]]), 'singleton'],
    ['a negative generation', (f) => void (f[3][0][9] = [['s', -1, null, false]]), 'generation'],
    ['a placement that is no flag', (f) => void (f[3][0][9] = [['s', 1, null, 'spread']]), 'spread'],
    ['an epoch that is text', (f) => void (f[3][0][10] = [['s', '7', 1, 1]]), 'epoch'],
    ['a claim about a stranger', (f) => void (f[4] = [['a', [['x', 1, true]]]]), 'subject'],
    ['a claim by a stranger', (f) => void (f[4] = [['x', [['a', 1, true]]]]), 'observer'],
    ['a claim that is no flag', (f) => void (f[4] = [['a', [['b', 1, 1]]]]), 'unreachable'],
    [
      'an entry key that is too long',
      (f) => void (f[5] = [['k'.repeat(limits.entryKeyChars + 1), 1, 'a', 1]]),
      'entry key',
    ],
    ['a tombstone that is no pair', (f) => void (f[6] = [['z']]), 'tombstone'],
    ['seen that is no list', (f) => void (f[7] = 'a'), 'seen'],
    ['seen with a number in it', (f) => void (f[7] = [1]), 'seen'],
  ];
  for (const [what, change, named] of cases) {
    test(`R115, R118: refuses ${what}, as a whole`, () => {
      const fields = structuredClone(wire());
      change(fields);
      const decoded = decodeGossip(fields, 0);
      assert('refused' in decoded, 'accepted');
      assertStringIncludes(decoded.refused, named);
    });
  }

  test('entries at their bound and a few more, as several leave that write at once, are read', () => {
    const entry = (key: string) => [key, { key, version: 1, by: 'a', value: null }] as const;
    const entries = new Map(Array.from({ length: limits.entries + 10 }, (_, index) => entry(`k${index}`)));
    const decoded = decodeGossip(encodeGossip({ ...state, entries }, [], []), 1);
    assert('value' in decoded);
    assertEquals(decoded.value.state.entries.size, limits.entries + 10);
  });

  test('R115: never throws for any damage', () => {
    const random = seededRandom(3);
    const junk: unknown[] = [
      null,
      undefined,
      NaN,
      -1,
      2 ** 60,
      '',
      'x'.repeat(5_000),
      [],
      {},
      new Map(),
      true,
      1n,
      () => 1,
      new Date(NaN),
    ];
    const damage = (value: unknown): unknown => {
      if (random.next() < 0.04) return junk[Math.floor(random.next() * junk.length)];
      return Array.isArray(value) ? value.map(damage) : value;
    };
    for (let i = 0; i < 2_000; i++) {
      const fields = damage(wire());
      decodeGossip(fields, 0);
      decodeDigest(junk[i % junk.length], fields, junk[(i * 7) % junk.length]);
    }
    const hostile = new Proxy([], {
      get: () => {
        throw new Error('trap');
      },
    });
    assert('refused' in decodeGossip(hostile, 0));
  });
});
