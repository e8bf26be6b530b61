/** The command line of the ready-made node. Pure: takes the arguments, gives settings or one line that says what is wrong. */
import type { LogLevel } from '../src/actor/environment.ts';
import type { StoreChoice } from './job_stores.ts';
import { isPostgresUrl, postgresUrlRule } from './postgres_url.ts';
import { tokenRecipe } from './token.ts';

export interface NodeFlags {
  readonly host: string;
  readonly port: number;
  readonly seeds: readonly string[];
  readonly roles: readonly string[];
  readonly name: string;
  readonly secret: string | undefined;
  readonly secretFile: string | undefined;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  readonly form: boolean;
  readonly logLevel: LogLevel;
  /** Where jobs are kept. Without one they die with the host in a crash. */
  readonly store?: StoreChoice;
  /** Holds the URL of a PostgreSQL to keep them in. */
  readonly postgresFile: string | undefined;
}

export type FlagsResult =
  | { readonly kind: 'run'; readonly flags: NodeFlags }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly line: string };

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'off'];
const switches: ReadonlySet<string> = new Set(['form', 'help']);
const valued: ReadonlySet<string> = new Set([
  'host',
  'port',
  'seeds',
  'roles',
  'name',
  'secret',
  'secret-file',
  'token',
  'token-file',
  'log-level',
  'journal',
  'postgres',
  'postgres-file',
]);

/** The names of the environment variables that are read when no flag gives a secret, a token, or a place to keep jobs. */
export const secretVariable = 'SINGLET_SECRET';
export const tokenVariable = 'SINGLET_TOKEN';
export const postgresVariable = 'SINGLET_POSTGRES';

export const helpText = `A node of a Singlet cluster that hosts the job scheduler when it is its turn.

  bun run node.ts | deno run --allow-net node.ts | node node.ts     [flags]

  --host HOST          address other nodes reach this one at (default 127.0.0.1)
  --port PORT          one port for HTTP and cluster; 0 picks a free one (default 0)
  --seeds A:1,B:2      nodes to join by; with none this node forms a cluster of its own
  --roles A,B          roles of this node
  --name NAME          name of the cluster (default singlet)
  --secret TEXT        shared secret of the cluster; needed beyond loopback (shows in the process list)
  --secret-file FILE   reads the secret from a file (Deno: add --allow-read=FILE)
  --token TEXT         bearer token of /jobs and of operations (default: derived from the secret; shows in the process list)
  --token-file FILE    reads the token from a file (Deno: add --allow-read=FILE)
  --form               form a cluster at once when no seed answers, without the others' consent
  --journal DIR        keeps jobs in this directory, for nodes of one machine that all name it
                       (Deno: add --allow-read=DIR --allow-write=DIR)
  --postgres URL       keeps jobs in PostgreSQL; needs the package postgres (Deno: add --allow-env --allow-read); a password in
                       the URL shows in the process list
  --postgres-file FILE reads that URL from a file
  --log-level LEVEL    debug, info, warn, error or off (default warn)
  --help               this text

With --journal or PostgreSQL, the same on every node, an accepted job is kept: each run is made exactly once over planned
moves and at least once over crashes, where a run in flight is made again under its number. Without, jobs outlive planned
moves only.
Without a token, it is what this prints: ${tokenRecipe}
Environment: ${secretVariable} and ${tokenVariable} are secret and token when no flag gives them (Deno: add
--allow-env=${secretVariable},${tokenVariable}), ${postgresVariable} is the URL of --postgres when no flag says where to keep jobs.
Signals: SIGTERM and SIGINT leave the cluster, a second one exits at once.
Exit codes: 0 left, 1 stopped by the cluster or by an error, 2 wrong flags.`;

