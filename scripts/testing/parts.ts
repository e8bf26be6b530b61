/** The parts of `npm test`: which command checks what. Pure: the list is computed from the files and the choice. */
import type { RuntimeName } from './counts.ts';

export interface Part {
  readonly name: string;
  /** What is shown: the part, and the runtime where there is more than one. */
  readonly title: string;
  readonly runtime: RuntimeName | undefined;
  readonly command: readonly string[];
  readonly timeoutMs: number;
  /** May run beside other parts of that kind: it waits for no real time that another one could take from it. */
  readonly together: boolean;
  /** Set when the part cannot run here. */
  readonly skip: string | undefined;
}

export interface Choice {
  /** Names of parts; empty means all. */
  readonly only: readonly string[];
  /** Runtimes; empty means the default ones of each part. */
  readonly runtimes: readonly RuntimeName[];
  /** Only test files whose path contains this. */
  readonly path: string;
}

export interface Tools {
  readonly bin: (name: 'bun' | 'deno' | 'tsc') => string;
  readonly node: string;
  readonly files: readonly string[];
}

const allRuntimes: readonly RuntimeName[] = ['bun', 'deno', 'node'];
const minute = 60_000;

interface TestPart {
  readonly name: string;
  readonly takes: (path: string) => boolean;
  readonly runtimes: readonly RuntimeName[];
  readonly timeoutMs: number;
  /** Files at a time where the runner does not decide: few, where files start processes of their own. */
  readonly filesAtOnce: number | undefined;
}

const elsewhere = /^test\/(docs|e2e|sim|pack|types)\/|^test\/tidy_test\.ts$/;

const testParts: readonly TestPart[] = [
  {
    name: 'tidy',
    takes: (path) => path === 'test/tidy_test.ts',
    runtimes: allRuntimes,
    timeoutMs: 2 * minute,
    filesAtOnce: undefined,
  },
  {
    name: 'unit',
    takes: (path) => !elsewhere.test(path),
    runtimes: allRuntimes,
    timeoutMs: 15 * minute,
    // Node's runner takes one less than there are cores; the other runtimes are done long before it.
    filesAtOnce: 2,
  },
  {
    name: 'sim',
    takes: (path) => path.startsWith('test/sim/'),
    runtimes: ['bun'],
    timeoutMs: 20 * minute,
    filesAtOnce: undefined,
  },
  {
    name: 'e2e',
    takes: (path) => path.startsWith('test/e2e/'),
    runtimes: ['node'],
    timeoutMs: 25 * minute,
    filesAtOnce: 2,
  },
  {
    name: 'docs',
    takes: (path) => path.startsWith('test/docs/'),
    runtimes: ['node'],
    timeoutMs: 4 * minute,
    filesAtOnce: 1,
  },
  {
    name: 'pack',
    takes: (path) => path.startsWith('test/pack/'),
    runtimes: ['node'],
    timeoutMs: 4 * minute,
    filesAtOnce: 1,
  },
];

/** The order in which parts run: the quick ones that find most first. */
export const partNames: readonly string[] = ['types', 'tidy', 'fmt', 'lint', 'unit', 'sim', 'e2e', 'docs', 'pack'];

export function listParts(tools: Tools, choice: Choice): Part[] {
  const parts = [...checkParts(tools), ...testParts.flatMap((part) => runsOf(part, tools, choice))];
  return partNames
    .filter((name) => choice.only.length === 0 || choice.only.includes(name))
    .flatMap((name) => parts.filter((part) => part.name === name));
}

function checkParts(tools: Tools): Part[] {
  const check = (name: string, title: string, ...command: string[]): Part => ({
    name,
    title,
    runtime: undefined,
    command,
    timeoutMs: 3 * minute,
    together: true,
    skip: undefined,
  });
  return [
    check('types', 'types: core, without runtime types', tools.bin('tsc'), '-p', 'tsconfig.core.json'),
    check('types', 'types: everything', tools.bin('tsc'), '-p', 'tsconfig.json'),
    check('types', 'types: documented compile errors', tools.bin('tsc'), '-p', 'test/types/tsconfig.json'),
    check('fmt', 'format', tools.bin('deno'), 'fmt', '--check'),
    check('lint', 'lint', tools.bin('deno'), 'lint'),
  ];
}

function runsOf(part: TestPart, tools: Tools, choice: Choice): Part[] {
  const files = tools.files.filter((path) =>
    /^test\/.*_test\.ts$/.test(path) && part.takes(path) && path.includes(choice.path)
  );
  const runtimes = choice.runtimes.length > 0 ? choice.runtimes : part.runtimes;
  return runtimes.map((runtime) => ({
    name: part.name,
    title: `${part.name} on ${runtime}`,
    runtime,
    command: testCommand(runtime, files, part.filesAtOnce, tools),
    timeoutMs: part.timeoutMs,
    together: part.name === 'tidy' || part.name === 'unit',
    skip: files.length > 0 || choice.path === '' ? undefined : `no test file matches ${choice.path}`,
  }));
}

function testCommand(
  runtime: RuntimeName,
  files: readonly string[],
  filesAtOnce: number | undefined,
  tools: Tools,
): string[] {
  switch (runtime) {
    case 'bun':
      return [tools.bin('bun'), 'test', '--timeout', String(2 * minute), ...files.map((path) => `./${path}`)];
    case 'deno':
      return [
        tools.bin('deno'),
        'test',
        '-A',
        '--no-check',
        '--import-map=ci/import_map.json',
        '--node-modules-dir=manual',
        ...files,
      ];
    case 'node': {
      const flags = ['--import', './scripts/testing/exit_after.mjs', '--test', '--test-reporter=spec'];
      flags.push(`--test-timeout=${2 * minute}`);
      return [
        tools.node,
        ...flags,
        ...(filesAtOnce === undefined ? [] : [`--test-concurrency=${filesAtOnce}`]),
        ...files,
      ];
    }
  }
}
