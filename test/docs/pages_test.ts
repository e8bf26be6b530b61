/** The documentation is true as far as programs can tell: its code compiles, its commands parse, its links lead somewhere. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assert, assertEquals, fail } from '@std/assert';
import { parseCommandLine } from '../../cli/arguments.ts';
import { commands as cliCommands, commonFlags, remoteFlags } from '../../cli/commands.ts';
import { exitCodeTexts } from '../../cli/exit_codes.ts';
import { parseFlags } from '../../node/flags.ts';
import {
  anchorsOf,
  asModule,
  type Block,
  blocksOf,
  commandsOf,
  exportedNames,
  fileOf,
  linksOf,
} from '../../scripts/docs/pages.ts';
import { listFiles, root } from '../../scripts/testing/files.ts';
import { partNames } from '../../scripts/testing/parts.ts';
import { createApp } from '../../src/http/app.ts';
import { fakeInspection } from '../http/fake_inspection.ts';

const pages = listFiles().filter((path) => /^(?:[A-Z]+|docs\/[\w/-]+)\.md$/.test(path));
const texts = new Map(pages.map((path) => [path, readFileSync(`${root}/${path}`, 'utf8')]));
const blocks = pages.flatMap((path) => blocksOf(path, texts.get(path)!));
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const work = `${root}/.tmp/docs`;

/** The names of each entry point, by its specifier. */
function entryNames(): Map<string, Set<string>> {
  const entries = new Map<string, Set<string>>();
  for (const [name, target] of Object.entries<{ default: string } | string>(manifest.exports)) {
    if (typeof target === 'string') continue;
    const path = `${root}/${target.default}`;
    const folder = path.slice(0, path.lastIndexOf('/'));
    const star = (specifier: string) => readFileSync(`${folder}/${specifier}`, 'utf8');
    entries.set(`singlet${name.slice(1)}`, exportedNames(readFileSync(path, 'utf8'), star));
  }
  return entries;
}

const at = ({ page, line }: { page: string; line: number }) => `${page}:${line}`;

