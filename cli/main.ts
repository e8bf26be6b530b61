/** The command line tool `singlet`, with its surroundings passed in. */
import { parseCommandLine, type Parsed, type ParseResult, show } from './arguments.ts';
import { type CommandSpec, defaultTimeoutMs, defaultUrl, tokenVariable, urlVariable } from './commands.ts';
import type { CommandContext } from './context.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';
import { readUrl, WrongValue } from './flag_values.ts';
import { helpText } from './help.ts';
import { NodeClient } from './node_client.ts';
import type { Terminal } from './output.ts';

export interface Surroundings {
  readonly args: readonly string[];
  readonly terminal: Terminal;
  readonly environmentVariable: (name: string) => string | undefined;
  readonly readTextFile: (path: string) => Promise<string>;
  readonly fetch: (url: string, init: RequestInit, tls?: { ca: string }) => Promise<Response>;
  readonly now: () => number;
  readonly wall: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly interrupted: AbortSignal;
}

type Command = (context: CommandContext) => Promise<ExitCode>;

/** Loaded when they are needed: the simulator is large, and a status should be quick. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  status: async () => (await import('./inspect_commands.ts')).status,
  members: async () => (await import('./inspect_commands.ts')).members,
  singletons: async () => (await import('./inspect_commands.ts')).singletons,
  events: async () => (await import('./inspect_commands.ts')).events,
  leave: async () => (await import('./operate_commands.ts')).leave,
  down: async () => (await import('./operate_commands.ts')).down,
  move: async () => (await import('./operate_commands.ts')).move,
  rebalance: async () => (await import('./operate_commands.ts')).rebalance,
  'prepare-shutdown': async () => (await import('./operate_commands.ts')).prepareShutdown,
  'cancel-shutdown': async () => (await import('./operate_commands.ts')).cancelShutdown,
  sim: async () => (await import('./sim_command.ts')).sim,
  'journal check': async () => (await import('./journal_command.ts')).journalCheck,
};

/** Never rejects; everything that goes wrong is told, in one line or one JSON object, on the error output. */
export async function main(surroundings: Surroundings): Promise<ExitCode> {
  const { terminal } = surroundings;
  const parsed: ParseResult = parseCommandLine(surroundings.args);
  switch (parsed.kind) {
    case 'help':
      terminal.out(helpText(parsed.command));
      return exitCodes.done;
    case 'wrong':
      return tell(terminal, parsed.json, new CliError(exitCodes.wrongUsage, 'wrong-usage', parsed.line));
    case 'run':
      break;
    default:
      parsed satisfies never;
  }
  const json = (parsed as Parsed).flags.has('json');
  try {
    return await run(surroundings, parsed as Parsed, json);
  } catch (error) {
    if (error instanceof CliError) return tell(terminal, json, error);
    terminal.note(error instanceof Error ? error.stack ?? error.message : String(error));
    return exitCodes.broken;
  }
}

async function run(surroundings: Surroundings, { command, operands, flags }: Parsed, json: boolean): Promise<ExitCode> {
  const load = loaders[command.name];
  if (load === undefined) throw new Error(`the command ${command.name} has no code`);
  const node = await nodeClient(surroundings, command, flags);
  const { terminal, now, wall, pause, interrupted } = surroundings;
  const start = await load();
  return await start({ operands, flags, json, terminal, node, now, wall, pause, interrupted });
}

async function nodeClient(
  { environmentVariable, readTextFile, fetch }: Surroundings,
  command: CommandSpec,
  flags: ReadonlyMap<string, unknown>,
): Promise<NodeClient> {
  const caFile = flags.get('ca') as string | undefined;
  const ca = caFile === undefined ? undefined : await readCa(caFile, readTextFile);
  return new NodeClient({
    url: (flags.get('url') as string | undefined) ??
      (command.remote ? urlFromEnvironment(environmentVariable(urlVariable)) : defaultUrl),
    token: (flags.get('token') as string | undefined) ?? emptyIsUnset(environmentVariable(tokenVariable)),
    timeoutMs: (flags.get('timeout') as number | undefined) ?? defaultTimeoutMs,
    fetch: (url, init) => ca === undefined ? fetch(url, init) : fetch(url, init, { ca }),
  });
}

function urlFromEnvironment(text: string | undefined): string {
  if (emptyIsUnset(text) === undefined) return defaultUrl;
  try {
    return readUrl(text!);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    throw new CliError(exitCodes.wrongUsage, 'wrong-usage', `${urlVariable}: ${error.message}`);
  }
}

function emptyIsUnset(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

async function readCa(path: string, readTextFile: (path: string) => Promise<string>): Promise<string> {
  try {
    return await readTextFile(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(exitCodes.wrongUsage, 'wrong-usage', `--ca ${show(path)}: cannot be read: ${why}`);
  }
}

function tell(terminal: Terminal, json: boolean, error: CliError): ExitCode {
  const { code, message, hint, exitCode } = error;
  if (json) terminal.note(JSON.stringify({ error: { code, message, hint } }));
  else terminal.note([message, hint].filter((text) => text !== '').join(' '));
  return exitCode;
}
