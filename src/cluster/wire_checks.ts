/**
 * Checks of single fields that came from another node: by type first, and no code of the value is ever run. All throw
 * `WireError`, which names field, value and rule; the value is cut short and shown without control characters.
 */
import { coreLimits as limits } from '../limits.ts';
import { parseAddress } from '../transport/address.ts';
import type { Address } from '../transport/contract.ts';

export class WireError extends Error {
  override readonly name = 'WireError';
}

export function fail(field: string, value: unknown, rule: string): never {
  throw new WireError(`${field} ${shown(value)}: must be ${rule}`);
}

/** A name: text without control characters, which have no business in logs and metrics. */
export function textOf(value: unknown, maxChars: number, field: string, minChars = 1): string {
  if (typeof value !== 'string' || value.length < minChars || value.length > maxChars || hasControl(value)) {
    return fail(field, value, `text of ${minChars} to ${maxChars} characters without control characters`);
  }
  return value;
}

/** A sentence for people, such as the message of an error: line breaks and other control characters become spaces. */
export function proseOf(value: unknown, maxChars: number, field: string): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > maxChars) {
    return fail(field, value, `text of 1 to ${maxChars} characters`);
  }
  return hasControl(value) ? value.replace(/\p{Cc}/gu, ' ') : value;
}

/** Any code unit below U+0020, or U+007F … U+009F. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || (unit >= 0x7f && unit < 0xa0)) return true;
  }
  return false;
}

/** A safe integer from 0 on. */
export function countOf(value: unknown, field: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) return fail(field, value, 'a safe integer from 0 on');
  return value as number;
}

export function flagOf(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') return fail(field, value, 'true or false');
  return value;
}

export function listOf(value: unknown, maxItems: number, field: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length > maxItems) return fail(field, value, `a list of at most ${maxItems}`);
  return value;
}

export function tupleOf(value: unknown, length: number, field: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length !== length) return fail(field, value, `a list of ${length} fields`);
  return value;
}

/** Addresses that have passed, since nearly all that gossip brings are known; as many as there may be members. */
const passed = new Set<string>();

export function addressOf(value: unknown): Address {
  if (typeof value === 'string' && passed.has(value)) return value;
  const text = textOf(value, limits.hostChars + 8, 'address');
  const port = parseAddress(text)?.port ?? 0;
  if (port <= 0) return fail('address', value, 'host:port');
  if (passed.size >= limits.members) passed.clear();
  passed.add(text);
  return text;
}

/** For logs: short, and without control characters. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 64)).replace(/\p{Cc}/gu, ' ');
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null) {
    return String(value);
  }
  return Array.isArray(value) ? `a list of ${value.length}` : `a ${typeof value}`;
}
