import { test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { isProblem, unknownPath, wrongMethod } from '../../src/http/answers.ts';

test('a refusal is told from an answer', () => {
  assert(isProblem(unknownPath('GET', '/x')));
  assert(!isProblem({ fields: {} }));
  assert(!isProblem(new Response('')));
});

test('refusals name what was asked', () => {
  assertStringIncludes(unknownPath('GET', '/x').message, 'GET /x');
  assertEquals(wrongMethod('PUT', '/x', 'GET').headers, { allow: 'GET' });
});
