/** What the commands print with: tables, colours where they belong, progress on the error output. */
import { plain } from '../src/http/text_table.ts';

export interface Terminal {
  /** One line (or several) of the result. */
  out(text: string): void;
  /** One line for people, beside the result. */
  note(text: string): void;
  /** Shows how far it is: in place on a terminal, else a line whenever it changes. Empty: takes it away. */
  progress(text: string): void;
  /** Whether the result goes to a terminal that wants colours. */
  readonly colours: boolean;
  /** Whether somebody watches the progress. */
  readonly watched: boolean;
}

export interface TerminalMeans {
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly outIsTerminal: boolean;
  readonly errorIsTerminal: boolean;
  /** `NO_COLOR` is set to something. */
  readonly noColour: boolean;
}

export function makeTerminal(means: TerminalMeans): Terminal {
  let shown = '';
  const clear = () => {
    if (shown !== '' && means.errorIsTerminal) means.writeError('\r\x1b[2K');
    shown = '';
  };
  return {
    colours: means.outIsTerminal && !means.noColour,
    watched: means.errorIsTerminal,
    out: (text) => {
      clear();
      means.write(`${text}\n`);
    },
    note: (text) => {
      clear();
      means.writeError(`${text}\n`);
    },
    progress: (text) => {
      if (text === shown) return;
      clear();
      shown = text;
      if (text !== '') means.writeError(means.errorIsTerminal ? text : `${text}\n`);
    },
  };
}

const codes = { good: 32, warn: 33, bad: 31, quiet: 2, strong: 1 } as const;
export type Colour = keyof typeof codes;

export interface Cell {
  readonly text: string;
  readonly colour?: Colour;
}

export function paint(text: string, colour: Colour | undefined, colours: boolean): string {
  return colour === undefined || !colours ? text : `\x1b[${codes[colour]}m${text}\x1b[0m`;
}

/** Columns as wide as their widest cell; nothing from outside may move the cursor. */
export function table(
  head: readonly string[],
  rows: readonly (readonly (Cell | string)[])[],
  colours: boolean,
): string {
  const cells = [
    head.map((text): Cell => ({ text, colour: 'quiet' })),
    ...rows.map((row) => row.map((cell): Cell => typeof cell === 'string' ? { text: cell } : cell)),
  ].map((row) => row.map(({ text, ...rest }) => ({ ...rest, text: plain(text) })));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.text.length ?? 0)));
  return cells.map((row) =>
    row.map(({ text, colour }, column) => {
      const last = column === row.length - 1;
      return paint(text, colour, colours) + (last ? '' : ' '.repeat((widths[column] ?? 0) - text.length));
    }).join('  ').trimEnd()
  ).join('\n');
}

export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor(seconds % 3_600 / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor(seconds % 86_400 / 3_600)} h`;
}
