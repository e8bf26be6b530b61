/** Asks a seed who it is: one bounded HTTP GET, answered by data that is checked field by field. */
import type { Cancel, Timers } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { readBounded } from '../wire/bounded_body.ts';
import { parseAddress } from './address.ts';
import type { DialFailure, SeedAnswer } from './contract.ts';
import type { ClientTls, Runtime } from './runtime.ts';

export const seedPath = '/cluster/seed';

export interface SeedQuery {
  readonly url: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly tls: ClientTls | undefined;
}

/** `host:port` or an http(s) URL (whose path is kept as a prefix); undefined when it is neither. */
export function seedUrl(seed: string, secure: boolean): URL | undefined {
  const given = /^https?:\/\//i.test(seed);
  if (!given && parseAddress(seed) === undefined) return undefined;
  try {
    const url = new URL(given ? seed : `${secure ? 'https' : 'http'}://${seed}`);
    const prefix = url.pathname.replace(/\/+$/, '');
    url.pathname = prefix.endsWith(seedPath) ? prefix : `${prefix}${seedPath}`;
    url.hash = '';
    return url;
  } catch {
    // Not every name that may stand in an address may stand in a URL.
    return undefined;
  }
}

/** `done` is called once, unless cancelled before. */
export function querySeed(
  runtime: Pick<Runtime, 'fetch'>,
  timers: Timers,
  query: SeedQuery,
  done: (answer: SeedAnswer | DialFailure) => void,
): Cancel {
  let settled = false;
  const abort = new AbortController();
  const settle = (answer: SeedAnswer | DialFailure | undefined) => {
    if (settled) return;
    settled = true;
    cancelTimer();
    abort.abort();
    if (answer !== undefined) done(answer);
  };
  const cancelTimer = timers.set(query.timeoutMs, () => {
    settle({ reason: 'timeout', code: 'timeout', detail: `${query.url}: no answer within ${query.timeoutMs} ms` });
  });
  ask(runtime, query, abort.signal).then(settle, (error) => {
    const detail = `${query.url}: ${error instanceof Error ? error.message : String(error)}`;
    settle({ reason: 'other', code: 'unreachable', detail });
  });
  return () => settle(undefined);
}

async function ask(
  runtime: Pick<Runtime, 'fetch'>,
  query: SeedQuery,
  signal: AbortSignal,
): Promise<SeedAnswer | DialFailure> {
  const init: RequestInit = { redirect: 'manual', signal, headers: { accept: 'application/json' } };
  const response = await runtime.fetch(query.url, init, query.tls);
  const refuse = async (why: string): Promise<DialFailure> => {
    await response.body?.cancel().catch(() => {});
    return { reason: 'rejected', code: 'not-a-seed', detail: `${query.url}: ${why}` };
  };
  if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
    return await refuse('answers with a redirect, which is not followed');
  }
  if (response.status !== 200) return await refuse(`answers with status ${response.status}`);
  const bytes = await readBounded(response.body, query.maxBytes);
  if (bytes === undefined) return await refuse(`answers with more than ${query.maxBytes} bytes, or in too many pieces`);
  const answer = parseSeedAnswer(new TextDecoder().decode(bytes));
  return typeof answer === 'string' ? await refuse(answer) : answer;
}

/** The answer, or what is wrong with it. Unknown fields are ignored: newer nodes may say more. */
export function parseSeedAnswer(text: string): SeedAnswer | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'the answer is not JSON';
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'the answer is not a JSON object';
  const { clusterName, protocol, fingerprint, address, uid, clusterId, formedAt, members, founds } = value as Record<
    string,
    unknown
  >;
  if (!isText(clusterName)) return 'clusterName: must be text of 1 to 255 characters';
  if (!isCount(protocol)) return 'protocol: must be a whole number';
  if (typeof fingerprint !== 'string' || fingerprint.length > 1024) return 'fingerprint: must be text';
  if (!isAddress(address)) return 'address: must be host:port';
  if (!isText(uid)) return 'uid: must be text of 1 to 255 characters';
  if (!isAbsent(clusterId) && !isText(clusterId)) return 'clusterId: must be text or absent';
  if (!isAbsent(formedAt) && !isCount(formedAt)) return 'formedAt: must be a whole number or absent';
  if (!Array.isArray(members) || members.length > limits.members || !members.every(isAddress)) {
    return `members: must be a list of at most ${limits.members} addresses`;
  }
  if (!isAbsent(founds) && typeof founds !== 'boolean') return 'founds: must be true, false or absent';
  return {
    clusterName,
    protocol,
    fingerprint,
    address,
    uid,
    clusterId: clusterId ?? undefined,
    formedAt: formedAt ?? undefined,
    members,
    ...(founds === false ? { founds } : {}),
  };
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= 255;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && parseAddress(value) !== undefined;
}
