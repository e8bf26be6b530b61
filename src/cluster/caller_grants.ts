/** What callers from outside may do: the option, its rules, and what the rest of a node reads. */
import { checkOptions, OptionsError, type Rule, type Rules, rules } from '../actor/options.ts';
import { limits } from '../limits.ts';
import { isToken, tokenRule } from '../transport/token.ts';

/** What a caller's token allows: `tell` without a sender, `ask` (and every message with a sender). */
export type CallerRight = 'tell' | 'ask';

/** Who holds one of the tokens may send to these singletons, from outside the cluster. */
export interface CallerGrant {
  /** What logs and metrics call it. Callers that change to another token of the same name stay the same callers. */
  readonly name: string;
  /** 16 to 1 024 visible ASCII characters (best: 32 random bytes as text). Several while they are being changed. */
  readonly token: string | readonly string[];
  /** At most 100 names, or `*` for all. */
  readonly singletons: readonly string[] | '*';
  /** `tell`: messages without a way back; `ask`: messages that may be answered. Default both. */
  readonly allow?: readonly CallerRight[];
  /** From one caller; each begun 4 KiB of a message counts as one more. Default 1 000, at most 100 000. Beyond twice this it is cut off. */
  readonly messagesPerSecond?: number;
  /**
   * At the same time, per node; and so many times what one caller may send is the most that all of them may, however often they
   * connect. Default 1 000.
   */
  readonly maxCallers?: number;
}

export interface ResolvedGrant {
  readonly name: string;
  readonly tokens: readonly string[];
  /** Undefined: all. */
  readonly singletons: readonly string[] | undefined;
  readonly tell: boolean;
  readonly ask: boolean;
  readonly messagesPerSecond: number;
  readonly maxCallers: number;
}

const family = 'ClusterOptions';
/** Shown in the place of a token, and of what might be one. */
const hidden = '(hidden)';

const isName = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && value.length <= limits.typeNameChars && !/[\p{Cc}\p{Cs}]/u.test(value);

const grantRules: Rules<CallerGrant> = {
  name: named(`must be 1 to ${limits.typeNameChars} printable characters`, isName),
  token: named('is checked apart', () => true),
  singletons: named(
    `must be '*' or a list of 1 to ${limits.callerSingletons} names`,
    (value) =>
      value === '*' || (Array.isArray(value) && value.length > 0 && value.length <= limits.callerSingletons &&
        value.every(isName)),
  ),
  allow: named(
    "must be a list of 'tell', 'ask' or both",
    (value) => Array.isArray(value) && value.length > 0 && value.every((right) => right === 'tell' || right === 'ask'),
  ),
  messagesPerSecond: rules.integer(1, limits.callerRateMax),
  maxCallers: rules.integer(1, limits.callers),
};

function named(rule: string, accepts: (value: unknown) => boolean): Rule {
  return { rule, accepts };
}

/**
 * @param others secrets that no token may be the same as
 * @throws OptionsError naming the entry and the field, never a token
 */
export function resolveGrants(
  grants: readonly CallerGrant[] | undefined,
  others: readonly string[],
): readonly ResolvedGrant[] {
  if (grants === undefined) return [];
  const list: unknown = grants;
  if (!Array.isArray(list) || grants.length > limits.callerGrants) {
    throw new OptionsError(family, 'callers', hidden, `must be a list of at most ${limits.callerGrants} grants`);
  }
  const seen = new Set<string>(others);
  const names = new Set<string>();
  return grants.map((grant, at) => {
    const bad = (field: string, value: unknown, rule: string): never => {
      throw new OptionsError(`${family}.callers[${at}]`, field, value, rule);
    };
    if (typeof grant !== 'object' || grant === null) bad('grant', hidden, 'must be an object');
    for (const field of Object.keys(grant)) {
      if (!Object.hasOwn(grantRules, field)) {
        bad(field, hidden, `is not an option; known are ${Object.keys(grantRules).join(', ')}`);
      }
    }
    checkOptions(`${family}.callers[${at}]`, grant, grantRules);
    const { name, token, singletons, allow = ['tell', 'ask'], messagesPerSecond, maxCallers } = grant;
    if (name === undefined || names.has(name)) bad('name', name, 'must be given, and differ from the others');
    if (singletons === undefined) bad('singletons', singletons, grantRules.singletons.rule);
    names.add(name);
    const tokens = typeof token === 'string' ? [token] : Array.isArray(token) ? [...token] : [];
    const fine = tokens.length > 0 && tokens.length <= limits.callerTokens && tokens.every(isToken);
    if (!fine) {
      bad(
        'token',
        token === undefined ? undefined : hidden,
        `${tokenRule}, or a list of at most ${limits.callerTokens} of them`,
      );
    }
    for (const text of tokens) {
      if (seen.has(text)) bad('token', hidden, "must differ from every other grant's and from the cluster's secrets");
      seen.add(text);
    }
    return Object.freeze({
      name,
      tokens: Object.freeze(tokens),
      singletons: singletons === '*' ? undefined : Object.freeze([...new Set(singletons)]),
      tell: allow.includes('tell'),
      ask: allow.includes('ask'),
      messagesPerSecond: messagesPerSecond ?? limits.callerRate,
      maxCallers: maxCallers ?? limits.callers,
    });
  });
}
