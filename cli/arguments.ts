/** The command line. Pure: takes the arguments, gives a command or one line that says what is wrong. */
import { parseArgs } from 'node:util';
import { commands, type CommandSpec, commonFlags, type FlagSpec, remoteFlags } from './commands.ts';
import { WrongValue } from './flag_values.ts';

export interface Parsed {
  readonly kind: 'run';
  readonly command: CommandSpec;
  readonly operands: readonly string[];
  readonly flags: ReadonlyMap<string, unknown>;
}

export type ParseResult =
  | Parsed
  | { readonly kind: 'help'; readonly command: CommandSpec | undefined }
  | { readonly kind: 'wrong'; readonly line: string; readonly json: boolean };

export function parseCommandLine(args: readonly string[]): ParseResult {
  const json = args.includes('--json');
  const found = findCommand(args);
  if (found === undefined) {
    if (args.length === 0 || args.some((arg) => arg === '--help' || arg === '-h' || arg === 'help')) {
      return { kind: 'help', command: undefined };
    }
    const first = args[0]!;
    const what = first.startsWith('-') ? 'a command comes first' : 'no such command';
    return { kind: 'wrong', json, line: `${show(first)}: ${what}; the commands are ${names()}` };
  }
  const { command, rest } = found;
  const flags = [...command.flags, ...(command.remote ? remoteFlags : []), ...commonFlags];
  try {
    return readTokens(command, flags, rest);
  } catch (error) {
    if (error instanceof WrongLine) return { kind: 'wrong', json, line: error.message };
    throw error;
  }
}

class WrongLine extends Error {}

function names(): string {
  return commands.map((command) => command.name).join(', ');
}

function findCommand(args: readonly string[]): { command: CommandSpec; rest: readonly string[] } | undefined {
  for (const command of commands) {
    const words = command.name.split(' ');
    if (words.every((word, index) => args[index] === word)) return { command, rest: args.slice(words.length) };
  }
  return undefined;
}

function readTokens(command: CommandSpec, specs: readonly FlagSpec[], args: readonly string[]): ParseResult {
  // Strictness is our own: the runtimes word their complaints differently, and one of them would show a token.
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(specs.map(({ name, read }) => [name, { type: read ? 'string' : 'boolean' } as const])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const operands: string[] = [];
  const flags = new Map<string, unknown>();
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    if (token.rawName === '-h') return { kind: 'help', command };
    const spec = specs.find(({ name }) => `--${name}` === token.rawName);
    if (spec === undefined) {
      throw new WrongLine(
        `${show(token.rawName)}: ${command.name} has no such flag (try singlet ${command.name} --help)`,
      );
    }
    if (flags.has(spec.name)) throw new WrongLine(`--${spec.name}: must be given once only`);
    flags.set(spec.name, readFlag(spec, token.value, token.inlineValue === true));
  }
  if (flags.has('help')) return { kind: 'help', command };
  checkOperands(command, operands);
  return { kind: 'run', command, operands, flags };
}

function readFlag(spec: FlagSpec, value: string | undefined, inline: boolean): unknown {
  if (spec.read === undefined) {
    if (value !== undefined) throw new WrongLine(`--${spec.name}: takes no value`);
    return true;
  }
  // A flag in the place of a value is a forgotten value; `--flag=--x` says that it is meant.
  if (value === undefined || value === '' || (!inline && value.startsWith('-'))) {
    throw new WrongLine(`--${spec.name}: needs a value: --${spec.name} ${spec.value}`);
  }
  try {
    return spec.read(value);
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    const shown = spec.name === 'token' || spec.name === 'url' && value.includes('@') ? '' : ` ${show(value)}`;
    throw new WrongLine(`--${spec.name}${shown}: ${error.message}`);
  }
}

function checkOperands(command: CommandSpec, operands: readonly string[]): void {
  const needed = command.operands.filter((operand) => !operand.startsWith('['));
  if (operands.length < needed.length) {
    throw new WrongLine(`${command.name}: needs ${needed.slice(operands.length).join(' ')}`);
  }
  if (operands.includes('')) throw new WrongLine(`${command.name}: ${command.operands.join(' ')} must not be empty`);
  const extra = operands[command.operands.length];
  if (extra !== undefined) throw new WrongLine(`${show(extra)}: ${command.name} takes no such argument`);
}

/** What the user typed, cut and without control characters, so that the message stays one line. */
export function show(text: string): string {
  // deno-lint-ignore no-control-regex
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?');
  return plain.length > 80 ? `${plain.slice(0, 80)}…` : plain;
}
