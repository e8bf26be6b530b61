/** What a package exports explains itself: in the editor, and in the reference that `npm run docs:api` makes. */
import { dirname, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { root } from '../../scripts/testing/files.ts';

const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly scripts: Readonly<Record<string, string>>;
};
const entries = Object.values(manifest.exports).flatMap((target) => typeof target === 'string' ? [] : [target.types]);

interface Found {
  readonly name: string;
  readonly file: string;
  readonly documented: boolean;
}

const declaration =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|interface|type|function\*?|const|let|enum) ([A-Za-z_$][\w$]*)/gm;
const list = /^export (?:type )?\{([^}]*)\}(?: from '([^']+)')?;/gm;

/** Everything that `file` exports, with where it is declared. */
function exportsOf(file: string): Found[] {
  const text = readFileSync(join(root, file), 'utf8');
  const found = new Map<string, Found>();
  // Overloads repeat a name; the first of them has the text.
  for (const { 1: name, index } of text.matchAll(declaration)) {
    if (!found.has(name!)) found.set(name!, { name: name!, file, documented: text.slice(0, index).endsWith('*/\n') });
  }
  for (const [, from] of text.matchAll(/^export \* from '([^']+)';/gm)) {
    for (const one of exportsOf(join(dirname(file), from!))) found.set(one.name, one);
  }
  for (const [, names, from] of text.matchAll(list)) {
    if (from === undefined) continue;
    const there = new Map(exportsOf(join(dirname(file), from)).map((one) => [one.name, one]));
    for (const item of names!.split(',').map((part) => part.trim().replace(/^type /, '')).filter(Boolean)) {
      const [own, given = own] = item.split(' as ') as [string, string?];
      const one = there.get(own);
      assert(one !== undefined, `${file} exports ${own}, which is not found in ${from}`);
      found.set(given, { ...one, name: given });
    }
  }
  return [...found.values()];
}

describe('docstrings', () => {
  test('every entry point says what it is for', () => {
    for (const entry of entries) assert(readFileSync(join(root, entry), 'utf8').startsWith('/**'), entry);
  });

  test('everything that an entry point exports has one', () => {
    assert(entries.length > 10, 'the entries are found');
    const all = entries.flatMap(exportsOf);
    assert(all.length > 300, `${all.length} exports are found`);
    const without = all.filter(({ documented }) => !documented).map(({ name, file }) => `${file}: ${name}`);
    assertEquals([...new Set(without)], []);
  });

  test('the reference covers every entry point', () => {
    // The adapters of runtimes have no API of their own beyond `runtime` and `dialler`.
    const covered = entries.filter((entry) => !/^\.\/adapters\/(bun|node)\//.test(entry));
    const script = manifest.scripts['docs:api']!;
    for (const entry of covered) assert(script.includes(entry.replace('./', ' ')), `docs:api leaves out ${entry}`);
  });
});
