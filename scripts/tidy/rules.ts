/** The rules of the house, as pure functions from a file to what is wrong with it. Their data is in `house.ts`. */
import { allowedImports, bannedGlobals, bannedTexts, contractFiles, house, realEnvironment } from './house.ts';
import { lineAt, listBodies, listImports, maskText, type Problem, type SourceFile } from './source.ts';

export type Rule = (file: SourceFile) => Problem[];

const isTypeScript = (path: string) => path.endsWith('.ts');
const isTest = (path: string) => path.startsWith('test/');

/** Files stay near 300 lines; tests may be longer. */
export const fileSize: Rule = ({ path, text }) => {
  const limit = isTest(path) ? house.maxTestFileLines : house.maxFileLines;
  const lines = text.split('\n').length - 1;
  if (!isTypeScript(path) || lines <= limit) return [];
  return [{ path, line: lines, message: `${lines} lines; split it at a seam (limit ${limit})` }];
};

export const functionSize: Rule = ({ path, text }) => {
  if (!isTypeScript(path) || isTest(path)) return [];
  return listBodies(maskText(text))
    .filter((body) => body.lines > house.maxFunctionLines)
    .map(({ name, line, lines }) => ({
      path,
      line,
      message: `${name} has ${lines} lines (limit ${house.maxFunctionLines})`,
    }));
};

/** A folder may import the folders below it; a type from above only where `house.ts` lists it. */
export const importDirection: Rule = ({ path, text }) => {
  const from = folderOf(path);
  const allowed = allowedImports[from];
  if (allowed === undefined) return [];
  const problems: Problem[] = [];
  for (const { line, specifier, typeOnly } of listImports(text)) {
    const target = resolvePath(path, specifier);
    const wrong = target === undefined ? outsideImport(from, specifier) : insideImport(path, target, typeOnly, allowed);
    if (wrong !== undefined) problems.push({ path, line, message: wrong });
  }
  return problems;
};

function outsideImport(from: string, specifier: string): string | undefined {
  if (from === 'adapters') return undefined;
  const fine = house.runtimePackages.some((name) => specifier === name || specifier.startsWith(`${name}/`)) ||
    specifier === '#runtime';
  return fine ? undefined : `imports ${specifier}; src depends on ${house.runtimePackages.join(' and ')} only`;
}

/** What every layer may look at: bounds and switches. */
const ofAll: ReadonlySet<string> = new Set(['src/limits.ts', 'src/fast_paths.ts']);

function insideImport(path: string, target: string, typeOnly: boolean, allowed: readonly string[]): string | undefined {
  const from = folderOf(path);
  const to = folderOf(target);
  if (!target.endsWith('.ts')) return `imports ${target}: a relative import ends in .ts`;
  if (to === from || ofAll.has(target)) return undefined;
  if (from === 'adapters' && contractFiles.test(target)) return undefined;
  if (allowed.includes(to)) return undefined;
  const exception = house.typesUpward.some((item) => path.startsWith(item.from) && target.startsWith(item.to));
  if (typeOnly && exception) return undefined;
  return `${from} imports ${typeOnly ? 'a type from' : ''} ${target}: allowed are ${allowed.join(', ') || 'no others'}`;
}

/** `src/actor/cell.ts` → `actor`, `src/mod.ts` → `src`, `adapters/bun/mod.ts` → `adapters`. */
export function folderOf(path: string): string {
  const [top = '', second = ''] = path.split('/');
  return top === 'src' ? (second.endsWith('.ts') ? 'src' : second) : top;
}

function resolvePath(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const parts = path.split('/').slice(0, -1);
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/');
}

/** Time, timers, randomness and runtime globals come in through `Environment` and the runtime contract only. */
export const pureGlobals: Rule = ({ path, text }) => {
  if (!path.startsWith('src/') || !isTypeScript(path)) return [];
  const masked = maskText(text);
  // A variable of that name; the real one does not type-check in src.
  const ownProcess = /\b(?:const|let)\s+process\b|\bprocess\s*:/.test(masked);
  return bannedGlobals
    .filter(({ kind }) => !realEnvironment.some((item) => item.path === path && item.uses.includes(kind)))
    .flatMap(({ pattern, instead }) =>
      [...masked.matchAll(pattern)].filter(([word]) => !(ownProcess && word.startsWith('process'))).map((match) => ({
        path,
        line: lineAt(text, match.index),
        message: `${match[0].trim()} in a pure file; ${instead}`,
      }))
    );
};

/** Texts that must not be committed anywhere. */
export function foreignTexts(extra: readonly { pattern: RegExp; why: string }[]): Rule {
  return ({ path, text }) =>
    [...bannedTexts, ...extra].flatMap(({ pattern, why, only }: { pattern: RegExp; why: string; only?: RegExp }) => {
      if (only !== undefined && !only.test(path)) return [];
      return [...text.matchAll(pattern)].map((match) => ({
        path,
        line: lineAt(text, match.index),
        message: `${JSON.stringify(match[0].trim())}: ${why}`,
      }));
    });
}

