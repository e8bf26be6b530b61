/** The options of a script. One that it does not know ends it with one line and the usage, exit code 2; `--help` with exit code 0. */
import process from 'node:process';
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

export type Parsed<T extends Options> =
  | { readonly kind: 'values'; readonly values: Values<T> }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'wrong'; readonly text: string };

/** `script`: its name in package.json. */
export function parseOptions<const T extends Options>(
  script: string,
  options: T,
  args: readonly string[],
): Parsed<T> {
  const usage = usageOf(script, options);
  if (args.includes('--help') || args.includes('-h')) return { kind: 'help', text: usage };
  try {
    return { kind: 'values', values: parseArgs({ options, args: [...args] }).values as Values<T> };
  } catch (error) {
    if (!isWrongOption(error)) throw error;
    return { kind: 'wrong', text: `${error.message.replace(/\. .*/s, '')}\n${usage}` };
  }
}

export function readOptions<const T extends Options>(script: string, options: T): Values<T> {
  const parsed = parseOptions(script, options, process.argv.slice(2));
  if (parsed.kind === 'values') return parsed.values;
  if (parsed.kind === 'help') console.log(parsed.text);
  else console.error(parsed.text);
  return process.exit(parsed.kind === 'help' ? 0 : 2);
}

function usageOf(script: string, options: Options): string {
  const each = Object.entries(options).map(([name, { type }]) => type === 'boolean' ? `[--${name}]` : `[--${name} …]`);
  return `usage: npm run ${script} -- ${each.join(' ')}`;
}

function isWrongOption(error: unknown): error is Error {
  return error instanceof Error && String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS_');
}
