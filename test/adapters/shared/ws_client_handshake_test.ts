import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import {
  acceptFor,
  base64,
  headEnd,
  upgradeRequest,
  wrongAnswer,
} from '../../../adapters/shared/ws_client_handshake.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);
const expected = { accept: 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=', subprotocol: 'singlet.v1' };
const good: readonly string[] = [
  'HTTP/1.1 101 Switching Protocols',
  'Upgrade: websocket',
  'Connection: Upgrade',
  `Sec-WebSocket-Accept: ${expected.accept}`,
  'Sec-WebSocket-Protocol: singlet.v1',
];
const head = (lines: readonly string[]) => utf8(`${lines.join('\r\n')}\r\n\r\n`);
const judged = (lines: readonly string[]) => wrongAnswer(head(lines), expected);
/** The good answer with the line that starts as given replaced (or, undefined, left out). */
const changed = (start: string, line?: string) =>
  judged(good.flatMap((each) => each.startsWith(start) ? (line === undefined ? [] : [line]) : [each]));

test('the accept value is the one of the RFC', async () => {
  assertEquals(await acceptFor('dGhlIHNhbXBsZSBub25jZQ=='), expected.accept);
  assertEquals(base64(Uint8Array.of(0, 255, 128)), 'AP+A');
});

test('the request', () => {
  const lines = (url: string) =>
    new TextDecoder().decode(upgradeRequest(new URL(url), 'KEY', 'singlet.v1')).split('\r\n');
  assertEquals(lines('ws://Example.org:1234/cluster/ws?a=b#c'), [
    'GET /cluster/ws?a=b HTTP/1.1',
    'Host: example.org:1234',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: KEY',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: singlet.v1',
    '',
    '',
  ]);
  assertEquals(lines('ws://[::1]:80/').slice(0, 2), ['GET / HTTP/1.1', 'Host: [::1]']);
});

test('the end of the head is found in whatever pieces it comes', () => {
  const bytes = utf8('HTTP/1.1 101 x\r\nA: b\n\r\nC: d\r\n\r\n\r\nrest');
  for (let size = 0; size <= bytes.length; size += 1) {
    for (let known = 0; known <= size; known += 1) {
      const end = headEnd(bytes.subarray(0, size), known);
      // What was known before did not hold the end.
      if (known < 31) assertEquals(end, size < 31 ? -1 : 31, `${known} of ${size}`);
    }
  }
});

describe('an answer that opens the connection', () => {
  test('in the usual form', () => assertEquals(judged(good), undefined));
  test('without a reason phrase', () => assertEquals(changed('HTTP', 'HTTP/1.1 101'), undefined));
  test('in other letters, with other headers and options', () => {
    const lines = [
      'HTTP/1.1 101 ok',
      'UPGRADE:WebSocket',
      'connection:\tkeep-alive, UPGRADE ',
      `sec-websocket-accept:   ${expected.accept}`,
      'sec-websocket-protocol: singlet.v1',
      'vary:',
      'x-any: a:b',
      'x-any: c',
    ];
    assertEquals(judged(lines), undefined);
  });
});

describe('an answer that does not', () => {
  const cases: Readonly<Record<string, readonly [string | undefined, string]>> = {
    'another status': [changed('HTTP', 'HTTP/1.1 503 Service Unavailable'), 'HTTP status 503'],
    'status 200': [changed('HTTP', 'HTTP/1.1 200 OK'), 'HTTP status 200'],
    'HTTP/1.0': [changed('HTTP', 'HTTP/1.0 101 Switching Protocols'), 'the answer is not HTTP/1.1'],
    'another protocol': [changed('HTTP', 'SSH-2.0-OpenSSH_9'), 'the answer is not HTTP/1.1'],
    'a status of four digits': [changed('HTTP', 'HTTP/1.1 1010 x'), 'the answer is not HTTP/1.1'],
    'no Upgrade': [changed('Upgrade'), 'the answer does not upgrade to websocket'],
    'another Upgrade': [changed('Upgrade', 'Upgrade: h2c'), 'the answer does not upgrade to websocket'],
    'no Connection': [changed('Connection'), 'the answer does not upgrade the connection'],
    'another Connection': [changed('Connection', 'Connection: upgraded'), 'the answer does not upgrade the connection'],
    'no accept': [changed('Sec-WebSocket-A'), 'Sec-WebSocket-Accept does not match the key'],
    'another accept': [
      changed('Sec-WebSocket-A', `Sec-WebSocket-Accept: ${expected.accept.toLowerCase()}`),
      'Sec-WebSocket-Accept does not match the key',
    ],
    'two accepts': [
      judged([...good, `Sec-WebSocket-Accept: ${expected.accept}`]),
      'Sec-WebSocket-Accept does not match the key',
    ],
    'no subprotocol': [changed('Sec-WebSocket-P'), 'the answer does not choose the subprotocol singlet.v1'],
    'another subprotocol': [
      changed('Sec-WebSocket-P', 'Sec-WebSocket-Protocol: singlet.v2'),
      'the answer does not choose the subprotocol singlet.v1',
    ],
    'an extension': [
      judged([...good, 'Sec-WebSocket-Extensions: permessage-deflate']),
      'the answer chooses an extension that was not offered',
    ],
    'a folded header': [judged([...good, ' more']), 'the answer has a malformed header'],
    'a header without a colon': [judged([...good, 'x']), 'the answer has a malformed header'],
    'a space before the colon': [judged([...good, 'x : y']), 'the answer has a malformed header'],
    'a control character': [judged([...good, 'x: a\u0000b']), 'the answer has a malformed header'],
    'a bare line feed': [judged([...good, 'x: a\nb: c']), 'the answer has a malformed header'],
  };
  for (const [name, [actual, wanted]] of Object.entries(cases)) test(name, () => assertEquals(actual, wanted));
});
