import { test } from 'node:test';
import { assertEquals, assertStrictEquals } from '@std/assert';
import { pack, unpack } from '../../../adapters/opentelemetry/carrier.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('what is packed is unpacked', () => {
  const message = { kind: 'add', amount: 1 };
  assertEquals(unpack(pack(message, { traceparent, tracestate: 'a=1' })), {
    message,
    carried: { traceparent, tracestate: 'a=1' },
  });
  assertEquals(unpack(pack('text', { traceparent })), { message: 'text', carried: { traceparent } });
});

test('without a context a message stays as it is', () => {
  const message = { kind: 'add' };
  assertStrictEquals(pack(message, {}), message);
  assertStrictEquals(pack(message, { traceparent: 'nonsense' }), message);
  for (const plain of [message, 'text', 5, null, undefined, [1]]) {
    assertEquals(unpack(plain), { message: plain, carried: undefined });
  }
});

test('a context that is not well-formed is left out, and one that is too long is cut to its parent', () => {
  for (
    const context of [undefined, 'x', [], [5], [`${traceparent}x`], [traceparent.toUpperCase()], { 0: traceparent }]
  ) {
    assertEquals(unpack({ 'singlet.trace': context, message: 1 }), { message: 1, carried: undefined });
  }
  assertEquals(unpack({ 'singlet.trace': [traceparent, 'x'.repeat(513)], message: 1 }).carried, { traceparent });
  assertEquals(unpack({ 'singlet.trace': [traceparent, 7], message: 1 }).carried, { traceparent });
});

test('R119: of what rides with a message only a trace context is taken, bounded and without control characters', () => {
  const hostile = [traceparent, 'a=1\r\nlevel=error', 'x'.repeat(40_000)];
  assertEquals(unpack({ 'singlet.trace': hostile, message: 1, level: 'error', actor: '/system' }), {
    message: 1,
    carried: { traceparent },
  });
  const fields = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`key${n}`, 'x'.repeat(2_000)]));
  const context = Object.assign([traceparent, 'a=1'], fields);
  assertEquals(unpack({ 'singlet.trace': context, message: 1 }).carried, { traceparent, tracestate: 'a=1' });
  for (const tracestate of ['a=\u0000', 'a=\u007f', 'a=\u202e', 'a=1\n']) {
    assertEquals(unpack(pack(1, { traceparent, tracestate })).carried, { traceparent });
  }
});
