import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { publishedManifest, publishedPath } from '../../scripts/build/manifest.ts';

const source = {
  name: 'singlet',
  scripts: { test: 'x' },
  devDependencies: { typescript: '7' },
  optionalDependencies: { ws: '8', node24: 'npm:node@24', typescript: '7' },
  bin: { singlet: './cli/singlet.ts' },
  imports: { '#runtime': { types: './src/r.d.ts', bun: './adapters/bun/mod.ts' } },
  exports: { '.': { types: './src/mod.ts', default: './src/mod.ts' }, './package.json': './package.json' },
};

describe('the published package.json', () => {
  const published = publishedManifest(source, () => true);
  test('points at the build, types first', () => {
    assertEquals(published['exports'], {
      '.': { types: './dist/src/mod.d.ts', default: './dist/src/mod.js' },
      './package.json': './package.json',
    });
    assertEquals(Object.keys((published['exports'] as { '.': object })['.']), ['types', 'default']);
    assertEquals(published['imports'], {
      '#runtime': { types: './dist/src/r.d.ts', bun: './dist/adapters/bun/mod.js' },
    });
  });
  test('leaves what only this repository needs behind', () => {
    assertEquals(Object.keys(published), ['name', 'bin', 'imports', 'exports', 'optionalDependencies']);
    assertEquals(published['optionalDependencies'], { ws: '8' });
    assertEquals(published['bin'], { singlet: './dist/cli/singlet.js' });
  });
  test('names only files that exist', () => {
    assertThrows(
      () => publishedManifest(source, (path) => !path.endsWith('mod.js')),
      Error,
      './dist/adapters/bun/mod.js',
    );
  });
  test('keeps paths that are not TypeScript', () => {
    assertEquals(publishedPath('./package.json', true), './package.json');
  });
});
