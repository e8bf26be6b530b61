import { test } from 'node:test';
import { assertEquals, assertNotEquals } from '@std/assert';
import { crc32 } from '../../src/wire/crc32.ts';

test('the check value of CRC-32 and its edge cases', () => {
  assertEquals(crc32(new TextEncoder().encode('123456789')), 0xcbf43926);
  assertEquals(crc32(new Uint8Array(0)), 0);
  assertNotEquals(crc32(new Uint8Array([1, 2])), crc32(new Uint8Array([2, 1])));
});
