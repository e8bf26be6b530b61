/** What adapters leave alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';

const adapters = new URL('../../adapters/', import.meta.url);

test('FB-085: no adapter uses the broadcast of its runtime, which tells nobody what it dropped', () => {
  const files = readdirSync(adapters, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  assert(files.includes('bun/mod.ts'));
  const broadcast = /\.(publish|publishText|publishBinary|subscribe)\(|publishToSelf/;
  assertEquals(files.filter((name) => broadcast.test(readFileSync(new URL(name, adapters), 'utf8'))), []);
});
