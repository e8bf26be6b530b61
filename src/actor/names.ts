/** Names and paths of actors. A path is `/user/a/b`: exact, with no other spelling. */
import { limits } from '../limits.ts';
import { ActorNameError } from './errors.ts';

/** Why `name` may not be used, or undefined when it may. */
export function nameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return `must be a string, got ${typeof name}`;
  if (name === '') return 'must not be empty';
  if (name.length > limits.typeNameChars) return `must have at most ${limits.typeNameChars} characters`;
  if (name === '.' || name === '..') return `must not be '.' or '..'`;
  if (name.startsWith('$')) return `must not start with '$' (kept for generated names)`;
  if (name.includes('/') || name.includes('\\')) return `must not contain '/' or '\\'`;
  if (/\p{Cc}/u.test(name)) return 'must not contain control characters';
  if (/\p{Surrogate}/u.test(name)) return 'must not contain half of a surrogate pair';
  return undefined;
}

/** Throws `ActorNameError` unless `name` may name an actor. */
export function checkName(name: string): void {
  const fault = nameFault(name);
  if (fault !== undefined) throw new ActorNameError(String(name), fault);
}

/** The names in a path, or undefined unless it is spelled exactly as a ref's `path` is. */
export function splitPath(path: string): readonly string[] | undefined {
  if (typeof path !== 'string' || !path.startsWith('/')) return undefined;
  const names = path.slice(1).split('/');
  return names.some((name) => name === '' || name === '.' || name === '..') ? undefined : names;
}
