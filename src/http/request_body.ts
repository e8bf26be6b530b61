/** Request bodies: bounded by what really arrives, whatever the headers say, then checked field by field. */
import { limits } from '../limits.ts';
import { parseAddress } from '../transport/address.ts';
import { readBounded } from '../wire/bounded_body.ts';
import { isProblem, type Problem } from './answers.ts';

export type Fields<Name extends string> = { readonly [Field in Name]?: string };

const tooLarge: Problem = {
  status: 413,
  code: 'too-large',
  message: `The body is larger than ${limits.httpBodyBytes} bytes, or comes in too many pieces.`,
  hint: 'Send a small JSON object.',
};

function badField(message: string, hint: string): Problem {
  return { status: 400, code: 'bad-request', message, hint };
}

const cutOff: Problem = badField('body: was cut off', 'Send the whole body.');

/** The body, or why there is none. A client that goes away half-way is nothing to raise an error for. */
export async function readBody(request: Request): Promise<Uint8Array | Problem> {
  if (Number(request.headers.get('content-length') ?? 0) > limits.httpBodyBytes) return tooLarge;
  try {
    return await readBounded(request.body, limits.httpBodyBytes) ?? tooLarge;
  } catch {
    return cutOff;
  }
}

/**
 * The string fields of a JSON object; an empty body is an empty object. Unknown fields are refused, so that a misspelt one
 * is not an operation on something else.
 */
export async function readFields<Name extends string>(
  request: Request,
  names: readonly Name[],
): Promise<{ fields: Fields<Name> } | Problem> {
  const bytes = await readBody(request);
  if (isProblem(bytes)) return bytes;
  const example = `Send {${names.map((name) => `"${name}": "…"`).join(', ')}} as application/json.`;
  let value: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    value = text.trim() === '' ? {} : JSON.parse(text);
  } catch (error) {
    return badField(`body: is not JSON (${error instanceof Error ? error.message : String(error)})`, example);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return badField('body: must be a JSON object', example);
  }
  for (const [name, field] of Object.entries(value)) {
    if (!(names as readonly string[]).includes(name)) {
      return badField(`${name}: is not a field of this request`, example);
    }
    if (typeof field !== 'string') return badField(`${name}: must be a string`, example);
  }
  return { fields: value as Fields<Name> };
}

/** `host:port`; the message names the field and the rule. */
export function checkAddress(field: string, value: string | undefined): Problem | undefined {
  const hint = 'An address is host:port, as /cluster/members lists it.';
  if (value === undefined) return badField(`${field}: is missing`, hint);
  const colon = value.lastIndexOf(':');
  const [host, port] = [value.slice(0, colon), value.slice(colon + 1)];
  if (colon < 1 || !/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
    return badField(`${field}: must be host:port with a port from 1 to 65535`, hint);
  }
  if (host.length > limits.hostChars) {
    return badField(`${field}: its host must have at most ${limits.hostChars} characters`, hint);
  }
  // deno-lint-ignore no-control-regex
  if (/[\s\u0000-\u001f\u007f/]/.test(host)) {
    return badField(`${field}: its host must not hold spaces, slashes or controls`, hint);
  }
  if (parseAddress(value) === undefined) return badField(`${field}: its host must be a name or an IP address`, hint);
  return undefined;
}
