/** The help texts, from the table of commands. Pure. */
import { commands, type CommandSpec, commonFlags, type FlagSpec, remoteFlags } from './commands.ts';
import { exitCodeTexts } from './exit_codes.ts';

export function helpText(command: CommandSpec | undefined): string {
  return command === undefined ? overview() : commandHelp(command);
}

function overview(): string {
  const width = Math.max(...commands.map((command) => usage(command).length));
  return [
    'singlet: looks at a Singlet cluster, and operates it, through any of its nodes.',
    '',
    ...commands.map((command) => `  singlet ${usage(command).padEnd(width)}  ${command.about}`),
    '',
    'Flags of the commands that ask a node:',
    ...flagLines(remoteFlags),
    'Flags of all:',
    ...flagLines(commonFlags),
    '',
    ...exitCodeLines(),
  ].join('\n');
}

function commandHelp(command: CommandSpec): string {
  const flags = [...command.flags, ...(command.remote ? remoteFlags : []), ...commonFlags];
  return [`singlet ${usage(command)}: ${command.about}`, '', ...flagLines(flags), '', ...exitCodeLines()].join('\n');
}

function usage(command: CommandSpec): string {
  return [command.name, ...command.operands].join(' ');
}

function flagLines(flags: readonly FlagSpec[]): string[] {
  const heads = flags.map(({ name, value }) => `--${name}${value === undefined ? '' : ` ${value}`}`);
  const width = Math.max(18, ...heads.map((head) => head.length));
  return flags.map(({ about }, index) => `  ${(heads[index] ?? '').padEnd(width)}  ${about}`);
}

function exitCodeLines(): string[] {
  return ['Exit codes:', ...exitCodeTexts.map(([code, text]) => `  ${String(code).padStart(2)}  ${text}`)];
}
