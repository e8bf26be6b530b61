import { describe, test } from 'node:test';
import { assertEquals, assertMatch, assertThrows } from '@std/assert';
import { readFileSync } from 'node:fs';
import { bundleEntries, publishedManifest, publishedPath } from '../../scripts/build/manifest.ts';

const source = {
  name: 'singlet',
  scripts: { test: 'x' },
  devDependencies: { typescript: '7' },
  optionalDependencies: { ws: '8', node24: 'npm:node@24', typescript: '7' },
  bin: { singlet: './cli/singlet.ts' },
  imports: {
    '#runtime': { types: './src/r.d.ts', bun: './adapters/bun/mod.ts', browser: './adapters/edge/mod.ts' },
  },
  exports: { '.': { types: './src/mod.ts', default: './src/mod.ts' }, './package.json': './package.json' },
};

const read = (path: string) => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'));

describe('the published package.json', () => {
  const published = publishedManifest(source, () => true);
  test('points at the build, types first', () => {
    assertEquals(published['exports'], {
      '.': {
        types: './dist/src/mod.d.ts',
        bun: './dist/server/src/mod.js',
        deno: './dist/server/src/mod.js',
        workerd: './dist/src/mod.js',
        browser: './dist/src/mod.js',
        node: './dist/server/src/mod.js',
        default: './dist/src/mod.js',
      },
      './package.json': './package.json',
    });
    assertEquals(published['imports'], {
      '#runtime': {
        types: './dist/src/r.d.ts',
        bun: './dist/server/adapters/bun/mod.js',
        browser: './dist/adapters/edge/mod.js',
      },
    });
  });
  test('asks for the same conditions in the same order everywhere: one process gets one copy of each class', () => {
    const { imports, exports } = publishedManifest(read('package.json'), () => true);
    const order = (target: object) => Object.keys(target).filter((condition) => condition !== 'types');
    const expected = order((imports as { '#runtime': object })['#runtime']);
    for (const target of Object.values(exports as Record<string, object | string>)) {
      if (typeof target === 'object') assertEquals(order(target), expected);
      if (typeof target === 'object') assertEquals(Object.keys(target)[0], 'types');
    }
  });
  test('what servers import by name or run is bundled', () => {
    const expected = ['./src/mod.ts', './adapters/bun/mod.ts', './adapters/edge/mod.ts', './cli/singlet.ts'];
    assertEquals(bundleEntries(source), expected);
  });
  test('leaves what only this repository needs behind', () => {
    assertEquals(Object.keys(published), ['name', 'bin', 'imports', 'exports', 'optionalDependencies']);
    assertEquals(published['optionalDependencies'], { ws: '8' });
    assertEquals(published['bin'], { singlet: './dist/server/cli/singlet.js' });
  });
  test('names only files that exist', () => {
    assertThrows(
      () => publishedManifest(source, (path) => !path.endsWith('mod.js')),
      Error,
      './dist/server/adapters/bun/mod.js',
    );
  });
  test('keeps paths that are not TypeScript', () => {
    assertEquals(publishedPath('./package.json', true), './package.json');
  });
});

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly hasInstallScript?: boolean;
}

describe('the supply chain', () => {
  const manifest = read('package.json') as Record<string, Record<string, string>>;
  const lock = read('package-lock.json') as {
    packages: Record<string, LockedPackage>;
  };

  test('S7: two dependencies, both pinned to one version', () => {
    assertEquals(Object.keys(manifest['dependencies']!).sort(), ['cbor-x', 'hono']);
    for (const [name, version] of Object.entries(manifest['dependencies']!)) {
      assertMatch(version, /^\d+\.\d+\.\d+$/);
      assertEquals(lock.packages[`node_modules/${name}`]?.version, version);
    }
  });

  test('S7: nothing that runs at install, neither ours nor of what a user gets', () => {
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare'];
    assertEquals(Object.keys(manifest['scripts']!).filter((name) => hooks.includes(name)), []);
    const scripted = Object.entries(lock.packages).filter(([, each]) => each.hasInstallScript).map(([path]) => path);
    // Two runtimes for the tests; the optional native part of cbor-x and the bundler, which are not allowed to and need none.
    assertEquals(
      scripted.sort(),
      ['node_modules/bun', 'node_modules/cbor-extract', 'node_modules/deno', 'node_modules/esbuild'],
    );
    const allowed = manifest['allowScripts'] as Record<string, unknown>;
    assertEquals([allowed['cbor-extract'], allowed['esbuild']], [false, false]);
  });

  test('S7: everything that npm fetches is pinned to a version and a SHA-512, and from nowhere in particular', () => {
    const local = Object.entries(lock.packages).filter(([, { integrity }]) => integrity === undefined);
    assertEquals(local.map(([path]) => path).sort(), ['', 'ci/std-assert', 'node_modules/@std/assert']);
    assertEquals(lock.packages['node_modules/@std/assert'], { resolved: 'ci/std-assert', link: true });
    for (const [path, { version, integrity, resolved }] of Object.entries(lock.packages)) {
      if (integrity === undefined) continue;
      assertMatch(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
      assertMatch(version ?? '', /^\d+\.\d+\.\d+/, path);
      assertEquals(resolved, undefined, path);
    }
  });

  test('S7: what a user gets with the package is the two dependencies, and what they may do without', () => {
    const needed = Object.entries(lock.packages).filter(([, { dev, optional, integrity }]) =>
      integrity !== undefined && dev !== true && optional !== true
    );
    assertEquals(
      needed.filter(([, each]) => !('devOptional' in each) && !('peer' in each)).map(([path]) => path).sort(),
      [
        'node_modules/cbor-x',
        'node_modules/hono',
      ],
    );
  });

  test('S7: the native part of cbor-x is not loaded: nothing of it is in the code that runs', () => {
    for (const file of ['src/wire/codec.ts']) {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      assertEquals(text.match(/from 'cbor-x[^']*'/g), ["from 'cbor-x/index-no-eval'"]);
    }
  });
});
