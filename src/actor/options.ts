/** Validation of options, shared by every layer: one clear error that names family, field, value and rule. */
import { coreLimits as limits } from '../limits.ts';

/** A bad option value. */
export class OptionsError extends Error {
  override readonly name = 'OptionsError';
  /** The options it belongs to, such as `ActorSystemOptions`. */
  readonly family: string;
  readonly field: string;
  readonly value: unknown;
  /** What a value must be, as in "must be a whole number of at least 1". */
  readonly rule: string;
  constructor(family: string, field: string, value: unknown, rule: string) {
    super(`${family}.${field}: ${rule}, got ${show(value)}`);
    this.family = family;
    this.field = field;
    this.value = value;
    this.rule = rule;
  }
}

/** An item of a list, as errors name it. */
interface BadItem {
  readonly at: number;
  readonly value: unknown;
  readonly rule: string;
}

/** What a field's value must be. */
export interface Rule {
  readonly rule: string;
  accepts(value: unknown): boolean;
  /** Of a list: its first item that breaks the rule; undefined when the fault is another. */
  badItem?(value: unknown): BadItem | undefined;
}

/** A rule for each field of `T`; every field is optional, `undefined` always passes. */
export type Rules<T> = { readonly [K in keyof Required<T>]: Rule };

function rule(text: string, accepts: (value: unknown) => boolean): Rule {
  return { rule: text, accepts };
}

// Each by itself, so that a bundle holds only those it uses.

export function textRule(maxChars = 1_024): Rule {
  return rule(
    `must be a non-empty string of at most ${maxChars} characters`,
    (value) => typeof value === 'string' && value !== '' && value.length <= maxChars,
  );
}

export function integerRule(min: number, max: number = Number.MAX_SAFE_INTEGER): Rule {
  return rule(
    max === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${min}`
      : `must be a whole number from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
  );
}

/** Milliseconds, at most 2^31 − 1, since longer delays fire at once. */
export function durationRule(min = 0): Rule {
  return rule(
    `must be a number of milliseconds from ${min} to ${limits.timerMs}`,
    (value) => typeof value === 'number' && value >= min && value <= limits.timerMs,
  );
}

export const booleanRule: Rule = /* @__PURE__ */ rule('must be true or false', (value) => typeof value === 'boolean');
export const functionRule: Rule = /* @__PURE__ */ rule('must be a function', (value) => typeof value === 'function');
export const objectRule: Rule = /* @__PURE__ */ rule(
  'must be an object',
  (value) => typeof value === 'object' && value !== null,
);

export function oneOfRule(...values: readonly unknown[]): Rule {
  return rule(`must be one of ${values.map(show).join(', ')}`, (value) => values.includes(value));
}

export const rules = {
  text: textRule,
  integer: integerRule,
  durationMs: durationRule,
  number: (min: number, max: number): Rule =>
    rule(
      `must be a number from ${min} to ${max}`,
      (value) => typeof value === 'number' && value >= min && value <= max,
    ),
  boolean: booleanRule,
  function: functionRule,
  object: objectRule,
  anything: /* @__PURE__ */ rule('may be anything', () => true),
  oneOf: oneOfRule,
  instance: (type: abstract new (...args: never[]) => unknown): Rule =>
    rule(`must be a ${type.name}`, (value) => value instanceof type),
  /** Any of these rules. */
  either: (...some: readonly Rule[]): Rule =>
    rule(some.map((one) => one.rule).join(', or '), (value) => some.some((one) => one.accepts(value))),
  /** `hides`: items that no error may show. */
  listOf: (item: Rule, maxItems: number, hides: (item: unknown) => boolean = () => false): Rule => ({
    rule: `must be a list of at most ${maxItems} items, each of which ${item.rule}`,
    accepts: (value) => Array.isArray(value) && value.length <= maxItems && value.every((one) => item.accepts(one)),
    badItem: (value) => {
      if (!Array.isArray(value) || value.length > maxItems) return undefined;
      const at = value.findIndex((one) => !item.accepts(one));
      if (at < 0) return undefined;
      return { at, value: hides(value[at]) ? '(hidden)' : value[at], rule: item.rule.replace(/^is /, 'must be ') };
    },
  }),
} as const;

/** Of a URL: what stands before an @ or after a ? may be a password. */
export function mayHoldSecret(item: unknown): boolean {
  return /[@?]/.test(String(item));
}

/** Throws `OptionsError` unless `value` is undefined or keeps the rule. */
export function checkOption(family: string, field: string, value: unknown, expected: Rule): void {
  if (value === undefined || expected.accepts(value)) return;
  const item = expected.badItem?.(value);
  if (item !== undefined) throw new OptionsError(family, `${field}[${item.at}]`, item.value, item.rule);
  throw new OptionsError(family, field, value, expected.rule);
}

/** Throws `OptionsError` for an object that is none, for a field nobody knows, and for the first bad value. */
export function checkOptions<T extends object>(family: string, options: T, expected: Rules<T>): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new OptionsError(family, 'options', options, 'must be an object');
  }
  for (const [field, value] of Object.entries(options)) {
    const known = Object.hasOwn(expected, field) ? expected[field as keyof T] : undefined;
    if (known === undefined) {
      // Perhaps a secret whose name was misspelt.
      const rule = `is not an option; known are ${Object.keys(expected).join(', ')}`;
      throw new OptionsError(family, field, '(hidden)', rule);
    }
    checkOption(family, field, value, known);
  }
}

/** A value as it appears in an error message: short, and never failing. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === 'string' && name !== '' && name !== 'Object' ? `an instance of ${name}` : 'an object';
}
