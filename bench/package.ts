/** The package as its users have it, JavaScript and installed, in a folder for temporary files. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { type Manifest, publishedManifest } from '../scripts/build/manifest.ts';

const program = `
import { ActorSystem } from 'singlet';
import { Cluster } from 'singlet/cluster';
const system = ActorSystem.create('bench', { logLevel: 'error' });
const cluster = await Cluster.join(system, {});
console.log('node http://' + cluster.address + '/');
`;

export interface InstalledPackage {
  /** A program that starts one node with an HTTP address and prints it. */
  readonly program: string;
  /** A program that does nothing, JavaScript like the other one. */
  readonly empty: string;
  remove(): void;
}

export function installPackage(root: string): InstalledPackage {
  execFileSync(process.execPath, ['scripts/launch.mjs', 'scripts/build.ts'], { cwd: root, stdio: 'ignore' });
  const folder = mkdtempSync(`${tmpdir()}/singlet-bench-`);
  const modules = `${folder}/node_modules`;
  mkdirSync(`${modules}/singlet`, { recursive: true });
  // Copied: a link would be resolved to the repository, whose manifest names the TypeScript sources.
  cpSync(`${root}/dist`, `${modules}/singlet/dist`, { recursive: true });
  const source = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as Manifest;
  const manifest = publishedManifest(source, (path) => existsSync(`${root}/${path}`));
  writeFileSync(`${modules}/singlet/package.json`, JSON.stringify(manifest));
  for (const name of ['hono', 'cbor-x', 'ws', '@hono']) {
    symlinkSync(`${root}/node_modules/${name}`, `${modules}/${name}`);
  }
  writeFileSync(`${folder}/package.json`, '{"type":"module"}');
  writeFileSync(`${folder}/start.mjs`, program);
  writeFileSync(`${folder}/empty.mjs`, '');
  return {
    program: `${folder}/start.mjs`,
    empty: `${folder}/empty.mjs`,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
