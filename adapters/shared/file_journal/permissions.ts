/** What Deno lets this program do; the others let it do everything. */

type Kind = 'read' | 'run' | 'sys';

interface Descriptor {
  readonly name: Kind;
  readonly kind?: string;
  readonly path?: string;
}

/**
 * Whether something may be done without being asked about it: Deno asks the person at the terminal for what it was not
 * allowed, and everything waits for the answer. `what` is a path for `read` and a kind of information for `sys`.
 */
export function mayAsk(name: Kind, what?: string): boolean {
  const { Deno: deno } = globalThis as unknown as {
    Deno?: { permissions: { querySync(permission: Descriptor): { state: string } } };
  };
  if (deno === undefined) return true;
  const permission: Descriptor = what === undefined
    ? { name }
    : name === 'read'
    ? { name, path: what }
    : { name, kind: what };
  return deno.permissions.querySync(permission).state === 'granted';
}
