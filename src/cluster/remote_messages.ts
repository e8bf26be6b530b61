/** The shapes of remoting's messages, see `wire/codes.ts`. */
import type { TerminationCause } from '../actor/watch.ts';
import { limits } from '../limits.ts';
import { anything, integer, type Rule, text, tuple } from '../wire/validate.ts';

const path: Rule<string> = text(limits.pathChars, 2);
const incarnation: Rule<number> = integer(0);
export const tellRule = tuple(anything, path, anything, anything, incarnation);
export const targetRule = tuple(anything, path, incarnation);
export const terminatedRule = tuple(anything, path, incarnation, text(64));
export const senderRule = tuple(path, incarnation);

export const causes: ReadonlySet<string> = new Set<TerminationCause>([
  'stop',
  'self',
  'failure',
  'kill',
  'unreachable',
  'no-such-actor',
]);