/** `args` without the program's own name. Both `--flag value` and `--flag=value` are taken. */
export function parseFlags(args: readonly string[]): FlagsResult {
  const given = new Map<string, string>();
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    if (arg === '-h') return { kind: 'help' };
    if (!arg.startsWith('--') || arg === '--') return wrong(`${show(arg)}: is not a flag (try --help)`);
    const equals = arg.indexOf('=');
    const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
    const flag = `--${name}`;
    if (given.has(name)) return wrong(`${flag}: must be given once only`);
    if (switches.has(name)) {
      if (equals >= 0) return wrong(`${flag}: takes no value`);
      given.set(name, '');
    } else if (valued.has(name)) {
      const value = equals >= 0 ? arg.slice(equals + 1) : args[++index];
      // A flag in the place of a value is a forgotten value; `--flag=--x` says that it is meant.
      if (value === undefined || value === '' || (equals < 0 && value.startsWith('--'))) {
        return wrong(`${flag}: needs a value`);
      }
      given.set(name, value);
    } else {
      return wrong(`${show(flag)}: no such flag (try --help)`);
    }
  }
  return given.has('help') ? { kind: 'help' } : settings(given);
}

function settings(given: ReadonlyMap<string, string>): FlagsResult {
  const host = given.get('host') ?? '127.0.0.1';
  if (!/^[^\s/@?#]+$/.test(host) || /^[^:[\]]+:\d*$/.test(host)) {
    return wrong(`--host ${show(host)}: must be a host name or an IP address, without scheme, port or path`);
  }
  const portText = given.get('port') ?? '0';
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : NaN;
  if (!(port <= 65_535)) return wrong(`--port ${show(portText)}: must be a whole number from 0 to 65535`);
  const seeds = list(given.get('seeds'));
  for (const seed of seeds) {
    if (!isSeed(seed)) {
      return wrong(`--seeds ${show(seed)}: each must be host:port or an http(s) URL, separated by commas`);
    }
  }
  const roles = list(given.get('roles'));
  for (const role of roles) {
    if (role === '') {
      return wrong(`--roles ${show(given.get('roles') ?? '')}: must be names separated by commas, none of them empty`);
    }
  }
  const level = given.get('log-level') ?? 'warn';
  const logLevel = logLevels.find((known) => known === level);
  if (logLevel === undefined) return wrong(`--log-level ${show(level)}: must be one of ${logLevels.join(', ')}`);
  if (given.has('secret') && given.has('secret-file')) {
    return wrong('--secret-file: must not be given together with --secret');
  }
  if (given.has('token') && given.has('token-file')) {
    return wrong('--token-file: must not be given together with --token');
  }
  const store = storeOf(given);
  if (typeof store === 'string') return wrong(store);
  return {
    kind: 'run',
    flags: {
      host,
      port,
      seeds,
      roles,
      name: given.get('name') ?? 'singlet',
      secret: given.get('secret'),
      secretFile: given.get('secret-file'),
      token: given.get('token'),
      tokenFile: given.get('token-file'),
      form: given.has('form'),
      logLevel,
      postgresFile: given.get('postgres-file'),
      ...(store === undefined ? {} : { store }),
    },
  };
}

/** A text says what is wrong. */
function storeOf(given: ReadonlyMap<string, string>): StoreChoice | string | undefined {
  const [first, second] = ['journal', 'postgres', 'postgres-file'].filter((name) => given.has(name));
  if (second !== undefined) return `--${second}: must not be given together with --${first}`;
  const directory = given.get('journal');
  if (directory !== undefined) return { kind: 'journal', directory };
  const url = given.get('postgres');
  if (url === undefined) return undefined;
  return isPostgresUrl(url) ? { kind: 'postgres', url } : `--postgres: ${postgresUrlRule}`;
}

function isSeed(seed: string): boolean {
  if (/^https?:\/\//i.test(seed)) return URL.canParse(seed);
  const match = /^(\[[0-9a-f:.]+\]|[^\s:/@?#[\]]+):(\d{1,5})$/i.exec(seed);
  return match !== null && Number(match[2]) >= 1 && Number(match[2]) <= 65_535;
}

function list(text: string | undefined): readonly string[] {
  return text === undefined ? [] : text.split(',').map((item) => item.trim());
}

/** What the user typed, cut and without control characters, so that the message stays one line. */
function show(text: string): string {
  // deno-lint-ignore no-control-regex
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?');
  return plain.length > 80 ? `${plain.slice(0, 80)}…` : plain;
}

function wrong(line: string): FlagsResult {
  return { kind: 'wrong', line };
}
