import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import {
  decodeHandshakeFrame,
  encodeHello,
  encodeProof,
  type Hello,
  helloBytes,
  protocolVersion,
} from '../../src/transport/hello.ts';

function hello(change: Partial<Hello> = {}): Hello {
  return {
    side: 'initiator',
    secured: true,
    integrity: false,
    clusterName: 'täst',
    address: '10.0.0.1:4001',
    uid: 'u1',
    runtime: 'bun',
    roles: ['ingress', 'edge'],
    nonce: new Uint8Array(32).fill(7),
    ...change,
  };
}

function whyNot(bytes: Uint8Array): string {
  const frame = decodeHandshakeFrame(bytes);
  return frame.kind === 'malformed' ? frame.why : `decoded as ${frame.kind}`;
}

describe('hello', () => {
  test('survives the wire', () => {
    for (const each of [hello(), hello({ side: 'responder', secured: false, roles: [], address: '[::1]:0' })]) {
      assertEquals(decodeHandshakeFrame(encodeHello(each)), { kind: 'hello', hello: each });
    }
    const mac = new Uint8Array(32).fill(3);
    assertEquals(decodeHandshakeFrame(encodeProof(mac)), { kind: 'proof', mac });
  });

  test('the longest legal one fits', () => {
    const role = 'ÿ'.repeat(limits.roleChars);
    const address = `${'h'.repeat(limits.hostChars)}:65535`;
    const largest = hello({
      address,
      clusterName: '😀'.repeat(127),
      uid: 'u'.repeat(128),
      roles: Array.from({ length: limits.roles }, () => role),
    });
    const bytes = encodeHello(largest);
    assert(bytes.byteLength <= helloBytes);
    assertEquals(decodeHandshakeFrame(bytes), { kind: 'hello', hello: largest });
  });

  test('another protocol is named, whatever follows', () => {
    const bytes = encodeHello(hello()).slice(0, 6);
    bytes[2] = protocolVersion + 41;
    assertEquals(decodeHandshakeFrame(bytes), { kind: 'other-protocol', protocol: protocolVersion + 41 });
  });

  test('R115: values out of range are malformed, with the rule', () => {
    const cases: [Partial<Hello>, string][] = [
      [{ clusterName: '' }, 'cluster name'],
      [{ clusterName: 'x'.repeat(256) }, 'cluster name'],
      [{ clusterName: 'a\nb' }, 'cluster name'],
      [{ uid: '' }, 'uid'],
      [{ address: 'host' }, 'address'],
      [{ address: 'host:65536' }, 'address'],
      [{ address: 'ho st:1' }, 'address'],
      [{ roles: ['a'.repeat(65)] }, 'roles'],
      [{ roles: [''] }, 'roles'],
      [{ roles: Array.from({ length: 33 }, () => 'r') }, '33 roles'],
      [{ nonce: new Uint8Array(31) }, 'nonce'],
    ];
    for (const [change, rule] of cases) {
      const why = whyNot(encodeHello(hello(change)));
      assert(why.includes(rule), `${JSON.stringify(change)}: ${why}`);
    }
  });

  test('R115: truncated, extended and mutated frames never throw and never pass for the original', () => {
    const bytes = encodeHello(hello());
    for (let size = 0; size < bytes.byteLength; size++) assertEquals(kindOf(bytes.subarray(0, size)), 'malformed');
    assertEquals(kindOf(Uint8Array.from([...bytes, 0])), 'malformed');
    assertEquals(kindOf(new Uint8Array(helloBytes + 1).fill(1)), 'malformed');
    let seed = 12345;
    const next = (bound: number) => (seed = (seed * 48271) % 2147483647) % bound;
    for (let round = 0; round < 20_000; round++) {
      const copy = bytes.slice();
      for (let i = next(4); i >= 0; i--) copy[next(copy.length)] = next(256);
      const frame = decodeHandshakeFrame(copy);
      if (frame.kind === 'hello') assertEquals(encodeHello(frame.hello), copy);
    }
  });
});

function kindOf(bytes: Uint8Array): string {
  return decodeHandshakeFrame(bytes).kind;
}
