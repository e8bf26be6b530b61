import { describe, test } from 'node:test';
import { assertEquals, assertFalse } from '@std/assert';
import { isPostgresUrl, withoutPassword } from '../../node/postgres_url.ts';

describe('the address of a database', () => {
  test('is a URL whose parts can be decoded', () => {
    for (const url of ['postgres://h/x', 'postgresql://user:p%40ss@db.example:5432/jobs']) {
      assertEquals(isPostgresUrl(url), true, url);
    }
    for (
      const text of [
        '',
        'db.example',
        'mysql://h/x',
        'postgres://u:p@h:port/x',
        'postgres://u:%pw@h/x',
        ' postgres://h/x',
      ]
    ) {
      assertEquals(isPostgresUrl(text), false, text);
    }
  });

  test('S7: what is said about it does not show the password, however it is spelled', () => {
    for (
      const [written, plain] of [['hunter22', 'hunter22'], ['p%40ss%2Fw', 'p@ss/w'], ["it's", "it's"], [
        'a@b',
        'a@b',
      ]] as const
    ) {
      const url = `postgres://user:${written}@db.example:5432/jobs`;
      const { href, password } = new URL(url);
      for (const text of [url, href, password, plain, written, `Invalid URL: '${url}'`, `user:${plain}@db.example`]) {
        const shown = withoutPassword(`cannot connect: ${text}`, url);
        for (const secret of [written, password, plain]) {
          assertFalse(shown.includes(secret), `${shown} shows ${secret}`);
        }
      }
    }
    assertEquals(withoutPassword('no answer of db.example', 'postgres://db.example/jobs'), 'no answer of db.example');
  });
});
