/** Every cell of the guarantee tables names tests, and they exist. */
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater } from '@std/assert';
import { profileNames } from '../../src/testkit/profiles.ts';

const root = new URL('../../', import.meta.url);
const text = await readFile(new URL('docs/guarantees.md', root), 'utf8');
const lines = text.split('\n');

/** By letter. */
const evidence = new Map(
  lines.flatMap((line) => {
    const [, letter, shown] = /^\| ([a-z]) \| (.*) \|$/.exec(line) ?? [];
    return letter === undefined || shown === undefined ? [] : [[letter, shown] as const];
  }),
);

/** Rows of the two tables of configurations and faults: those whose cells end in letters. */
const rows = lines.filter((line) => /^\| [^|]+\|/.test(line) && /\([a-z]\)/.test(line) && !/^\| [a-z] \|/.test(line));

/** Backticked files with the quoted names that follow them. */
function claims(shown: string): [file: string, names: string[]][] {
  return shown.split(/(?=`test\/)/).flatMap((part): [string, string[]][] => {
    const [, file] = /^`(test\/[^`]+)`/.exec(part) ?? [];
    return file === undefined ? [] : [[file, [...part.matchAll(/"([^"]+)"/g)].map(([, name]) => name!)]];
  });
}

describe('the guarantee tables', () => {
  test('there are rows, and every letter in a cell has its evidence, and every evidence a cell', () => {
    assertGreater(rows.length, 10);
    const used = new Set(rows.flatMap((row) => [...row.matchAll(/\(([a-z])\)/g)].map(([, letter]) => letter!)));
    assertEquals([...used].sort(), [...evidence.keys()].sort());
  });

  test('every cell says what happens, and names a test', () => {
    for (const row of rows) {
      const [name, ...cells] = row.split('|').slice(1, -1).map((cell) => cell.trim());
      for (const cell of cells) {
        assert(/\S .*\([a-z]\)|^nothing \([a-z]\)/.test(cell), `${name}: "${cell}" names no test`);
      }
    }
  });

  for (const [letter, shown] of evidence) {
    test(`${letter}: what it names exists`, async () => {
      const profiles = [...shown.matchAll(/profiles? ((?:`[a-z-]+`(?:, )?)+)/g)]
        .flatMap(([, names]) => [...names!.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name!));
      for (const profile of profiles) assert(profileNames().includes(profile), `there is no profile ${profile}`);
      const named = claims(shown);
      assertGreater(profiles.length + named.length, 0);
      for (const [file, names] of named) {
        const source = (await readFile(new URL(file, root), 'utf8')).replaceAll(/' \+\s+'/g, '');
        for (const name of names) {
          const found = source.split('\n').some((line) => /^\s*[^/*\s]/.test(line) && line.includes(name));
          assert(found, `${file} has no test "${name}"`);
        }
        if (names.length === 0) assertGreater(source.length, 0);
      }
    });
  }
});
