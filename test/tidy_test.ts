/** The rules of the house, checked as programs: sizes, import direction, globals, texts, mirrored tests. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { describe, test } from 'node:test';
import { assert, assertEquals, fail } from '@std/assert';
import { listFiles, root } from '../scripts/testing/files.ts';
import * as rules from '../scripts/tidy/rules.ts';
import { listBodies, listImports, maskText, type Problem, type SourceFile } from '../scripts/tidy/source.ts';

const isText = /\.(ts|mjs|js|json|md|toml|yml|yaml|html|css|sh)$|(^|\/)(LICENSE|run|\.npmrc|\.gitignore)$/;
const files: readonly SourceFile[] = listFiles()
  .filter((path) => isText.test(path))
  .map((path) => ({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));

function assertTidy(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  const lines = problems.map(({ path, line, message }) => `${path}:${line} ${message}`);
  fail(`${problems.length} problems:\n${lines.join('\n')}`);
}

/** The registry that this machine installs from, whatever it is, must not be in a committed file. */
function registryOfThisMachine(): { pattern: RegExp; why: string }[] {
  const url = process.env['npm_config_registry'];
  if (url === undefined || !URL.canParse(url)) return [];
  return [{
    pattern: new RegExp(RegExp.escape?.(new URL(url).host) ?? new URL(url).host, 'g'),
    why: 'a package registry',
  }];
}

describe('tidy', () => {
  test('there are files to check', () => {
    assert(files.length > 20, `found ${files.length} files`);
    assert(files.some((file) => file.path.startsWith('src/')));
  });
  test('files stay small', () => assertTidy(files.flatMap(rules.fileSize)));
  test('functions stay small', () => assertTidy(files.flatMap(rules.functionSize)));
  test('imports run one way', () => assertTidy(files.flatMap(rules.importDirection)));
  test('src is pure', () => assertTidy(files.flatMap(rules.pureGlobals)));
  test('no foreign text is committed', () => {
    assertTidy(files.flatMap(rules.foreignTexts(registryOfThisMachine())));
  });
  test('no test is switched off', () => assertTidy(files.flatMap(rules.focusedTests)));
  test('every file with logic has its test', () => assertTidy(rules.mirrorTests(files)));
  test('no exception is stale', () => assertTidy(rules.staleExceptions(files)));
});

