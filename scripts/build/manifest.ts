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

/** Where the bundles are: the same modules in a few files, which servers load in half the time. */
export const bundleFolder = './dist/server/';

/** `./src/mod.ts` → `./dist/server/src/mod.js`. */
function bundledPath(path: string): string {
  return publishedPath(path, false).replace('./dist/', bundleFolder);
}

/** Conditions of processes that load files; all others are bundlers and isolates, which leave out what they do not need. */
const servers: ReadonlySet<string> = new Set(['bun', 'deno', 'node']);

/**
 * Servers get the bundle everywhere, others nowhere: who got one module from here and one from there would have two of every
 * class. The order is that of `imports`.
 */
function mapExport(target: Json): Json {
  if (target === null || typeof target !== 'object' || Array.isArray(target)) return target;
  const { types, default: path } = target as { types?: Json; default?: Json };
  if (typeof types !== 'string' || typeof path !== 'string') return target;
  const [modules, bundle] = [publishedPath(path, false), bundledPath(path)];
  const chosen = { bun: bundle, deno: bundle, workerd: modules, browser: modules, node: bundle, default: modules };
  return { types: publishedPath(types, true), ...chosen };
}

function mapImport(target: Json): Json {
  if (target === null || typeof target !== 'object' || Array.isArray(target)) return target;
  return Object.fromEntries(
    Object.entries(target as Record<string, string>).map(([condition, path]) => [
      condition,
      servers.has(condition) ? bundledPath(path) : publishedPath(path, condition === 'types'),
    ]),
  );
}

const mapValues = (object: Json, map: (value: Json) => Json): Json =>
  Object.fromEntries(Object.entries(object as Record<string, Json>).map(([key, value]) => [key, map(value)]));

/** The sources that servers import by name or run: what the bundles are made of. */
export function bundleEntries(source: Manifest): string[] {
  const { exports, imports, bin } = source as Record<string, Json>;
  const targets = [exports, imports, bin].flatMap((field) => listTargets(field ?? null));
  return [...new Set(targets.filter((path) => /^\.\/.*\.ts$/.test(path) && !path.endsWith('.d.ts')))];
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
  manifest['imports'] = mapValues(source['imports'] ?? {}, mapImport);
  manifest['exports'] = mapValues(source['exports'] ?? {}, mapExport);
  const { bin } = source;
  if (bin !== undefined) manifest['bin'] = mapValues(bin, (path) => bundledPath(path as string));
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
