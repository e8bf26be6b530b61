/** Where the three runtimes are on this machine, and how each of them starts a program of this repository. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export type RuntimeName = 'bun' | 'deno' | 'node';

export const repositoryRoot: string = fileURLToPath(new URL('..', import.meta.url));

export interface RuntimeCommand {
  readonly file: string;
  /** Arguments before the program's name. */
  readonly args: readonly string[];
}

/**
 * The real binary of a runtime that `npm i` installed, never a script in front of it: a signal must reach the node itself.
 * `offline` makes Deno read the packages from `node_modules` instead of its own cache.
 */
export function runtimeCommand(runtime: RuntimeName, offline: boolean): RuntimeCommand {
  switch (runtime) {
    case 'bun':
      return { file: installed(bunPackages(), 'bin/bun') ?? binary('bun'), args: ['run'] };
    case 'deno': {
      const modules = offline ? ['--node-modules-dir=manual'] : [];
      return { file: installed(denoPackages(), 'deno') ?? binary('deno'), args: ['run', '--allow-net', ...modules] };
    }
    case 'node':
      return { file: nodeBinary(), args: [] };
    default:
      return runtime satisfies never;
  }
}

function nodeBinary(): string {
  const found = installed(['node24', 'node24-linux-arm64'], 'bin/node');
  if (found !== undefined) return found;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const runsTypeScript = major > 22 || (major === 22 && minor >= 18);
  return runsTypeScript && !('bun' in process.versions || 'deno' in process.versions) ? process.execPath : 'node';
}

function bunPackages(): readonly string[] {
  const platform = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`;
  return [platform, `${platform}-musl`, `${platform}-baseline`];
}

function denoPackages(): readonly string[] {
  const platform = `@deno/${process.platform}-${process.arch}`;
  return [platform, `${platform}-glibc`];
}

function installed(packages: readonly string[], path: string): string | undefined {
  const require = createRequire(`${repositoryRoot}package.json`);
  const folders = require.resolve.paths('x') ?? [];
  return folders.flatMap((folder) => packages.map((name) => `${folder}/${name}/${path}`)).find((file) =>
    existsSync(file)
  );
}

function binary(name: string): string {
  const file = `${repositoryRoot}node_modules/.bin/${name}`;
  return existsSync(file) ? file : name;
}