describe('code', () => {
  test('every block says its language, and none is left out', () => {
    const known = new Set(['ts', 'sh', 'json', 'yaml', 'text', 'dockerfile', 'promql']);
    assertEquals(
      blocks.filter(({ language }) => !known.has(language)).map((block) => `${at(block)} ${block.language}`),
      [],
    );
    assert(blocks.filter(({ language }) => language === 'ts').length > 10);
  });

  test('TypeScript compiles', async () => {
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    const entries = entryNames();
    const sources = blocks.filter(({ language }) => language === 'ts');
    sources.forEach((block, index) => {
      const folder = `${work}/${block.page.replaceAll(/\W/g, '_')}`;
      mkdirSync(folder, { recursive: true });
      writeFileSync(`${folder}/block_${index}.ts`, asModule(block, entries));
      // Others of its page import it under this name.
      const name = fileOf(block);
      if (name !== undefined) writeFileSync(`${folder}/${name}`, `export * from './block_${index}.ts';\n`);
    });
    const config = {
      extends: '../../tsconfig.base.json',
      compilerOptions: {
        lib: ['es2023', 'webworker'],
        types: ['node', 'bun-types', 'deno'],
        verbatimModuleSyntax: false,
        noUnusedLocals: false,
      },
      include: ['*/*.ts', '../../test/docs/prelude.d.ts'],
    };
    writeFileSync(`${work}/tsconfig.json`, JSON.stringify(config));
    const args = [`${root}/node_modules/typescript/bin/tsc`, '-p', `${work}/tsconfig.json`, '--pretty', 'false'];
    const problems = await promisify(execFile)(process.execPath, args, { cwd: root }).then(
      () => '',
      (error) => error.stdout,
    );
    const told = problems.trim().replaceAll(
      /^.*block_(\d+)\.ts\((\d+),/gm,
      (_: string, index: string, line: string) => {
        const block = sources[Number(index)]!;
        return `${block.page}:${block.line + Number(line) - 2} (`;
      },
    );
    assertEquals(told, '');
    rmSync(work, { recursive: true, force: true });
  });

  test('JSON parses', () => {
    for (const block of blocks.filter(({ language }) => language === 'json')) {
      for (const text of block.text.split(/\n\n/)) {
        try {
          JSON.parse(text);
        } catch (error) {
          fail(`${at(block)}: ${error}`);
        }
      }
    }
  });

  test('the API reference can be made', async () => {
    const { 'docs:api': command } = manifest.scripts;
    const output = '.tmp/reference/api';
    rmSync(`${root}/.tmp/reference`, { recursive: true, force: true });
    const targets = command.split(' ').filter((arg: string) => arg.endsWith('.ts'));
    const entries = Object.values<{ default?: string }>(manifest.exports).flatMap(({ default: path }) => path ?? []);
    for (const target of targets) assert(entries.includes(`./${target}`), `${target} is no entry point`);
    const env = { ...process.env, PATH: `${root}/node_modules/.bin:${process.env.PATH}` };
    await promisify(execFile)('sh', ['-c', command.replaceAll('dist/api', output)], { cwd: root, env });
    assert(existsSync(`${root}/${output}/index.html`));
    rmSync(`${root}/.tmp/reference`, { recursive: true, force: true });
  });
});

describe('commands', () => {
  const shell: { line: string; words: readonly string[] }[] = blocks.filter(({ language }) => language === 'sh')
    .flatMap((block) => commandsOf(block).map(({ line, words }) => ({ line: `${block.page}:${line}`, words })));

  test('scripts of the package exist, and parts of the tests too', () => {
    for (const { line, words } of shell) {
      if (words[0] !== 'npm') continue;
      if (words[1] === 'run') assert(words[2] !== undefined && words[2] in manifest.scripts, `${line}: ${words[2]}`);
      const only = words.indexOf('--only');
      if (words[1] === 'test' && only > 0) {
        for (const part of words[only + 1]!.split(',')) assert(partNames.includes(part), `${line}: no part ${part}`);
      }
    }
  });

  test('programs exist', () => {
    for (const { line, words } of shell) {
      for (const word of words) {
        if (/^[\w/-]+\.ts$/.test(word) && !word.startsWith('my-')) {
          assert(existsSync(`${root}/${word}`), `${line}: ${word}`);
        }
      }
    }
  });

  test('flags of the ready-made node are flags of it', () => {
    let found = 0;
    for (const { line, words } of shell) {
      const script = words.join(' ').startsWith('npm run node -- ');
      const start = script ? 3 : words.indexOf('node.ts');
      if (start < 0) continue;
      found += 1;
      const flags = words.slice(start + 1).map((word) => word.replace(/\b[A-Z]{3,}\b/g, '1').replace(/^&$/, ''));
      const result = parseFlags(flags.filter((word) => word !== ''));
      assert(result.kind !== 'wrong', `${line}: ${result.kind === 'wrong' && result.line}`);
    }
    assert(found > 2);
  });

  test('commands of the tool parse', () => {
    let found = 0;
    for (const { line, words } of shell) {
      const start = words.findIndex((word) => /^(?:npm:)?singlet$/.test(word));
      if (start < 0 || words.includes('install') || words.includes('i') || words.includes('add')) continue;
      found += 1;
      const result = parseCommandLine(words.slice(start + 1).filter((word) => word !== '--'));
      assert(result.kind !== 'wrong', `${line}: ${result.kind === 'wrong' && result.line}`);
    }
    assert(found > 5);
  });

  test('paths that are asked for are there', async () => {
    const app = createApp(fakeInspection().inspection);
    const asked = shell.filter(({ words }) => words[0] === 'curl')
      .flatMap(({ line, words }) =>
        words.filter((word) => /^https?:|^[\w.]+:\d+\//.test(word)).map((url) => ({ line, url }))
      );
    const probed = blocks.filter(({ language }) => language === 'yaml').flatMap((block) =>
      [...block.text.matchAll(/\bpath: (\/[\w/:-]*)/g)].map((match) => ({
        line: at(block),
        url: `http://node${match[1]}`,
      }))
    );
    assert(asked.length > 3 && probed.length > 0);
    for (const { line, url } of [...asked, ...probed]) {
      const path = new URL(url.includes('://') ? url : `http://${url}`).pathname;
      if (path.startsWith('/jobs')) continue;
      const { status } = await app.request(path.replace(/singletons\/[^/]+/, 'singletons/jobs'));
      assert(status !== 404, `${line}: there is nothing at ${path}`);
    }
  });
});

describe('what pages say', () => {
  test('links lead somewhere', () => {
    for (const [page, text] of texts) {
      for (const link of linksOf(page, text)) {
        if (/^[a-z]+:/.test(link.target)) continue;
        const [path = '', anchor] = link.target.split('#');
        const folder = page.includes('/') ? page.slice(0, page.lastIndexOf('/') + 1) : '';
        const target = path === '' ? page : new URL(path, `file:///${folder}`).pathname.slice(1);
        assert(existsSync(`${root}/${target}`), `${at(link)}: ${link.target}`);
        if (anchor !== undefined) {
          assert(
            anchorsOf(readFileSync(`${root}/${target}`, 'utf8')).has(anchor),
            `${at(link)}: no heading #${anchor}`,
          );
        }
      }
    }
  });

  test('tests that are named exist', () => {
    const files = listFiles();
    for (const [page, text] of texts) {
      for (const [, path = ''] of text.matchAll(/`(test\/[\w/]+_test\.ts)`/g)) {
        assert(files.includes(path), `${page}: there is no ${path}`);
      }
    }
  });

  test('the README is short, shows pictures, and knows every page', () => {
    const readme = texts.get('README.md')!;
    assert(readme.split('\n').length < 250);
    assert(/!\[[^\]]+\]\(docs\/pictures\//.test(readme));
    const reached = new Set(['README.md']);
    for (const page of reached) {
      const folder = page.includes('/') ? page.slice(0, page.lastIndexOf('/') + 1) : '';
      for (const { target } of linksOf(page, texts.get(page) ?? '')) {
        if (/\.md(?:#|$)/.test(target) && !/^[a-z]+:/.test(target)) {
          reached.add(new URL(target, `file:///${folder}`).pathname.slice(1));
        }
      }
    }
    for (const page of pages) assert(reached.has(page) || !page.startsWith('docs/'), `no link leads to ${page}`);
    const index = readFileSync(`${root}/llms.txt`, 'utf8');
    for (const link of linksOf('llms.txt', index)) assert(existsSync(`${root}/${link.target}`), link.target);
  });

  test('docs/http.md names every path, error code and event', () => {
    const text = texts.get('docs/http.md')!;
    const app = createApp(fakeInspection().inspection);
    const paths = new Set(
      app.routes.filter(({ method }) => method === 'GET' || method === 'POST').map(({ path }) => path),
    );
    for (const path of paths) assert(text.includes(`${path}\``) || text.includes(`${path} `), `no ${path}`);
    const sources = listFiles('src/http').map((path) => readFileSync(`${root}/${path}`, 'utf8')).join('\n');
    for (const [, code] of sources.matchAll(/\bcode: '([\w-]+)'/g)) assert(text.includes(`\`${code}\``), `no ${code}`);
    const kinds = /type InspectionEventKind =([^;]*);/.exec(sources)?.[1] ?? '';
    for (const [, kind] of kinds.matchAll(/'([\w-]+)'/g)) assert(text.includes(`\`${kind}\``), `no ${kind}`);
  });

  test('docs/cli.md names every command, flag and exit code', () => {
    const text = texts.get('docs/cli.md')!;
    for (const command of cliCommands) {
      assert(text.includes(`singlet ${command.name}`), command.name);
      for (const { name } of [...command.flags, ...remoteFlags, ...commonFlags]) {
        assert(text.includes(`--${name}`), name);
      }
    }
    for (const [code, about] of exitCodeTexts) assert(text.includes(`| ${code} | ${about} |`), `${code} ${about}`);
  });
});

describe('the reader of pages', () => {
  const page =
    "# A b: c\n\n```ts\nconst a = 1;\n```\n\n[x](y.md#z) `[no](no)`\n\n```sh\n# c\nnpm run a -- \\\n  --b 'c d' && e  # f\n```\n";
  test('blocks, links and anchors', () => {
    assertEquals(blocksOf('p', page).map(({ line, language, text }) => [line, language, text.length]), [[4, 'ts', 12], [
      10,
      'sh',
      40,
    ]]);
    assertEquals(linksOf('p', page).map(({ line, target }) => [line, target]), [[7, 'y.md#z']]);
    assertEquals([...anchorsOf(page)], ['a-b-c']);
  });
  test('commands', () => {
    assertEquals(commandsOf(blocksOf('p', page)[1] as Block).map(({ words }) => words), [
      ['npm', 'run', 'a', '--', '--b', 'c d'],
      ['e'],
    ]);
  });
  test('names, and imports that a fragment lacks', () => {
    const names = exportedNames(
      "export { A, type B, C as D } from './a.ts';\nexport * from './b.ts';",
      () => 'export class E {}',
    );
    assertEquals([...names], ['A', 'B', 'D', 'E']);
    const block: Block = { page: 'p', line: 1, language: 'ts', text: 'class A {}\nconst x: B = new E(); x.D;' };
    assertEquals(asModule(block, new Map([['s', names]])).split('\n')[0], "import { B, E } from 's';");
  });
});
