/** What persistence ids, tags and numbers must look like. */
import { OptionsError, rules } from '../actor/options.ts';
import { limits } from '../limits.ts';

// deno-lint-ignore no-control-regex
const forbidden = /[/\\\u0000-\u001f\u007f]/;
// deno-lint-ignore no-control-regex
const tagForbidden = /[,\u0000-\u001f\u007f]/;

/** Half of a pair, which has no UTF-8 form. */
const loneSurrogate = /\p{Surrogate}/u;

const idRule =
  `must be 1 to ${limits.persistenceIdChars} characters without '/', '\\' and control characters, and not '.' or '..'`;
const tagRule = `must be 1 to ${limits.tagChars} characters without ',' and control characters`;

/** A name that every store can keep as it is. @throws OptionsError */
export function checkText(family: string, field: string, value: unknown): asserts value is string {
  const fine = typeof value === 'string' && value !== '' && value.length <= limits.persistenceIdChars &&
    // deno-lint-ignore no-control-regex
    !/[\u0000-\u001f\u007f]/.test(value) && !loneSurrogate.test(value);
  const rule = `must be 1 to ${limits.persistenceIdChars} characters without control characters`;
  if (!fine) throw new OptionsError(family, field, value, rule);
}

/** Checked before a store is written. Reading stays allowed for ids from before. @throws OptionsError */
export function checkPersistenceId(id: unknown): asserts id is string {
  const fine = typeof id === 'string' && id !== '' && id.length <= limits.persistenceIdChars && !forbidden.test(id) &&
    id !== '.' && id !== '..' && !loneSurrogate.test(id);
  if (!fine) throw new OptionsError('PersistentActor', 'persistenceId', id, idRule);
}

/** @throws OptionsError */
export function checkTags(tags: readonly string[] | undefined): void {
  if (tags === undefined) return;
  if (!Array.isArray(tags) || tags.length > limits.tagsPerEvent) {
    throw new OptionsError('Event', 'tags', tags, `must be a list of at most ${limits.tagsPerEvent} tags`);
  }
  for (const tag of tags) checkTag(tag);
}

/** @throws OptionsError */
export function checkTag(tag: unknown): asserts tag is string {
  const fine = typeof tag === 'string' && tag !== '' && tag.length <= limits.tagChars && !tagForbidden.test(tag) &&
    !loneSurrogate.test(tag);
  if (!fine) throw new OptionsError('Event', 'tags', tag, tagRule);
}

/** A sequence number or revision. @throws OptionsError */
export function checkNumber(family: string, field: string, value: unknown, min = 0): asserts value is number {
  const rule = rules.integer(min);
  if (!rule.accepts(value)) throw new OptionsError(family, field, value, rule.rule);
}

/** A bound of a range: a whole number, or Infinity for an open end. @throws OptionsError */
export function checkRange(fromSeq: number, toSeq: number): void {
  checkNumber('Journal', 'fromSeq', fromSeq);
  if (toSeq !== Infinity) checkNumber('Journal', 'toSeq', toSeq);
}
