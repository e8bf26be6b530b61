/** The shapes of remoting's messages, see `wire/codes.ts`. Fields beyond these, of a newer version, are ignored. */
import type { TerminationCause } from '../actor/watch.ts';
import { limits } from '../limits.ts';
import type { Envelope } from '../wire/frames.ts';
import { countOf, fail, textOf } from './wire_checks.ts';

export interface Target {
  readonly path: string;
  readonly incarnation: number;
}

export interface Tell extends Target {
  /** Still to be read by `senderOf`: a ref is one already. */
  readonly from: unknown;
  readonly message: unknown;
}

function pathOf(value: unknown): string {
  return textOf(value, limits.pathChars, 'path', 2);
}

/** @throws WireError */
export function targetOf(envelope: Envelope): Target {
  return { path: pathOf(envelope[1]), incarnation: countOf(envelope[2], 'incarnation') };
}

/** @throws WireError */
export function tellOf(envelope: Envelope): Tell {
  if (envelope.length < 5) fail('fields', envelope.length, 'at least 5');
  const [, path, from, message, incarnation] = envelope;
  return { path: pathOf(path), from, message, incarnation: countOf(incarnation, 'incarnation') };
}

/** @throws WireError */
export function terminatedOf(envelope: Envelope): Target & { readonly cause: TerminationCause } {
  const cause = textOf(envelope[3], 64, 'cause');
  return { ...targetOf(envelope), cause: isCause(cause) ? cause : 'stop' };
}

/** An actor of the sending node; undefined for anything else. */
export function senderOf(from: unknown): Target | undefined {
  if (!Array.isArray(from)) return undefined;
  const [path, incarnation] = from as readonly unknown[];
  if (typeof path !== 'string' || path.length < 2 || path.length > limits.pathChars) return undefined;
  return Number.isSafeInteger(incarnation) && (incarnation as number) >= 0
    ? { path, incarnation: incarnation as number }
    : undefined;
}

const causes: ReadonlySet<string> = new Set<TerminationCause>([
  'stop',
  'self',
  'failure',
  'kill',
  'unreachable',
  'no-such-actor',
]);

function isCause(text: string): text is TerminationCause {
  return causes.has(text);
}
