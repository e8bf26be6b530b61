/** The log of the ready-made node: one line per message, all on the error output, so that the other holds the node's line only. */
import type { Logger, LogLevel } from '../src/actor/environment.ts';
import { fieldsText, LevelLogger } from '../src/actor/logger.ts';

export function nodeLogger(level: LogLevel, write: (line: string) => void = (line) => console.error(line)): Logger {
  return new LevelLogger(level, (severity, message, fields) => {
    const details = fields === undefined ? '' : ` ${fieldsText(fields, false)}`;
    write(plain(`${new Date().toISOString()} ${severity.toUpperCase()} ${message}${details}`));
  });
}

/** Nothing that came from outside may start a new line or move a terminal's cursor. */
function plain(line: string): string {
  // deno-lint-ignore no-control-regex
  return line.replace(/\n\s*/g, ' | ').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?');
}
