/** The typed name of a singleton. */
import { OptionsError } from '../actor/options.ts';
import { coreLimits as limits } from '../limits.ts';

const family = 'SingletonKey';

/**
 * Names a singleton and says which messages it takes. Two keys are the same singleton when their names are equal; the role,
 * if any, restricts hosting to members that carry it.
 */
export class SingletonKey<T = unknown> {
  readonly typeName: string;
  readonly role: string | undefined;
  /** Makes keys of different message types differ, in both directions. */
  declare protected readonly takes?: (message: T) => T;

  private constructor(typeName: string, role: string | undefined) {
    this.typeName = typeName;
    this.role = role;
  }

  /**
   * @param typeName at most 247 characters; no '/', '\', control characters, no leading '$', not '.' or '..'
   * @param role only members with this role host it
   * @throws OptionsError naming field, value and rule
   */
  static of<T = unknown>(typeName: string, role?: string): SingletonKey<T> {
    checkTypeName(typeName, family);
    checkRole(role, family);
    return new SingletonKey<T>(typeName, role);
  }

  equals(other: SingletonKey<any>): boolean {
    return this.typeName === other.typeName;
  }

  toString(): string {
    return this.role === undefined ? this.typeName : `${this.typeName} (${this.role})`;
  }
}

/** With `manager-` before it, it is an actor's name. */
const maxChars = limits.typeNameChars - 'manager-'.length;
const forbidden = /[/\\\p{Cc}]/u;

/** @throws OptionsError */
export function checkTypeName(typeName: unknown, options: string): asserts typeName is string {
  const rule = `must be 1 to ${maxChars} characters without '/', '\\' or control characters, ` +
    "not '.' or '..', and not start with '$'";
  const good = typeof typeName === 'string' && typeName.length > 0 && typeName.length <= maxChars &&
    !forbidden.test(typeName) && typeName !== '.' && typeName !== '..' && !typeName.startsWith('$');
  if (!good) throw new OptionsError(options, 'typeName', typeName, rule);
}

/** @throws OptionsError */
export function checkRole(role: unknown, options: string): asserts role is string | undefined {
  if (role === undefined) return;
  const good = typeof role === 'string' && role.length > 0 && role.length <= limits.roleChars;
  if (!good) throw new OptionsError(options, 'role', role, `must be 1 to ${limits.roleChars} characters`);
}
