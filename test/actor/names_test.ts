import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { ActorNameError } from '../../src/actor/errors.ts';
import { checkName, nameFault, splitPath } from '../../src/actor/names.ts';

describe('names', () => {
  const bad: readonly (readonly [name: unknown, says: string])[] = [
    ['', 'empty'],
    ['.', "'.'"],
    ['..', "'..'"],
    ['a/b', "'/'"],
    ['a\\b', "'\\'"],
    ['$a', "'$'"],
    ['a\nb', 'control'],
    ['a\u0000', 'control'],
    ['a\u007f', 'control'],
    ['a\u0085', 'control'],
    ['a\ud800', 'surrogate'],
    ['a'.repeat(256), '255'],
    [7, 'string'],
    [undefined, 'string'],
  ];
  for (const [name, says] of bad) {
    test(`R13: ${JSON.stringify(name)?.slice(0, 20)} is refused with the rule`, () => {
      assertStringIncludes(nameFault(name) ?? '', says);
      assertThrows(() => checkName(name as string), ActorNameError, says);
    });
  }

  for (const name of ['a', 'job-scheduler', 'a b', 'ä€😀', 'a$', '...', 'a.b', 'a'.repeat(255), '#1', 'a%2fb']) {
    test(`R13: ${JSON.stringify(name).slice(0, 20)} is a name`, () => assertEquals(nameFault(name), undefined));
  }
});

describe('paths', () => {
  test('are split at the slashes', () => {
    assertEquals(splitPath('/user/a/b'), ['user', 'a', 'b']);
    assertEquals(splitPath('/user'), ['user']);
  });

  for (
    const path of ['', '/', 'user/a', '//user/a', '/user//a', '/user/a/', '/user/./a', '/user/../system/a', 'x:/user']
  ) {
    test(`${JSON.stringify(path)} is no path: there is one spelling only`, () => {
      assertEquals(splitPath(path), undefined);
    });
  }

  test('something that is no string is no path', () => {
    assertEquals(splitPath(undefined as unknown as string), undefined);
  });
});
