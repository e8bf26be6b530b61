/** How the command line ends. Scripts and deploy gates rely on these numbers. */

export const exitCodes = {
  done: 0,
  notAsExpected: 1,
  wrongUsage: 2,
  noAnswer: 3,
  tokenRefused: 4,
  refused: 5,
  broken: 70,
} as const;

export type ExitCode = typeof exitCodes[keyof typeof exitCodes];

/** In the order of the table in the help and the docs. */
export const exitCodeTexts: readonly (readonly [ExitCode, string])[] = [
  [exitCodes.done, 'done, or everything is as expected'],
  [exitCodes.notAsExpected, 'not as expected: not ready, a wait ran out, a rule broken, a journal damaged'],
  [exitCodes.wrongUsage, 'wrong command or flag'],
  [exitCodes.noAnswer, 'the node cannot be reached, gave no answer in time, or is no Singlet node'],
  [exitCodes.tokenRefused, 'the token is missing or wrong, or the node takes no operations'],
  [exitCodes.refused, 'the node refused: no such member or singleton, or the move is not possible'],
  [exitCodes.broken, 'an error of this program'],
];

/** Something that ends the command with one line, or one JSON object. Never holds a token. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;
  /** Stable, for programs. */
  readonly code: string;
  /** What to do about it; may be empty. */
  readonly hint: string;

  constructor(exitCode: ExitCode, code: string, message: string, hint = '') {
    super(message);
    this.exitCode = exitCode;
    this.code = code;
    this.hint = hint;
  }
}
