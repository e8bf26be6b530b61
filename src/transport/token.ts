/** What a token of callers must look like. */
import { coreLimits as limits } from '../limits.ts';

/** Never part of an error. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length >= limits.secretMinChars && value.length <= limits.secretChars &&
    /^[\x21-\x7e]+$/.test(value);
}

export const tokenRule: string =
  `must be ${limits.secretMinChars} to ${limits.secretChars} visible ASCII characters without spaces`;
