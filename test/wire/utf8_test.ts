import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { utf8Bytes } from '../../src/wire/utf8.ts';

test('the length of a text on the wire is what the encoder makes of it, halves of pairs included', () => {
  const units = [
    'a',
    '\x00',
    '\x7f',
    '\x80',
    'é',
    '\u07ff',
    '\u0800',
    '✓',
    '\uffff',
    '\ud800',
    '\udbff',
    '\udc00',
    '\udfff',
  ];
  const encoder = new TextEncoder();
  for (const a of units) {
    for (const b of units) {
      for (const c of units) {
        assertEquals(utf8Bytes(a + b + c), encoder.encode(a + b + c).length, JSON.stringify(a + b + c));
      }
    }
  }
  assertEquals(utf8Bytes(''), 0);
});
