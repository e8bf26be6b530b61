import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { chunksOf, StateAssembly } from '../../src/singleton/state_transfer.ts';
import { crc32 } from '../../src/wire/crc32.ts';

test('R42: a large state arrives whole, in any number of tries; missing, damaged and oversize ones are told apart', () => {
  const state = new Uint8Array(3 * limits.handOverChunkBytes + 5).map((_, at) => at % 251);
  const chunks = chunksOf(state);
  assertEquals(chunks.length, 4);
  const assembly = new StateAssembly('n', state.length, 0);
  assembly.add(0, chunks[0]!, 1);
  assembly.add(2, chunks[2]!, 2);
  assertEquals(assembly.finish(state.length, crc32(state)), 'incomplete');
  chunks.forEach((chunk, index) => assembly.add(index, chunk, 3));
  assertEquals(assembly.finish(state.length, crc32(state) ^ 1), 'damaged');
  assertEquals(assembly.finish(state.length, crc32(state)), state);
  assertEquals(new StateAssembly('n', 10, 0).finish(11, 0), 'too-large');
});
