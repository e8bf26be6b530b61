/** What a job is, and the one place where a job that came from outside is checked. */
import { limits } from '../src/limits.ts';

/** A job that is called every `everyMs` milliseconds, or once at `at` (wall-clock milliseconds since the epoch). */
export type JobDefinition =
  & { readonly id: string; readonly url: string }
  & ({ readonly everyMs: number } | { readonly at: number });

/** Why a value was refused: the field and the rule it breaks. */
export interface Refusal {
  readonly field: string;
  readonly rule: string;
}

/** A single run may be this much in the past when it arrives: clocks differ, requests take time. */
const pastToleranceMs = 5_000;

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._~:-]*$/;
const timePattern =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const fields: ReadonlySet<string> = new Set(['id', 'url', 'everyMs', 'at']);

export function isRefusal(value: object): value is Refusal {
  return 'rule' in value;
}

/** Checks a job as a person writes it in JSON; `at` is a text there. */
export function parseJob(body: unknown): JobDefinition | Refusal {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return refusal(
      'body',
      'must be a JSON object such as {"id":"tick","everyMs":1000,"url":"http://127.0.0.1:9000/hook"}',
    );
  }
  const known = body as { id?: unknown; url?: unknown; everyMs?: unknown; at?: unknown };
  for (const field of Object.keys(body)) {
    if (!fields.has(field)) return refusal(shorten(field), 'is not a field of a job (they are id, everyMs or at, url)');
  }
  const id = parseId(known.id);
  if (typeof id !== 'string') return id;
  const url = parseUrl(known.url);
  if (typeof url !== 'string') return url;
  if (known.everyMs !== undefined && known.at !== undefined) {
    return refusal('at', 'must not be given together with everyMs');
  }
  if (known.at !== undefined) {
    const at = parseTime(known.at);
    return typeof at === 'number' ? { id, url, at } : at;
  }
  const everyMs = parsePeriod(known.everyMs);
  return typeof everyMs === 'number' ? { id, url, everyMs } : everyMs;
}

/** The same checks for a definition in the form that travels between nodes. */
export function checkDefinition(definition: unknown): JobDefinition | Refusal {
  const at = (definition as { at?: unknown } | null | undefined)?.at;
  if (typeof at !== 'number') return parseJob(definition);
  if (!Number.isFinite(at) || Math.abs(at) > 8.64e15) return refusal('at', 'must be a time');
  return parseJob({ ...(definition as object), at: new Date(at).toISOString() });
}

/** A single run must not lie in the past. `now` is wall-clock milliseconds. */
export function checkDue(definition: JobDefinition, now: number): Refusal | undefined {
  if (!('at' in definition) || definition.at >= now - pastToleranceMs) return undefined;
  return refusal('at', `must not be in the past (it is ${new Date(now).toISOString()} here)`);
}

export function parseId(id: unknown): string | Refusal {
  if (typeof id === 'string' && id.length <= limits.jobIdChars && idPattern.test(id)) return id;
  return refusal(
    'id',
    `must be a text of 1 to ${limits.jobIdChars} letters, digits, '.', '_', '~', ':' or '-' that starts with a letter or a digit`,
  );
}

function parseUrl(text: unknown): string | Refusal {
  const rule = `must be an http: or https: URL of at most ${limits.urlChars} characters`;
  if (typeof text !== 'string' || text.length > limits.urlChars || !URL.canParse(text)) return refusal('url', rule);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return refusal('url', rule);
  if (url.username !== '' || url.password !== '') return refusal('url', 'must not contain a user name or password');
  return url.href.length > limits.urlChars ? refusal('url', rule) : url.href;
}

function parsePeriod(everyMs: unknown): number | Refusal {
  const [low, high] = [limits.jobPeriodMinMs, limits.jobPeriodMaxMs];
  if (typeof everyMs === 'number' && Number.isSafeInteger(everyMs) && everyMs >= low && everyMs <= high) return everyMs;
  return refusal(
    'everyMs',
    `must be a whole number of milliseconds from ${low} to ${high} (or give at for a single run)`,
  );
}

function parseTime(at: unknown): number | Refusal {
  const rule = 'must be a time with its zone, such as 2030-01-31T12:00:00Z';
  const match = typeof at === 'string' ? timePattern.exec(at) : null;
  if (match === null) return refusal('at', rule);
  const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number];
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (month < 1 || month > 12 || day < 1 || day > lastDay) return refusal('at', rule);
  return Date.parse(at as string);
}

function refusal(field: string, rule: string): Refusal {
  return { field, rule };
}

function shorten(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
