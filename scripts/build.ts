/**
 * `npm run build`: JavaScript and `.d.ts` of `src` and `adapters` in `dist`, and the same JavaScript in a few files in
 * `dist/server`. Three hundred modules took Node longer to find and open than to run; bundlers and isolates get them all the
 * same, since they leave out what is not needed module by module.
 *
 * The repository runs its TypeScript as it is, so its package.json points at `src`; what npm gets must point at `dist`,
 * because no runtime strips types under `node_modules`. `npm pack` and `npm publish` therefore call this with `--pack`
 * before (build, then put the published package.json in place) and with `--unpack` after (put the source one back).
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { bundleEntries, bundleFolder, type Manifest, publishedManifest } from './build/manifest.ts';
import { root } from './testing/files.ts';

const manifest = `${root}/package.json`;
const kept = `${root}/dist/package.source.json`;

function build(): void {
  if (existsSync(kept)) unpack();
  rmSync(`${root}/dist`, { recursive: true, force: true });
  const compiled = spawnSync(
    process.execPath,
    [`${root}/node_modules/typescript/bin/tsc`, '-p', 'tsconfig.build.json'],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  if (compiled.status !== 0) throw new Error('the build has type errors');
  copyFileSync(`${root}/src/transport/default_runtime.d.ts`, `${root}/dist/src/transport/default_runtime.d.ts`);
  // The command runs on servers alone.
  rmSync(`${root}/dist/cli`, { recursive: true, force: true });
  bundle();
}

/** One module is in one file, whichever names it is imported by: shared parts become files of their own. */
function bundle(): void {
  const entries = bundleEntries(JSON.parse(readFileSync(manifest, 'utf8')) as Manifest);
  const options = [
    '--bundle',
    '--splitting',
    '--format=esm',
    '--platform=node',
    '--target=node20',
    '--packages=external',
    '--external:#runtime',
    '--outbase=.',
    `--outdir=${bundleFolder}`,
    '--chunk-names=chunks/[name]-[hash]',
    '--log-level=warning',
  ];
  const bundled = spawnSync(`${root}/node_modules/.bin/esbuild`, [...entries, ...options], {
    cwd: root,
    stdio: 'inherit',
  });
  if (bundled.status !== 0) throw new Error(`the bundles were not made: ${bundled.error?.message ?? 'see above'}`);
}

function pack(): void {
  const source = readFileSync(manifest, 'utf8');
  const published = publishedManifest(JSON.parse(source), (path) => existsSync(`${root}/${path}`));
  copyFileSync(manifest, kept);
  writeFileSync(manifest, `${JSON.stringify(published, null, 2)}\n`);
}

function unpack(): void {
  if (existsSync(kept)) renameSync(kept, manifest);
}

try {
  if (process.argv.includes('--unpack')) unpack();
  else {
    build();
    if (process.argv.includes('--pack')) pack();
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
