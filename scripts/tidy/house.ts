/** What the tidy rules know: limits, layers, and each exception with its reason. */

/** For each folder the folders it may import. Folders that are not named are not checked. */
export const allowedImports: Readonly<Record<string, readonly string[]>> = {
  actor: [],
  wire: ['actor'],
  transport: ['actor', 'wire'],
  coordination: ['actor', 'wire'],
  persistence: ['actor', 'wire', 'coordination'],
  cluster: ['actor', 'wire', 'transport', 'coordination'],
  singleton: ['actor', 'wire', 'transport', 'cluster', 'coordination', 'persistence'],
  callers: ['actor', 'wire', 'transport', 'cluster', 'singleton'],
  http: ['actor', 'wire', 'transport', 'cluster', 'singleton'],
  facade: ['actor', 'wire', 'transport', 'cluster', 'coordination', 'persistence', 'singleton', 'callers', 'http'],
  testkit: [
    'facade',
    'actor',
    'wire',
    'transport',
    'cluster',
    'coordination',
    'persistence',
    'singleton',
    'callers',
    'http',
    'src',
  ],
  src: ['actor', 'wire', 'transport', 'cluster', 'coordination', 'persistence', 'singleton'],
  adapters: ['wire'],
};

/** What an adapter may import from src besides `wire`: contracts, the runtime seam, errors and entry points. */
export const contractFiles: RegExp = /^src\/(?:.*\/)?(?:\w*contract|runtime|environment|\w*errors?|limits|mod)\.ts$/;

export const house = {
  maxFileLines: 320,
  maxTestFileLines: 600,
  maxFunctionLines: 80,
  runtimePackages: ['hono', 'cbor-x'],
  /** Types that a lower folder may name although they are defined above it. */
  typesUpward: [
    // An actor's context reaches the cluster it runs in, when there is one.
    { from: 'src/actor/', to: 'src/cluster/cluster_handle.ts' },
    { from: 'src/cluster/cluster_handle.ts', to: 'src/facade/cluster.ts' },
    // The quorum lease asks the members of the cluster.
    { from: 'src/coordination/', to: 'src/cluster/contract.ts' },
    { from: 'src/coordination/', to: 'src/cluster/member.ts' },
  ],
  /** Files without a test of their own name, and the test that covers them. */
  testedElsewhere: [
    // They run inside whole nodes.
    { path: 'src/callers/desk.ts', by: 'test/callers/gateway_test.ts' },
    { path: 'src/callers/gateway_session.ts', by: 'test/callers/gateway_test.ts' },
    { path: 'src/callers/bodies.ts', by: 'test/callers/gateway_test.ts' },
    { path: 'src/facade/caller_service.ts', by: 'test/callers/gateway_test.ts' },
  ] as readonly { readonly path: string; readonly by: string }[],
};

export type GlobalKind = 'time' | 'timers' | 'randomness' | 'runtime' | 'console' | 'modules';

export const bannedGlobals: readonly { kind: GlobalKind; pattern: RegExp; instead: string }[] = [
  { kind: 'time', pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\s*\.\s*\w+/g, instead: 'use the Clock' },
  {
    kind: 'timers',
    pattern: /(?<![.\w$])(?:set|clear)(?:Timeout|Interval|Immediate)\b|(?<![.\w$])queueMicrotask\b/g,
    instead: 'use Timers or Turns',
  },
  {
    kind: 'randomness',
    pattern: /\bMath\.random\b|\bcrypto\s*\.\s*(?:randomUUID|getRandomValues)\b/g,
    instead: 'use Random',
  },
  {
    kind: 'runtime',
    pattern:
      /(?<![.\w$])(?:Deno|Bun)\s*\.\s*\w+|(?<![.\w$])process\s*\.\s*(?:env|exit|nextTick|argv|on|pid|versions?)\b|(?<![.\w$])Buffer\s*\./g,
    instead: 'use the runtime contract',
  },
  { kind: 'console', pattern: /(?<![.\w$])console\s*[.[]/g, instead: 'use the Logger' },
];

/** The files that are the real world, or that need real secrets. */
export const realEnvironment: readonly { path: string; uses: readonly GlobalKind[] }[] = [
  { path: 'src/actor/real_environment.ts', uses: ['time', 'timers', 'randomness'] },
  { path: 'src/actor/real_turns.ts', uses: ['timers'] },
  // The one place where a log meets the console.
  { path: 'src/actor/logger.ts', uses: ['time', 'console'] },
  // The simulator lets the promises of the code under test settle between two events of virtual time.
  { path: 'src/testkit/drain.ts', uses: ['timers'] },
];

const join = (...parts: string[]) => parts.join('');

/** `only` restricts a rule to some paths. Patterns are put together so that this file does not match itself. */
export const bannedTexts: readonly { pattern: RegExp; why: string; only?: RegExp }[] = [
  {
    pattern: new RegExp(join('(?<![\\w.~-])/(?:', 'work/(?:main|shared)|', 'root/|home/\\w|', 'Users/\\w)'), 'g'),
    why: 'an absolute path of one machine',
  },
  {
    pattern: new RegExp(
      join('https?://(?:registry\\.|npm\\.|[^/\\s]*(?:artifactory|nexus|verdaccio))', '[^\\s"\']*'),
      'g',
    ),
    why: 'a package registry',
  },
  { pattern: new RegExp(join('"resolved": "', 'https?:'), 'g'), why: 'a package registry' },
  {
    pattern: new RegExp(join('(?<=^|[\\s(])#', '\\d{1,5}(?![\\w-])|/(?:issues|pull)/\\d+'), 'gm'),
    why: 'an issue number: say what it is about instead',
    only: /\.(ts|md|json|mjs|toml)$/,
  },
  {
    pattern: new RegExp(join('\\b(?:TO', 'DO|FIX', 'ME|XX', 'X)\\b'), 'g'),
    why: 'unfinished work',
    only: /\.(ts|mjs)$/,
  },
  {
    pattern: new RegExp(join('\\b(?:DESIGN|PROTOCOLS|REQUIREMENTS|SCENARIOS|FACTS|field-', 'bugs)\\.', 'md\\b'), 'g'),
    why: 'a file that is not in the repository',
  },
];
