/** The package.json that is published, computed from the one of the repository. Pure. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Manifest = { readonly [key: string]: Json };

/** Only what a user of the package needs; scripts, dev dependencies and test runtimes stay here. */
const publishedFields = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'repository',
  'homepage',
  'bugs',
  'type',
  'sideEffects',
  'engines',
  'files',
  'bin',
  'imports',
  'exports',
  'dependencies',
  'optionalDependencies',
  'peerDependencies',
  'peerDependenciesMeta',
];

/**
 * What the adapter for Node listens with. The other optional dependencies are tools of this repository; they stand there
 * because Deno, which takes its packages from the same package.json, leaves optional ones alone: a node started with
 * `deno run` does not fetch compilers and other runtimes.
 */
const listenerPackages: ReadonlySet<string> = new Set(['@hono/node-server', 'ws']);

/** `./src/mod.ts` → `./dist/src/mod.js`, and `.d.ts` where types are asked for. */
export function publishedPath(path: string, types: boolean): string {
  if (!/^\.\/.*\.ts$/.test(path)) return path;
  const built = path.replace('./', './dist/');
  return /\.d\.ts$/.test(built) ? built : built.replace(/\.ts$/, types ? '.d.ts' : '.js');
}

function mapTargets(target: Json, types: boolean): Json {
  if (typeof target === 'string') return publishedPath(target, types);
  if (target === null || typeof target !== 'object' || Array.isArray(target)) return target;
  return Object.fromEntries(
    Object.entries(target).map(([key, value]) => [key, mapTargets(value, types || key === 'types')]),
  );
}

function listTargets(target: Json): string[] {
  if (typeof target === 'string') return [target];
  return target === null || typeof target !== 'object' ? [] : Object.values(target).flatMap(listTargets);
}

/** Throws when the result names a file that the build did not make. */
export function publishedManifest(source: Manifest, exists: (path: string) => boolean): Manifest {
  const manifest: Record<string, Json> = {};
  for (const field of publishedFields) {
    const value = source[field];
    if (value !== undefined) manifest[field] = value;
  }
  manifest['imports'] = mapTargets(source['imports'] ?? {}, false);
  manifest['exports'] = mapTargets(source['exports'] ?? {}, false);
  const { bin } = source;
  if (bin !== undefined) manifest['bin'] = mapTargets(bin, false);
  const optional = Object.entries((source['optionalDependencies'] ?? {}) as Record<string, string>);
  manifest['optionalDependencies'] = Object.fromEntries(optional.filter(([name]) => listenerPackages.has(name)));
  for (
    const path of [
      ...listTargets(manifest['imports']),
      ...listTargets(manifest['exports']),
      ...listTargets(bin ?? null),
    ]
  ) {
    if (!exists(path)) throw new Error(`the published package.json names ${path}, which was not built`);
  }
  return manifest;
}
