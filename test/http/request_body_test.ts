import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { isProblem } from '../../src/http/answers.ts';
import { checkAddress, readFields } from '../../src/http/request_body.ts';
import { limits } from '../../src/limits.ts';

function request(body: BodyInit, headers: Record<string, string> = {}): Request {
  return new Request('http://localhost/', { method: 'POST', body, headers, duplex: 'half' } as RequestInit);
}

/** A body that comes in pieces and never says how long it is. */
function endless(chunk: Uint8Array, onCancel: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(chunk), cancel: onCancel });
}

describe('request bodies', () => {
  test('a body that never ends is cut off at the limit', async () => {
    let cancelled = false;
    const answer = await readFields(request(endless(new Uint8Array(10_000), () => cancelled = true)), ['a']);
    assert(isProblem(answer));
    assertEquals([answer.status, answer.code], [413, 'too-large']);
    assert(cancelled);
  });
  test('a client that goes away half-way gets 400, and nothing is thrown', async () => {
    const broken = new ReadableStream({
      pull: (controller) => controller.error(new Error('the connection was reset')),
    });
    const answer = await readFields(request(broken), ['a']);
    assert(isProblem(answer));
    assertEquals([answer.status, answer.message], [400, 'body: was cut off']);
  });
  test('the limit itself is fine, one byte more is not', async () => {
    const room = limits.httpBodyBytes - '{"a":""}'.length;
    assert(!isProblem(await readFields(request(`{"a":"${'x'.repeat(room)}"}`), ['a'])));
    assert(isProblem(await readFields(request(`{"a":"${'x'.repeat(room + 1)}"}`), ['a'])));
  });
  test('bytes that are not UTF-8 are not JSON', async () => {
    const answer = await readFields(request(new Uint8Array([0x22, 0xff, 0x22])), ['a']);
    assert(isProblem(answer));
    assertEquals(answer.status, 400);
  });
  test('no body is no field', async () => {
    assertEquals(await readFields(new Request('http://localhost/', { method: 'POST' }), ['a']), { fields: {} });
  });
});

test('addresses', () => {
  for (const good of ['a:1', '127.0.0.1:65535', '[::1]:80', 'node-1.example:8080']) {
    assertEquals(checkAddress('a', good), undefined, good);
  }
  for (const bad of [undefined, '', 'a', ':1', 'a:', 'a:1x', 'a b:1', 'a\n:1', 'a:-1', 'a:1e3']) {
    assert(checkAddress('a', bad) !== undefined, bad);
  }
});
