/**
 * Rules for data from outside. A rule gives `undefined` for a value it accepts and the reason for one it does not; it
 * never throws and never runs code of the value. Rules compose: `record({ name: text(64), at: integer(0) })`.
 */

export interface Rule<T> {
  (value: unknown, field: string): string | undefined;
  /** Only a type: what an accepted value is. */
  readonly accepts?: T;
}

export type Accepted<R> = R extends Rule<infer T> ? T : never;

/** A type guard by rule. */
export function conforms<T>(rule: Rule<T>, value: unknown): value is T {
  return rule(value, '') === undefined;
}

export type Checked<T> = { readonly kind: 'ok'; readonly value: T } | {
  readonly kind: 'refused';
  readonly reason: string;
};

export function check<T>(rule: Rule<T>, value: unknown, field: string): Checked<T> {
  const reason = rule(value, field);
  return reason === undefined ? { kind: 'ok', value: value as T } : { kind: 'refused', reason };
}

/** Values in reasons are for logs: short, and without control characters. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? `an array of ${value.length}` : 'an object';
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    default:
      return String(value).slice(0, 60);
  }
}

function refuse(field: string, value: unknown, expected: string): string {
  return `${field === '' ? 'value' : field}: ${show(value)} is not ${expected}`;
}

/** Any code unit below U+0020, or U+007F … U+009F. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || (unit >= 0x7f && unit < 0xa0)) return true;
  }
  return false;
}

/** Text of `min` … `max` UTF-16 units; control characters are refused. */
export function text(max: number, min = 0): Rule<string> {
  return (value, field) =>
    typeof value === 'string' && value.length >= min && value.length <= max && !hasControl(value)
      ? undefined
      : refuse(field, value, `text of ${min} to ${max} characters without control characters`);
}

/** A safe integer from `min` to `max`. */
export function integer(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): Rule<number> {
  return (value, field) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : refuse(field, value, `an integer from ${min} to ${max}`);
}

/** A finite number from `min` to `max`. */
export function finite(min = -Number.MAX_VALUE, max = Number.MAX_VALUE): Rule<number> {
  return (value, field) =>
    typeof value === 'number' && value >= min && value <= max
      ? undefined
      : refuse(field, value, `a finite number from ${min} to ${max}`);
}

export const flag: Rule<boolean> = (value, field) =>
  typeof value === 'boolean' ? undefined : refuse(field, value, 'true or false');

/** One of the given strings, numbers or booleans, or null. */
export function oneOf<const T extends string | number | boolean | null>(...allowed: readonly T[]): Rule<T> {
  return (value, field) =>
    allowed.includes(value as T) ? undefined : refuse(field, value, `one of ${allowed.map(show).join(', ')}`);
}

/** Bytes, at most `max` of them. */
export function bytes(max: number): Rule<Uint8Array> {
  return (value, field) =>
    value instanceof Uint8Array && value.length <= max ? undefined : refuse(field, value, `at most ${max} bytes`);
}

export const anything: Rule<unknown> = () => undefined;

/** `undefined` or what the rule accepts. */
export function optional<T>(rule: Rule<T>): Rule<T | undefined> {
  return (value, field) => (value === undefined ? undefined : rule(value, field));
}

/** `null` or what the rule accepts. */
export function nullable<T>(rule: Rule<T>): Rule<T | null> {
  return (value, field) => (value === null ? undefined : rule(value, field));
}

/** An array of `min` … `max` elements that all pass. */
export function list<T>(element: Rule<T>, max: number, min = 0): Rule<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value) || value.length > max || value.length < min) {
      return refuse(field, value, `an array of ${min} to ${max} elements`);
    }
    for (let i = 0; i < value.length; i++) {
      const reason = element(value[i], `${field}[${i}]`);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

/** An array that starts with these; more elements (of a newer version) are ignored. */
export function tuple<const R extends readonly Rule<any>[]>(
  ...rules: R
): Rule<readonly [...{ [K in keyof R]: Accepted<R[K]> }, ...unknown[]]> {
  return (value, field) => {
    if (!Array.isArray(value)) return refuse(field, value, `an array of at least ${rules.length} elements`);
    for (let i = 0; i < rules.length; i++) {
      const reason = rules[i]!(value[i], `${field}[${i}]`);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

/** A plain object with these own fields; others (of a newer version) are ignored. */
export function record<R extends Readonly<Record<string, Rule<any>>>>(
  fields: R,
): Rule<{ readonly [K in keyof R]: Accepted<R[K]> }> {
  const rules = Object.entries(fields);
  return (value, field) => {
    if (!isPlainObject(value)) return refuse(field, value, 'a plain object');
    for (const [key, rule] of rules) {
      const reason = rule(Object.hasOwn(value, key) ? value[key] : undefined, field === '' ? key : `${field}.${key}`);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

/** A Map of at most `max` entries. */
export function mapOf<K, V>(key: Rule<K>, item: Rule<V>, max: number): Rule<ReadonlyMap<K, V>> {
  return (value, field) => {
    if (!(value instanceof Map) || value.size > max) return refuse(field, value, `a map of at most ${max} entries`);
    for (const [k, v] of value as Map<unknown, unknown>) {
      const reason = key(k, `${field}.key`) ?? item(v, `${field}(${show(k)})`);
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

/** What the first accepting rule accepts; the reason is the last one's. */
export function either<A, B>(first: Rule<A>, second: Rule<B>): Rule<A | B> {
  return (value, field) => (first(value, field) === undefined ? undefined : second(value, field));
}

/** `rule`, and a further condition; `expected` completes "… is not". */
export function where<T>(rule: Rule<T>, condition: (value: T) => boolean, expected: string): Rule<T> {
  return (value, field) => rule(value, field) ?? (condition(value as T) ? undefined : refuse(field, value, expected));
}

/** `host:port` with a port of 1 … 65535. */
export const address: Rule<string> = where(text(300, 3), (value) => {
  const colon = value.lastIndexOf(':');
  const port = value.slice(colon + 1);
  return colon > 0 && /^[1-9][0-9]{0,4}$/.test(port) && Number(port) <= 65535 && !/\s/.test(value);
}, 'an address (host:port)');

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
