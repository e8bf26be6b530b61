import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { Hello } from '../../src/transport/hello.ts';
import { type Honest, searchHandshakes } from './handshake_search.ts';

const addresses = { a: '127.0.0.1:1', b: '127.0.0.1:2' } as const;
let nonces = 0;

/** A session of node a or b; as initiator it has dialled the other one. */
function session(
  node: 'a' | 'b',
  side: Hello['side'],
  secrets: readonly string[] = ['old'],
  integrity = false,
): Honest {
  const own: Hello = {
    side,
    secured: true,
    integrity,
    clusterName: 'c',
    address: addresses[node],
    uid: node,
    runtime: 'bun',
    roles: [],
    nonce: new Uint8Array(32).fill(++nonces),
  };
  const name = `${node} ${side} ${nonces}`;
  const dialled = addresses[node === 'a' ? 'b' : 'a'];
  return side === 'initiator' ? { name, own, dialled, secrets } : { name, own, secrets };
}

/** The nonce of the responder's hello is at the end of what a proof covers, the initiator's in front of it. */
const withoutResponderNonce = (message: Uint8Array) => message.slice(0, -32);
const withoutSides = (message: Uint8Array) => message.slice(message.indexOf(0) + 1);
function withoutInitiatorNonce(message: Uint8Array): Uint8Array {
  const label = message.indexOf(0) + 1;
  const first = label + 4 + new DataView(message.buffer).getUint32(label);
  return Uint8Array.from([...message.slice(0, first - 32), ...message.slice(first)]);
}

describe('handshake, all that an attacker without the secret can do', () => {
  test('S7: two nodes that dial each other at once', () => {
    const sessions = [
      session('a', 'initiator'),
      session('b', 'responder'),
      session('b', 'initiator'),
      session('a', 'responder'),
    ];
    const { broken, links, states } = searchHandshakes({ sessions });
    assertEquals(broken, []);
    // Each initiator may come together with either node's responder that it dialled, and that only.
    assertEquals(links.size, 4);
    assert(states > 500, String(states));
  });

  test('S7: parallel sessions in one direction do not mix', () => {
    const sessions = [
      session('a', 'initiator'),
      session('a', 'initiator'),
      session('b', 'responder'),
      session('b', 'responder'),
    ];
    const { broken, links } = searchHandshakes({ sessions });
    assertEquals(broken, []);
    assertEquals(links.size, 8);
  });

  test('S7: while a secret is being changed', () => {
    const sessions = [
      session('a', 'initiator', ['old', 'new']),
      session('b', 'responder', ['new', 'old']),
      session('b', 'initiator', ['new', 'old']),
      session('a', 'responder', ['old', 'new']),
    ];
    const { broken, links } = searchHandshakes({ sessions });
    assertEquals([broken, links.size], [[], 4]);
  });

  test('S7: frame integrity that one side wants cannot be negotiated away, and both have the same keys', () => {
    const pairs = [[true, false], [false, true], [true, true]] as const;
    for (const [left, right] of pairs) {
      const sessions = [
        session('a', 'initiator', ['old', 'new'], left),
        session('b', 'responder', ['new', 'old'], right),
        session('b', 'initiator', ['new', 'old'], right),
      ];
      const { broken, links } = searchHandshakes({ sessions });
      assertEquals([broken, links.size], [[], 2]);
    }
  });

  test('S7: other secrets give no link at all', () => {
    const sessions = [session('a', 'initiator', ['one']), session('b', 'responder', ['two'])];
    const { broken, links } = searchHandshakes({ sessions });
    assertEquals([broken, links.size], [[], 0]);
  });
});

describe('the search finds what is wrong', () => {
  const cases: readonly [string, (message: Uint8Array) => Uint8Array, string][] = [
    ['the responder', withoutResponderNonce, 'nobody honest'],
    ['the initiator', withoutInitiatorNonce, 'nobody honest'],
  ];
  for (const [whose, covered, text] of cases) {
    test(`proofs without the nonce of ${whose} can be replayed`, () => {
      const sessions = [
        session('a', 'initiator'),
        session('a', 'initiator'),
        session('b', 'responder'),
        session('b', 'responder'),
      ];
      const { broken } = searchHandshakes({ sessions, covered });
      assert(broken.some((each) => each.includes(text)), broken.join('; '));
    });
  }

  test('proofs that do not say which side made them can be sent back', () => {
    const sessions = [session('a', 'initiator')];
    const { broken } = searchHandshakes({ sessions: [...sessions, session('b', 'responder')], covered: withoutSides });
    assert(broken.some((each) => each.includes('nobody honest')), broken.join('; '));
  });

  test('a stolen secret gives links with nobody honest', () => {
    const sessions = [session('a', 'initiator'), session('b', 'responder')];
    const { broken } = searchHandshakes({ sessions, stolen: ['old'] });
    assert(broken.length > 0);
  });
});
