/** Levelled logging. */
import type { Logger, LogLevel } from './environment.ts';

const order: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };

type Severity = Exclude<LogLevel, 'off'>;
type Fields = Readonly<Record<string, unknown>>;

/** Whether a logger at `level` writes messages of this severity. */
export function logs(level: LogLevel, severity: Severity): boolean {
  return order[severity] >= order[level];
}

/** A logger that gives what passes its level to `write`. */
export class LevelLogger implements Logger {
  readonly level: LogLevel;
  private readonly write: (severity: Severity, message: string, fields: Fields | undefined) => void;

  constructor(level: LogLevel, write: (severity: Severity, message: string, fields: Fields | undefined) => void) {
    this.level = level;
    this.write = write;
  }

  debug(message: string, fields?: Fields): void {
    if (logs(this.level, 'debug')) this.write('debug', message, fields);
  }

  info(message: string, fields?: Fields): void {
    if (logs(this.level, 'info')) this.write('info', message, fields);
  }

  warn(message: string, fields?: Fields): void {
    if (logs(this.level, 'warn')) this.write('warn', message, fields);
  }

  error(message: string, fields?: Fields): void {
    if (logs(this.level, 'error')) this.write('error', message, fields);
  }
}

/** Writes to the console, one line for each message, its fields as JSON. Default level `warn`. */
export function consoleLogger(level: LogLevel = 'warn'): Logger {
  return new LevelLogger(level, (severity, message, fields) => {
    const details = fields === undefined ? '' : ` ${fieldsText(fields)}`;
    console[severity](`${new Date().toISOString()} ${severity.toUpperCase()} ${message}${details}`);
  });
}

/** Fields on one line; errors with their stacks, as far as `stacks` says. */
export function fieldsText(fields: Fields, stacks = true): string {
  try {
    return JSON.stringify(fields, (_key, value: unknown) => {
      if (value instanceof Error) return stacks && value.stack ? value.stack : `${value.name}: ${value.message}`;
      return typeof value === 'bigint' ? String(value) : value;
    });
  } catch {
    return '(fields that cannot be shown)';
  }
}

/** The same log, but one that throws loses the record and does not fail who logs. */
export function safeLogger(log: Logger): Logger {
  return new LevelLogger(log.level, (severity, message, fields) => {
    try {
      log[severity](message, fields);
    } catch {
      // There is no other log to say it in.
    }
  });
}

/** The same log with `[prefix] ` before each message. */
export function prefixLogger(log: Logger, prefix: string): Logger {
  return new LevelLogger(log.level, (severity, message, fields) => log[severity](`[${prefix}] ${message}`, fields));
}

/** What a log says about a message's kind: its `kind` or `type` field, else its class, else its type. Never its content. */
export function messageKind(message: unknown): string {
  if (typeof message !== 'object' || message === null) return message === null ? 'null' : typeof message;
  const { kind, type } = message as { kind?: unknown; type?: unknown };
  if (typeof kind === 'string') return kind;
  if (typeof type === 'string') return type;
  const name = Object.getPrototypeOf(message)?.constructor?.name;
  return typeof name === 'string' && name !== '' ? name : 'object';
}

/** An error as fields of a log record, its stack included. */
export function errorFields(error: unknown): { error: string; stack?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  const text = `${error.name}: ${error.message}`;
  return error.stack === undefined ? { error: text } : { error: text, stack: error.stack };
}
