import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { checkDefinition, isRefusal, parseJob } from '../../node/job_definition.ts';
import { limits } from '../../src/limits.ts';

const good = { id: 'tick', everyMs: 1000, url: 'http://127.0.0.1:9000/hook' };

function refusedField(body: unknown): string | undefined {
  const result = parseJob(body);
  return isRefusal(result) ? result.field : undefined;
}

describe('job definition', () => {
  test('takes a periodic job and a single run', () => {
    assertEquals(parseJob(good), good);
    assertEquals(parseJob({ id: 'once', at: '2026-12-31T23:59:59.5Z', url: 'https://example.org' }), {
      id: 'once',
      at: Date.UTC(2026, 11, 31, 23, 59, 59, 500),
      url: 'https://example.org/',
    });
    assertEquals(parseJob({ id: 'once', at: '2028-02-29T10:00+02:00', url: good.url }), {
      id: 'once',
      at: Date.UTC(2028, 1, 29, 8),
      url: good.url,
    });
  });

  test('names the field of everything it refuses', () => {
    const cases: readonly (readonly [unknown, string])[] = [
      [null, 'body'],
      [[], 'body'],
      ['x', 'body'],
      [{ ...good, every: 5 }, 'every'],
      [JSON.parse('{"id":"a","everyMs":1000,"url":"http://a/","__proto__":{}}'), '__proto__'],
      [{ ...good, id: undefined }, 'id'],
      [{ ...good, id: '' }, 'id'],
      [{ ...good, id: 7 }, 'id'],
      [{ ...good, id: '../x' }, 'id'],
      [{ ...good, id: '..' }, 'id'],
      [{ ...good, id: 'a b' }, 'id'],
      [{ ...good, id: 'x'.repeat(limits.jobIdChars + 1) }, 'id'],
      [{ ...good, url: undefined }, 'url'],
      [{ ...good, url: 'ftp://host/' }, 'url'],
      [{ ...good, url: 'file:///etc/passwd' }, 'url'],
      [{ ...good, url: 'javascript:alert(1)' }, 'url'],
      [{ ...good, url: '/hook' }, 'url'],
      [{ ...good, url: 'http://' }, 'url'],
      [{ ...good, url: 'http://user:pw@host/' }, 'url'],
      [{ ...good, url: `http://host/${'x'.repeat(limits.urlChars)}` }, 'url'],
      [{ ...good, everyMs: -1 }, 'everyMs'],
      [{ ...good, everyMs: 0 }, 'everyMs'],
      [{ ...good, everyMs: 1.5e3 + 0.5 }, 'everyMs'],
      [{ ...good, everyMs: '1000' }, 'everyMs'],
      [{ ...good, everyMs: null }, 'everyMs'],
      [{ ...good, everyMs: 1e15 }, 'everyMs'],
      [{ id: 'a', url: good.url }, 'everyMs'],
      [{ ...good, at: '2030-01-01T00:00:00Z' }, 'at'],
      [{ id: 'a', url: good.url, at: 5 }, 'at'],
      [{ id: 'a', url: good.url, at: 'tomorrow' }, 'at'],
      [{ id: 'a', url: good.url, at: '2030-01-01T00:00:00' }, 'at'],
      [{ id: 'a', url: good.url, at: '2030-02-30T00:00:00Z' }, 'at'],
      [{ id: 'a', url: good.url, at: '2030-13-01T00:00:00Z' }, 'at'],
      [{ id: 'a', url: good.url, at: '2030-01-01T25:00:00Z' }, 'at'],
    ];
    for (const [body, field] of cases) assertEquals(refusedField(body), field, JSON.stringify(body));
  });

  test('every rule is a plain sentence part', () => {
    const result = parseJob({ ...good, everyMs: -5 });
    assert(isRefusal(result));
    assertEquals(
      `${result.field}: ${result.rule}`,
      'everyMs: must be a whole number of milliseconds from 10 to 31622400000 (or give at for a single run)',
    );
  });

  test('checks the form that travels between nodes alike', () => {
    assertEquals(checkDefinition(good), good);
    const once = { id: 'once', at: Date.UTC(2030, 0, 1), url: good.url };
    assertEquals(checkDefinition(once), once);
    for (const bad of [undefined, 5, { ...once, at: NaN }, { ...once, at: 1e300 }, { ...once, everyMs: 5 }]) {
      assert(isRefusal(checkDefinition(bad)), JSON.stringify(bad));
    }
  });
});
