/** What the text behind a flag may be. Pure; a wrong one throws the rule, the caller names the flag. */

export class WrongValue extends Error {}

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** A day: longer waits are mistakes. */
const longestMs = 86_400_000;

/** `500ms`, `30s`, `2m`, `1h` in milliseconds. */
export function readDuration(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text);
  const ms = match === null ? NaN : Number(match[1]) * (durationUnits[match[2] ?? ''] ?? NaN);
  if (!(ms > 0 && ms <= longestMs)) {
    throw new WrongValue('must be a duration above 0 and up to 24h, such as 500ms, 30s or 2m');
  }
  return ms;
}

export function readCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new WrongValue('must be a whole number from 0 to 999999999');
  return Number(text);
}

export interface CountRule {
  readonly count: number;
  /** More than that is fine too. */
  readonly orMore: boolean;
}

/** `3`, or `3+` for three or more. */
export function readCountRule(text: string): CountRule {
  const match = /^(\d{1,4})(\+?)$/.exec(text);
  if (match === null || Number(match[1]) === 0) {
    throw new WrongValue('must be a number of members such as 3, or 3+ for three or more');
  }
  return { count: Number(match[1]), orMore: match[2] === '+' };
}

/** Where a node, or an app that mounts one, answers. Always ends in `/`. */
export function readUrl(text: string): string {
  const full = /^[a-z][a-z+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(full)) throw new WrongValue('must be a URL such as http://127.0.0.1:2551');
  const url = new URL(full);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new WrongValue('must be an http or https URL');
  if (url.username !== '' || url.password !== '') {
    throw new WrongValue('must not hold a user or password: use the token');
  }
  if (url.search !== '' || url.hash !== '') throw new WrongValue('must not hold a query or a fragment');
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}

/** Names separated by commas. */
export function readNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new WrongValue('must be names separated by commas, none of them empty');
  return names;
}

export function readText(text: string): string {
  return text;
}
