/** The mutation check's patches must still fit the sources, and cover every rule. */
import { assertEquals, assertThrows } from '@std/assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { mutants, rules } from '../../scripts/mutants/list.ts';
import { mutated } from '../../scripts/mutants/mutant.ts';
import { tableOf, withTable } from '../../scripts/mutants/table.ts';
import { profileNames } from '../../src/testkit/profiles.ts';
import { programNames } from '../../src/testkit/programs.ts';
import { root } from '../../scripts/testing/files.ts';

const source = (file: string) => readFileSync(join(root, file), 'utf8');

describe('mutants', () => {
  for (const mutant of mutants) {
    test(`${mutant.name} still applies`, () => {
      const before = source(mutant.file);
      assertEquals(mutated(mutant, before) === before, false);
    });
  }

  test('each rule has one', () => {
    const covered = new Set(mutants.map((mutant) => mutant.rule));
    assertEquals(Object.keys(rules).filter((rule) => !covered.has(Number(rule))), []);
    assertEquals(mutants.length >= 25, true);
    assertEquals(new Set(mutants.map((mutant) => mutant.name)).size, mutants.length);
  });

  test('their programs and profiles exist', () => {
    for (const { program = 'singletons', profiles = [] } of mutants) {
      assertEquals(programNames().includes(program), true, program);
      assertEquals(profiles.filter((profile) => !profileNames().includes(profile)), []);
    }
  });

  test('a patch that fits nowhere, or twice, is refused', () => {
    const mutant = { name: 'm', rule: 1, what: 'w', file: 'f.ts', find: 'a', replace: 'b' };
    assertThrows(() => mutated(mutant, 'c'), Error, 'mutant m: 0 places in f.ts match, not one: a');
    assertThrows(() => mutated(mutant, 'a a'), Error, '2 places');
  });
});

describe('the table', () => {
  const [mutant] = mutants;
  const finding = { name: mutant?.name ?? '', found: 'S1', profile: 'flap', seed: 7, needed: 8 };

  test('shows what was found, and what was not', () => {
    const found = tableOf(mutants.slice(0, 1), new Map([[finding.name, finding]]));
    assertEquals(found.includes('| S1 | `flap`, 7 | 8 |'), true, found);
    assertEquals(tableOf(mutants.slice(0, 1), new Map()).includes('not found'), true);
  });

  test('takes the place of the old one', () => {
    const page = 'a\n<!-- mutants: written by npm run mutants -- --write -->\nold\n<!-- end of mutants -->\nb\n';
    const next = withTable(page, 'NEW');
    assertEquals(next.includes('old'), false);
    assertEquals(withTable(next, 'NEW'), next);
    assertThrows(() => withTable('nothing', 'NEW'), Error, 'are missing');
  });
});
