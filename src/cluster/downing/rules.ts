/** Option rules that several strategies share. */
import { type Rule, rules } from '../../actor/options.ts';
import { limits } from '../../limits.ts';
import { parseAddress } from '../../transport/address.ts';

export const roleRule: Rule = rules.text(limits.roleChars);

export const quorumRule: Rule = rules.integer(1, limits.members);

export const addressRule: Rule = {
  rule: 'must be an address like host:port, as the member advertises it',
  accepts: (value) => typeof value === 'string' && (parseAddress(value)?.port ?? 0) > 0,
};
