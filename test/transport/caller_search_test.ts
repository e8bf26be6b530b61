import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { type HonestSide, searchCallerHandshakes } from './caller_search.ts';

let nonces = 0;

function caller(token = 'one', sealing = false): HonestSide {
  nonces += 1;
  return { name: `caller ${nonces}`, side: 'caller', tokens: [token], nonce: new Uint8Array(32).fill(nonces), sealing };
}

function node(sealing = false, tokens: readonly string[] = ['one', 'two']): HonestSide {
  nonces += 1;
  return { name: `node ${nonces}`, side: 'node', tokens, nonce: new Uint8Array(32).fill(nonces), sealing };
}

describe('handshake of callers, all that an attacker without the token can do', () => {
  test('S7: parallel sessions of two callers of one token with two nodes do not mix', () => {
    const { broken, links, states } = searchCallerHandshakes({ sessions: [caller(), caller(), node(), node()] });
    assertEquals(broken, []);
    assertEquals(links.size, 8);
    assert(states > 1_000, String(states));
  });

  test('S7: the holder of one token is never taken for that of another', () => {
    const { broken, links } = searchCallerHandshakes({ sessions: [caller('one'), caller('two'), node()] });
    assertEquals([broken, links.size], [[], 4]);
  });

  test('S7: frame integrity that one side wants cannot be negotiated away; keys are the same on both, and never on the wire', () => {
    for (const [left, right] of [[true, false], [false, true], [true, true]] as const) {
      const sessions = [caller('one', left), caller('two', left), node(right)];
      const { broken, links } = searchCallerHandshakes({ sessions });
      assertEquals([broken, links.size], [[], 4]);
    }
  });

  test('S7: another token gives no link at all', () => {
    const { broken, links } = searchCallerHandshakes({ sessions: [caller('three'), node()] });
    assertEquals([broken, links.size], [[], 0]);
  });
});

describe('the search for callers finds what is wrong', () => {
  /** Behind the label: the length of the caller's hello in two bytes, that hello, the node's. */
  const nonceOf = (whose: 'caller' | 'node') => (message: Uint8Array) => {
    const from = message.indexOf(0) + 1;
    const size = message[from]! * 256 + message[from + 1]!;
    const at = from + 2 + (whose === 'caller' ? 0 : size) + 3;
    return Uint8Array.from([...message.slice(0, at), ...message.slice(at + 32)]);
  };
  const relabelled = (from: string, to: string) => (message: Uint8Array) =>
    Uint8Array.from(String.fromCharCode(...message).replace(from, to), (char) => char.charCodeAt(0));
  const cases: readonly [string, (message: Uint8Array) => Uint8Array, string, nodes?: number][] = [
    ['proofs without the nonce of the caller', nonceOf('caller'), 'nobody honest'],
    ['proofs without the nonce of the node', nonceOf('node'), 'nobody honest', 2],
    ['proofs that do not say which side made them', relabelled('1 node', '1 caller'), 'nobody honest'],
    ['keys made from what proofs are made from', relabelled('frames', 'handshake'), 'a key was on the wire'],
    ['keys that do not say which side uses them', relabelled('1 node', '1 caller'), 'one key for both directions'],
  ];
  for (const [what, covered, text, nodes = 1] of cases) {
    test(what, () => {
      const sessions = [caller('one', true), nodes === 1 ? caller('one', true) : node(), node()];
      const { broken } = searchCallerHandshakes({ sessions, covered });
      assert(broken.some((each) => each.includes(text)), broken.join('; '));
    });
  }

  test('proofs without the tags of the hellos: frame integrity can be negotiated away', () => {
    const covered = (message: Uint8Array) => {
      const copy = message.slice();
      const from = copy.indexOf(0) + 1;
      copy[from + 2] = copy[from + 2 + copy[from]! * 256 + copy[from + 1]!] = 0;
      return copy;
    };
    const { broken } = searchCallerHandshakes({ sessions: [caller('one', true), node()], covered });
    assert(broken.length > 0);
  });
});