describe('the rules find what they are for', () => {
  const found = (rule: rules.Rule, path: string, text: string) => rule({ path, text }).length;

  test('sizes', () => {
    assertEquals(found(rules.fileSize, 'src/a.ts', '\n'.repeat(321)), 1);
    assertEquals(found(rules.fileSize, 'src/a.ts', '\n'.repeat(320)), 0);
    const body = '  f();\n'.repeat(90);
    for (
      const head of [
        'function a(): Map<string, () => void> ',
        'const a = async (b: { c: 1 }) => ',
        'class A { a<T>(b = f()): T ',
      ]
    ) {
      assertEquals(
        found(rules.functionSize, 'src/a.ts', `${head}{\n${body}}${head.startsWith('class') ? '}' : ''}`),
        1,
        head,
      );
    }
    assertEquals(found(rules.functionSize, 'src/a.ts', `class A {\n${'  a() {}\n'.repeat(90)}}`), 0);
  });

  test('import direction', () => {
    const rule = rules.importDirection;
    assertEquals(found(rule, 'src/actor/a.ts', "import { b } from '../wire/b.ts';"), 1);
    assertEquals(found(rule, 'src/wire/a.ts', "import { b } from '../actor/b.ts';"), 0);
    assertEquals(found(rule, 'src/cluster/a.ts', "import type { B } from '../singleton/b.ts';"), 1);
    assertEquals(found(rule, 'src/actor/a.ts', "import {\n  b,\n} from 'node:fs';"), 1);
    assertEquals(found(rule, 'src/actor/a.ts', "const b = await import('../http/b.ts');"), 1);
    assertEquals(found(rule, 'src/wire/a.ts', "import { Encoder } from 'cbor-x/index-no-eval';"), 0);
    assertEquals(found(rule, 'src/http/a.ts', "import { b } from '../../adapters/bun/b.ts';"), 1);
    assertEquals(found(rule, 'adapters/bun/a.ts', "import { b } from '../../src/cluster/gossip.ts';"), 1);
    assertEquals(found(rule, 'src/actor/a.ts', "import { limits } from '../limits.ts';"), 0);
  });

  test('globals', () => {
    const rule = rules.pureGlobals;
    for (
      const use of [
        'Date.now()',
        'Math.random()',
        'setTimeout(f)',
        'process.env',
        'console.log(1)',
        'Bun.file',
        'Buffer.from',
      ]
    ) {
      assertEquals(found(rule, 'src/a.ts', `const a = ${use};`), 1, use);
      assertEquals(found(rule, 'src/a.ts', `// ${use}\nconst a = '${use}' + \`${use}\`;`), 0, use);
    }
    assertEquals(found(rule, 'src/a.ts', 'const a = `${Date.now()}`;'), 1);
    assertEquals(found(rule, 'src/a.ts', 'timers.setTimeout(f); process(message);'), 0);
  });

  test('texts', () => {
    const rule = rules.foreignTexts([]);
    for (
      const text of [['/ro', 'ot/x'], ['see #', '12'], ['"resolved": "', 'https://x'], ['TO', 'DO later'], [
        'https://registry',
        '.example.org/x',
      ]]
    ) {
      assertEquals(found(rule, 'src/a.ts', text.join('')) > 0, true, text.join(''));
    }
    for (const text of ['https://example.org/a', '#12ab34', 'a#1', 'src/root.ts', '`/cluster/seed`']) {
      assertEquals(found(rule, 'src/a.ts', text), 0, text);
    }
  });

  test('tests that are switched off', () => {
    assertEquals(found(rules.focusedTests, 'test/a_test.ts', 'test.on' + "ly('a', f)"), 1);
    assertEquals(found(rules.focusedTests, 'test/a_test.ts', "test('a', { skip: missing('etcd') }, f)"), 0);
  });

  test('mirrored tests', () => {
    const logic = { path: 'src/actor/a.ts', text: 'export function a() {}' };
    assertEquals(rules.mirrorTests([logic]).length, 1);
    assertEquals(rules.mirrorTests([logic, { path: 'test/actor/a_test.ts', text: '' }]).length, 0);
    const text = "import { a } from '../../src/actor/a.ts';";
    assertEquals(rules.mirrorTests([logic, { path: 'test/actor/b_test.ts', text }]).length, 0);
    assertEquals(rules.mirrorTests([logic, { path: 'test/wire/b_test.ts', text }]).length, 1);
    assertEquals(
      rules.mirrorTests([{ path: 'src/a.ts', text: 'export interface A { b: () => void }\nexport const c = 1;' }]),
      [],
    );
  });
});

describe('the scanner', () => {
  test('masks strings, templates, comments and regular expressions', () => {
    const masked = maskText("a('x{') /* { */ + `y{${b('}')}}` + /[/{]\\/{/.test(c) / 2; // {\nd");
    assertEquals(masked.replaceAll(/\s+/g, ''), 'a()+b()+.test(c)/2;d');
  });
  test('keeps offsets', () => {
    const text = "const a = 'x'; // y\nconst b = `z${a}`;\n";
    assertEquals(maskText(text).length, text.length);
    assertEquals(maskText(text).split('\n').length, text.split('\n').length);
  });
  test('finds bodies and imports', () => {
    const text = "import type { A } from './a.ts';\nexport * from './b.ts';\nif (a) {\n}\nfunction f() {\n}\n";
    assertEquals(listBodies(maskText(text)).map((body) => body.name), ['f']);
    assertEquals(listImports(text).map((item) => [item.specifier, item.typeOnly]), [['./a.ts', true], [
      './b.ts',
      false,
    ]]);
  });
});
