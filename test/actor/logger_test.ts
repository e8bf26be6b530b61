import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import type { LogLevel } from '../../src/actor/environment.ts';
import {
  consoleLogger,
  errorFields,
  fieldsText,
  LevelLogger,
  messageKind,
  prefixLogger,
  safeLogger,
} from '../../src/actor/logger.ts';

function collecting(level: LogLevel): { log: LevelLogger; lines: string[] } {
  const lines: string[] = [];
  return { log: new LevelLogger(level, (severity, message) => lines.push(`${severity} ${message}`)), lines };
}

describe('logger', () => {
  const levels: readonly (readonly [LogLevel, number])[] = [['debug', 4], ['info', 3], ['warn', 2], ['error', 1], [
    'off',
    0,
  ]];
  for (const [level, count] of levels) {
    test(`level '${level}' lets ${count} of 4 severities pass`, () => {
      const { log, lines } = collecting(level);
      log.debug('a');
      log.info('b');
      log.warn('c');
      log.error('d');
      assertEquals(lines, ['debug a', 'info b', 'warn c', 'error d'].slice(4 - count));
    });
  }

  test('a prefix stands before each message, and the level is kept', () => {
    const { log, lines } = collecting('info');
    const own = prefixLogger(log, '/user/a');
    own.debug('hidden');
    own.error('shown');
    assertEquals([own.level, lines], ['info', ['error [/user/a] shown']]);
  });

  test('a safe log does not fail who logs', () => {
    const broken = new LevelLogger('debug', () => {
      throw new Error('disk full');
    });
    safeLogger(broken).error('x');
  });

  test('the console log is quiet below warn by default', () => {
    assertEquals(consoleLogger().level, 'warn');
    assertEquals(consoleLogger('error').level, 'error');
  });

  test('fields are one line, whatever they are', () => {
    const error = new TypeError('two\nlines');
    const text = fieldsText({ a: 1, big: 5n, error });
    assertEquals(text.split('\n').length, 1);
    assertStringIncludes(text, '{"a":1,"big":"5","error":"');
    assertStringIncludes(text, 'TypeError: two');
    assertEquals(fieldsText({ error }, false), '{"error":"TypeError: two\\nlines"}');
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    assertEquals(fieldsText(cycle), '(fields that cannot be shown)');
  });

  test('the kind of a message never shows its content', () => {
    class Job {}
    const cases: readonly (readonly [unknown, string])[] = [
      [{ kind: 'inc', secret: 1 }, 'inc'],
      [{ type: 'dec' }, 'dec'],
      [{ kind: 5 }, 'Object'],
      [new Job(), 'Job'],
      [Object.create(null), 'object'],
      ['text', 'string'],
      [null, 'null'],
      [undefined, 'undefined'],
      [[1], 'Array'],
    ];
    for (const [message, kind] of cases) assertEquals(messageKind(message), kind);
  });

  test('errors become fields with their stack', () => {
    const fields = errorFields(new TypeError('bad'));
    assertEquals(fields.error, 'TypeError: bad');
    assertStringIncludes(fields.stack ?? '', 'logger_test');
    assertEquals(errorFields('text'), { error: 'text' });
  });
});
