/** What the leases over HTTP take from the runtime: `fetch` with a certificate authority, files and variables. */
import { limits } from '../limits.ts';
import { readBounded } from '../wire/bounded_body.ts';

/** What leases over HTTP need of the runtime; by default the runtime's own. */
export interface HttpMeans {
  fetch(url: string, init: RequestInit, tls?: { readonly ca?: string }): Promise<Response>;
  readTextFile(path: string): Promise<string>;
  environmentVariable(name: string): string | undefined;
}

/** Those of the runtime this code runs on. */
export async function runtimeMeans(): Promise<HttpMeans> {
  return (await import('#runtime')).runtime;
}

export interface HttpAnswer {
  readonly status: number;
  /** The JSON body; undefined when there is none that can be read. */
  readonly body: unknown;
  /** Milliseconds, from `Retry-After`. */
  readonly retryInMs: number | undefined;
}

/**
 * No backend of a lease sends anybody elsewhere. Who follows shows what it knows, the password included, to whoever stands
 * in the backend's place.
 */
export const noRedirect = { redirect: 'error' } as const satisfies RequestInit;

/** Rejects when there is no answer, or one of an absurd size, of which no more is read than may be. */
export async function readAnswer(response: Response): Promise<HttpAnswer> {
  const bytes = await readBounded(response.body, limits.leaseAnswerChars);
  if (bytes === undefined) {
    throw new Error(`an answer of more than ${limits.leaseAnswerChars} bytes, or in too many pieces`);
  }
  const text = new TextDecoder().decode(bytes);
  const after = Number(response.headers.get('retry-after') ?? NaN);
  return {
    status: response.status,
    body: parse(text),
    retryInMs: Number.isFinite(after) && after >= 0 ? after * 1_000 : undefined,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A field of something that came from outside; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Record<string | number, unknown>)[key];
  }
  return current;
}
