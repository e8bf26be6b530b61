/** The address of a database, which may hold a password: never shown. */

export const postgresUrlRule = 'must be a URL such as postgres://user:password@host:5432/database';

export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) && isEscaped(text);
}

/** Clients decode each part of it. */
function isEscaped(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}

/** What a client or a runtime says about it, without the URL and without its password. */
export function withoutPassword(text: string, url: string): string {
  const { href, password } = new URL(url);
  const written = /^[^:]+:\/\/[^/?#]*?:([^/?#]*)@/.exec(url)?.[1] ?? '';
  const hidden = [url, href, written, password, decodeURIComponent(password)].filter((each) => each !== '');
  // Longest first: a part that is left of a longer one could still tell the rest of it.
  hidden.sort((a, b) => b.length - a.length);
  return hidden.reduce((shown, each) => shown.replaceAll(each, '(hidden)'), text);
}