/** A test that is switched off for good, or that switches off the others. A skip with a condition and a reason is fine. */
export const focusedTests: Rule = ({ path, text }) => {
  if (!/_test\.ts$/.test(path)) return [];
  const masked = maskText(text);
  const pattern = /\b(?:test|it|describe|suite)\.(?:only|skip|todo)\b|\b(?:only|skip|todo):\s*true\b/g;
  return [...masked.matchAll(pattern)].map((match) => ({
    path,
    line: lineAt(text, match.index),
    message: `${match[0]} left in a test`,
  }));
};

/** Does a file hold anything that runs, apart from constants and types? */
export function hasLogic(text: string): boolean {
  const masked = maskText(text).replaceAll(/\bdeclare\s+(?:abstract\s+)?(?:function|class|const)\b/g, '');
  return /\bfunction\b|\bclass\s+\w/.test(masked) || /\b(?:const|let)\s+\w+[^=;]*=[^;]*?=>/.test(masked);
}

/** `src/actor/mailbox.ts` → `test/actor/mailbox_test.ts`. */
export function mirrorOf(path: string): string {
  const inside = path.startsWith('src/') ? path.slice('src/'.length) : path;
  return `test/${inside.replace(/\.ts$/, '_test.ts')}`;
}

/**
 * A file with logic is tested by the file of its name, or by another test of the same folder that imports it, itself or
 * through files of that folder; one that only runs through others must be listed in `testedElsewhere`, with the test that
 * runs it.
 */
export function mirrorTests(files: readonly SourceFile[]): Problem[] {
  const paths = new Set(files.map((file) => file.path));
  const imported = withNeighbours(directImports(files), files);
  return files
    .filter(({ path }) => /^(src|adapters)\//.test(path) && isTypeScript(path) && !path.endsWith('.d.ts'))
    .filter(({ path }) =>
      !/(?:\/mod|errors?)\.ts$/.test(path) && !house.testedElsewhere.some((item) => item.path === path)
    )
    .filter(({ path, text }) => hasLogic(text) && !paths.has(mirrorOf(path)) && !imported.has(path))
    .map(({ path }) => ({ path, line: 1, message: `has no test: expected ${mirrorOf(path)}` }));
}

/** Source files that a test (or its fixture) in their mirrored folder, or a contract suite, imports by name. */
function directImports(files: readonly SourceFile[]): Set<string> {
  const imported = new Set<string>();
  const adapters = files.map(({ path }) => path).filter((path) => /^adapters\/\w+\/mod\.ts$/.test(path));
  for (const { path, text } of files) {
    if (!/^test\/.*\.ts$/.test(path)) continue;
    const folder = path.slice(0, path.lastIndexOf('/'));
    for (const { specifier, typeOnly } of listImports(text)) {
      // The contract suites run against the adapter of whatever runtime runs them.
      if (specifier === '#runtime' && folder === 'test/contract') {
        for (const adapter of adapters) imported.add(adapter);
      }
      const target = typeOnly ? undefined : resolvePath(path, specifier);
      if (target === undefined) continue;
      const mirrored = mirrorOf(target);
      const home = mirrored.slice(0, mirrored.lastIndexOf('/'));
      if (folder === home || folder.startsWith(`${home}/`) || folder === 'test/contract') imported.add(target);
    }
  }
  return imported;
}

/** Adds what the tested files import from their own folder, and so on. */
function withNeighbours(tested: ReadonlySet<string>, files: readonly SourceFile[]): Set<string> {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const reached = new Set(tested);
  for (const path of reached) {
    const folder = path.slice(0, path.lastIndexOf('/'));
    for (const { specifier, typeOnly } of listImports(texts.get(path) ?? '')) {
      const target = typeOnly ? undefined : resolvePath(path, specifier);
      const home = target?.slice(0, target.lastIndexOf('/'));
      if (target !== undefined && (home === folder || home === 'adapters/shared')) reached.add(target);
    }
  }
  return reached;
}

/** Exceptions that no longer excuse anything must go. */
export function staleExceptions(files: readonly SourceFile[]): Problem[] {
  const paths = new Set(files.map((file) => file.path));
  const missing = (path: string, list: string, fine: boolean): Problem[] =>
    fine ? [] : [{
      path: 'scripts/tidy/house.ts',
      line: 1,
      message: `${list} names ${path}, which does not exist or needs no exception`,
    }];
  return [
    ...realEnvironment.flatMap(({ path }) => missing(path, 'realEnvironment', paths.has(path))),
    ...house.testedElsewhere.flatMap(({ path, by }) => [
      ...missing(path, 'testedElsewhere', paths.has(path) && !paths.has(mirrorOf(path))),
      ...missing(by, 'testedElsewhere', paths.has(by)),
    ]),
  ];
}
